//! Integers weighted by how long each was in effect. They are sorted in a few passes, once for all
//! distributions of their functions.

use crate::Distribution;
use crate::distribution::Sums;
use crate::weights::Weights;

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

/// Integers with their weights, of which the ascending order is known, at least one.
#[derive(Clone, Debug)]
pub struct SortedIntegers {
    runs: Vec<Run>,
    weights: Weights,
    /// Numbers of the runs, by value; those with equal values in the order of `runs`.
    order: Vec<u32>,
}

impl WeightedIntegers {
    /// Adds a value as often as `count` says; it does not count without a positive weight.
    pub fn add(&mut self, value: u64, weight: f64, count: u32) {
        let Some(weight) = self.weights.place(weight).filter(|_| count > 0) else { return };
        self.runs.push(Run { value, weight, count });
    }

    /// Sorts the values. Returns `None` if there are none.
    pub fn sorted(self) -> Option<SortedIntegers> {
        let WeightedIntegers { runs, weights } = self;
        let order = ascending(&runs);
        (!runs.is_empty()).then_some(SortedIntegers { runs, weights, order })
    }
}

impl SortedIntegers {
    /// Returns the distribution of a function of the values that does not descend. It is the same
    /// to the bit as if each value had been passed through the function and added to a
    /// [`Weighted`](crate::Weighted).
    pub fn distribution(&self, function: &dyn Fn(u64) -> f64) -> Distribution {
        let mut sums = Sums::with_capacity(self.runs.len());
        let mut rest = self.order.iter().map(|number| (*number, &self.runs[*number as usize]));
        let mut next = rest.next();
        let mut equal: Vec<u32> = Vec::new();
        while let Some((number, run)) = next {
            let value = function(run.value);
            equal.clear();
            equal.push(number);
            let mut are_mixed = false;
            next = rest.find(|(number, other)| {
                let is_equal = other.value == run.value || function(other.value) == value;
                if is_equal {
                    are_mixed |= other.value != run.value;
                    equal.push(*number);
                }
                !is_equal
            });
            // Values that the function makes equal count in the order in which they were added.
            if are_mixed {
                equal.sort_unstable();
            }
            for number in &equal {
                let Run { weight, count, .. } = self.runs[*number as usize];
                sums.add(value, self.weights.at(weight), count);
            }
        }
        sums.finish().expect("there is at least one value")
    }
}

/// Bits by which one pass sorts.
const DIGIT: u32 = 11;

/// Returns the numbers of the runs in ascending order of their values. Equal ones keep their order.
fn ascending(runs: &[Run]) -> Vec<u32> {
    let least = runs.iter().map(|run| run.value).min().unwrap_or(0);
    let most = runs.iter().map(|run| run.value).max().unwrap_or(0);
    let bits = u64::BITS - (most - least).leading_zeros();
    if bits > u32::BITS || u32::try_from(runs.len()).is_err() {
        let mut order: Vec<u32> = (0..runs.len() as u32).collect();
        order.sort_by_key(|number| runs[*number as usize].value);
        return order;
    }
    // Values and numbers beside one another, so that a pass reads memory in order.
    let with_number = |(number, run): (usize, &Run)| ((run.value - least) << 32) | number as u64;
    let mut pairs: Vec<u64> = runs.iter().enumerate().map(with_number).collect();
    let mut sorted = vec![0; pairs.len()];
    for pass in 0..bits.div_ceil(DIGIT) {
        let digit = |pair: u64| (pair >> (32 + DIGIT * pass)) as usize % (1 << DIGIT);
        let mut places = [0_u32; 1 << DIGIT];
        pairs.iter().for_each(|pair| places[digit(*pair)] += 1);
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for pair in &pairs {
            let place = &mut places[digit(*pair)];
            sorted[*place as usize] = *pair;
            *place += 1;
        }
        std::mem::swap(&mut pairs, &mut sorted);
    }
    pairs.into_iter().map(|pair| pair as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weighted;
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
    }
}
