//! Integers weighted by how long each was in effect, sorted once for all distributions of their
//! functions; and other functions of whole columns.

use crate::statistics::Distribution;
use crate::statistics::distribution::Sums;
use crate::statistics::weights::Weights;

/// Integers with their weights, in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub struct WeightedIntegers {
    runs: Vec<Run>,
    weights: Weights,
}

/// Equal pairs that follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    value: u64,
    /// Place of the weight in [`Weights`].
    weight: u32,
    count: u32,
}

/// Integers with their weights, ascending, at least one.
#[derive(Clone, Debug)]
pub struct SortedIntegers {
    /// Those with equal values are in the order in which they were added.
    runs: Vec<Run>,
    /// When each was added.
    order: Vec<u32>,
    weights: Weights,
}

impl WeightedIntegers {
    /// Adds a value as often as `count` says; it does not count without a positive weight.
    pub fn add(&mut self, value: u64, weight: f64, count: u32) {
        let Some(weight) = self.weights.place(weight).filter(|_| count > 0) else { return };
        self.runs.push(Run { value, weight, count });
    }

    /// Adds the values of a time series from `begin` to `end`, each weighted by the seconds since
    /// the time before. The times, nanoseconds, ascend from `begin`. Zero is no value.
    pub fn add_over_time(&mut self, begin: u64, end: u64, times: &[u64], values: &[u64]) {
        let mut previous = begin;
        let (mut run, mut count) = ((0, 0), 0);
        for (time, value) in times.iter().zip(values) {
            let time = (*time).min(end);
            let next = (*value, time - previous);
            previous = time;
            if next != run || count == u32::MAX {
                self.add_run(run, count);
                (run, count) = (next, 0);
            }
            count += 1;
        }
        self.add_run(run, count);
    }

    fn add_run(&mut self, (value, nanos): (u64, u64), count: u32) {
        if value > 0 {
            self.add(value, nanos as f64 / 1e9, count);
        }
    }

    /// Returns each value with its weight and how often both follow one another.
    pub fn runs(&self) -> impl Iterator<Item = (u64, f64, u32)> {
        self.runs.iter().map(|run| (run.value, self.weights.at(run.weight), run.count))
    }

    /// Sorts the values. Returns `None` if there are none.
    pub fn sorted(self) -> Option<SortedIntegers> {
        let WeightedIntegers { runs, weights } = self;
        let order = ascending(&runs);
        let runs: Vec<Run> = order.iter().map(|number| runs[*number as usize]).collect();
        (!runs.is_empty()).then_some(SortedIntegers { runs, order, weights })
    }
}

impl SortedIntegers {
    /// Returns the distribution of a function of the values that does not descend. It is the same
    /// to the bit as if each value had been passed through the function and added to a
    /// [`Weighted`](crate::statistics::Weighted).
    pub fn distribution(&self, function: &dyn Fn(u64) -> f64) -> Distribution {
        let mut sums = Sums::with_capacity(self.runs.len());
        let (mut begin, mut value) = (0, function(self.runs[0].value));
        while begin < self.runs.len() {
            let first = self.runs[begin].value;
            let (mut end, mut next) = (begin + 1, value);
            while let Some(run) = self.runs.get(end) {
                if run.value != first {
                    next = function(run.value);
                    if next != value {
                        break;
                    }
                }
                end += 1;
            }
            let count = end - begin;
            let equal = &self.runs[begin..end];
            if count > 1 && equal[count - 1].value != first {
                // Values that the function makes equal count in the order in which they were added.
                let mut numbers: Vec<usize> = (begin..end).collect();
                numbers.sort_unstable_by_key(|number| self.order[*number]);
                for number in numbers {
                    let Run { weight, count, .. } = self.runs[number];
                    sums.add(value, self.weights.at(weight), count);
                }
            } else {
                for Run { weight, count, .. } in equal {
                    sums.add(value, self.weights.at(*weight), *count);
                }
            }
            (begin, value) = (end, next);
        }
        sums.finish().expect("there is at least one value")
    }
}

/// Returns the fraction of the values at or below each point of an axis, in hundred-thousandths.
/// The axis has equal steps, but for rounding, and at least one point; no value is above its end.
pub fn cumulative(values: &[u64], axis: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; axis.len()];
    let (first, last) = (axis[0], axis[axis.len() - 1]);
    let points = (axis.len() - 1) as f64 / (last - first).max(1) as f64;
    for value in values {
        // Rounding moves a value by at most a point.
        let near = (value.saturating_sub(first) as f64 * points) as usize;
        let (low, high) = (near.saturating_sub(1), (near + 2).min(axis.len()));
        counts[low + axis[low..high].partition_point(|limit| limit < value)] += 1;
    }
    let mut below = 0;
    let fraction = |count: u64| {
        below += count;
        below * 100_000 / values.len() as u64
    };
    counts.into_iter().map(fraction).collect()
}

/// Returns the smallest value in each of some windows of `width` nanoseconds from `begin` on. A
/// value covers the time before its own, of which none is before `begin` or counts after `end`;
/// values above zero alone count, unless `zero` says otherwise.
pub fn minima(
    (begin, end): (u64, u64),
    width: u64,
    windows: usize,
    times: &[u64],
    values: &[u64],
    zero: bool,
) -> Vec<Option<u64>> {
    let mut minima = vec![None; windows];
    let (mut window, mut window_end) = (0, begin + width);
    for (time, value) in times.iter().zip(values) {
        let time = (*time).min(end);
        if time > window_end {
            window = ((time - begin - 1) / width) as usize;
            window_end = begin + (window as u64 + 1) * width;
        }
        if let Some(least) = minima.get_mut(window)
            && (*value > 0 || zero)
        {
            *least = Some(least.map_or(*value, |least: u64| least.min(*value)));
        }
    }
    minima
}

/// Bits of a digit by which numbers are sorted.
const DIGIT_BITS: u32 = 9;
/// Number of runs from which sorting by digits is faster than comparing.
const MANY: usize = 1024;

/// Returns the numbers of the runs in ascending order of their values. Equal ones keep their order.
fn ascending(runs: &[Run]) -> Vec<u32> {
    let least = runs.iter().map(|run| run.value).min().unwrap_or(0);
    let different = runs.iter().fold(0, |all, run| all | (run.value - least));
    let (value_bits, number_bits) = (bits_of(different), bits_of(runs.len() as u64));
    if runs.len() < MANY || value_bits + number_bits > u64::BITS {
        let mut order: Vec<(u64, u32)> = runs.iter().map(|run| run.value).zip(0..).collect();
        order.sort_unstable();
        return order.into_iter().map(|(_, number)| number).collect();
    }
    let values = runs.iter().map(|run| (run.value - least) << number_bits).zip(0..);
    let mut order: Vec<u64> = values.map(|(value, number)| value | number).collect();
    let mut sorted = vec![0; order.len()];
    for shift in (number_bits..number_bits + value_bits).step_by(DIGIT_BITS as usize) {
        sort_by_digit(&order, shift, &mut sorted);
        std::mem::swap(&mut order, &mut sorted);
    }
    order.into_iter().map(|one| (one & !(u64::MAX << number_bits)) as u32).collect()
}

fn bits_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Sorts numbers by the digit that begins at a bit. Those with equal digits keep their order.
fn sort_by_digit(numbers: &[u64], shift: u32, sorted: &mut [u64]) {
    const DIGITS: usize = 1 << DIGIT_BITS;
    let digit = |number: u64| (number >> shift) as usize % DIGITS;
    // The count of each digit, then the place of the next number that has it.
    let mut places = [0; DIGITS];
    numbers.iter().for_each(|number| places[digit(*number)] += 1);
    let mut next = 0;
    for place in &mut places {
        next += std::mem::replace(place, next);
    }
    for number in numbers {
        let place = &mut places[digit(*number)];
        sorted[*place] = *number;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Weighted;
    use proptest::prelude::*;

    proptest! {
        /// The same distribution as that of the values passed through the function, for values
        /// close together and far apart, and functions that make some of them equal.
        #[test]
        fn distributions_are_those_of_the_values(
            runs in prop::collection::vec(
                (prop_oneof![0..50_u64, 0..1_000_000_u64, Just(7_u64), 0..u64::MAX / 2],
                 prop_oneof![Just(0.001), Just(0.003), Just(0.0), 1e-9..1.0_f64], 0..20_u32),
                1..400,
            ),
            far in any::<bool>(),
            base in 0..100_u64,
        ) {
            let value = |value: u64| if far { value } else { value % 5_000 };
            let functions: [&dyn Fn(u64) -> f64; 3] = [
                &|value| value as f64 / 1e9,
                &|value| (value as f64 / 1e9 - base as f64 / 1e9).max(0.0),
                &|value| (value / 10) as f64,
            ];
            let mut integers = WeightedIntegers::default();
            runs.iter().for_each(|run| integers.add(value(run.0), run.1, run.2));
            let sorted = integers.sorted();
            for function in functions {
                let mut weighted = Weighted::default();
                runs.iter().for_each(|run| weighted.add_times(function(value(run.0)), run.1, run.2));
                let found = sorted.as_ref().map(|sorted| sorted.distribution(function));
                prop_assert_eq!(found, Distribution::of(weighted));
            }
        }

        /// The standard library's stable sort is the reference.
        #[test]
        fn many_values_are_sorted_as_few(
            values in prop::collection::vec(
                prop_oneof![0..9_u64, 0..1_000_000_u64, u64::MAX - 9..u64::MAX], 1..4 * MANY),
            most in prop_oneof![Just(u64::MAX), Just(1_000_000)],
        ) {
            let run = |value: &u64| Run { value: *value.min(&most), weight: 0, count: 1 };
            let runs: Vec<Run> = values.iter().map(run).collect();
            let mut expected: Vec<u32> = (0..runs.len() as u32).collect();
            expected.sort_by_key(|number| runs[*number as usize].value);
            prop_assert_eq!(ascending(&runs), expected);
        }

        /// The same as counting the values at or below each point.
        #[test]
        fn fractions_are_those_of_counting(
            values in prop::collection::vec(0..1_000_u64, 1..200), first in 0..500_u64,
            points in 1..50_usize,
        ) {
            let last = values.iter().copied().fold(first, u64::max);
            let step = (last - first) as f64 / (points - 1).max(1) as f64;
            let mut axis: Vec<u64> =
                (0..points).map(|point| first + (step * point as f64).round() as u64).collect();
            axis[points - 1] = last;
            let part = |limit: &u64| {
                let below = values.iter().filter(|value| *value <= limit).count();
                below as u64 * 100_000 / values.len() as u64
            };
            let expected: Vec<u64> = axis.iter().map(part).collect();
            prop_assert_eq!(cumulative(&values, &axis), expected);
        }

        /// The same as looking at each window alone.
        #[test]
        fn minima_are_those_of_each_window(
            rows in prop::collection::vec((1..40_u64, 0..6_u64), 0..100), begin in 0..50_u64,
            width in 1..90_u64, zero in any::<bool>(),
        ) {
            let steps = rows.iter().scan(begin, |time, (step, _)| {
                *time += step;
                Some(*time)
            });
            let times: Vec<u64> = steps.collect();
            let values: Vec<u64> = rows.iter().map(|row| row.1).collect();
            let end = times.last().map_or(begin, |last| last.saturating_sub(7).max(begin));
            let windows = (end - begin).div_ceil(width) as usize;
            let least = |window: u64| {
                let (from, to) = (begin + window * width, begin + (window + 1) * width);
                let is_in = |time: u64| (from + 1..=to).contains(&time.min(end));
                let rows = times.iter().zip(&values).filter(|(time, _)| is_in(**time));
                rows.map(|(_, value)| *value).filter(|value| *value > 0 || zero).min()
            };
            let expected: Vec<_> = (0..windows as u64).map(least).collect();
            prop_assert_eq!(minima((begin, end), width, windows, &times, &values, zero), expected);
        }
    }
}
