//! A distribution over time: values weighted by how long each was in effect.

use crate::statistics::Statistic;
use crate::statistics::weights::Weights;

/// Values with their weights, in the order in which they are added, before they are sorted. Equal
/// neighbours take no more memory than one of them.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    runs: Vec<Run>,
    weights: Weights,
}

/// Equal pairs that follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    value: f64,
    /// Place of the weight in [`Weights`].
    weight: u32,
    count: u32,
}

impl Weighted {
    /// Adds a value; it does not count without a positive weight.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.add_times(value, weight, 1);
    }

    /// Adds a value as often as `count` says.
    pub fn add_times(&mut self, value: f64, weight: f64, count: u32) {
        let Some(weight) = self.weights.place(weight).filter(|_| count > 0) else { return };
        if let Some(last) = self.runs.last_mut()
            && last.weight == weight
            && last.value.to_bits() == value.to_bits()
            && let Some(count) = last.count.checked_add(count)
        {
            last.count = count;
            return;
        }
        self.runs.push(Run { value, weight, count });
    }
}

/// Values with their weights, ascending, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Value, and the sum of all weights up to and including it; equal values may be together.
    cumulative: Vec<(f64, f64)>,
    mean: f64,
}

impl Distribution {
    /// Creates a distribution of `(value, weight)`; pairs without a positive weight do not count.
    /// Returns `None` if nothing is left.
    pub fn new(weighted: Vec<(f64, f64)>) -> Option<Distribution> {
        let mut all = Weighted::default();
        weighted.into_iter().for_each(|(value, weight)| all.add(value, weight));
        Distribution::of(all)
    }

    /// Creates a distribution. Returns `None` if there are no values.
    pub fn of(weighted: Weighted) -> Option<Distribution> {
        let Weighted { runs, weights } = weighted;
        let mut sums = Sums::with_capacity(runs.len());
        for Run { value, weight, count } in sorted(runs) {
            sums.add(value, weights.at(weight), count);
        }
        sums.finish()
    }

    /// Returns the smallest value at or below which at least `fraction` of the weight lies: the
    /// weighted nearest-rank percentile, always a value that occurred. `fraction` is in
    /// `0.0..=1.0`.
    pub fn percentile(&self, fraction: f64) -> f64 {
        let last = self.cumulative[self.cumulative.len() - 1];
        // Sums of rounded weights must not push an exact rank to the next value.
        let rank = fraction * last.1 * (1.0 - 1e-12);
        let index = self.cumulative.partition_point(|(_, sum)| *sum < rank);
        self.cumulative.get(index).unwrap_or(&last).0
    }

    /// Returns the weighted arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the statistic that a measure names.
    pub fn statistic(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Min => self.percentile(0.0),
            Statistic::P5 => self.percentile(0.05),
            Statistic::P50 => self.percentile(0.50),
            Statistic::P95 => self.percentile(0.95),
            Statistic::P99 => self.percentile(0.99),
            Statistic::Max => self.percentile(1.0),
            Statistic::Mean => self.mean,
        }
    }
}

/// The sums of a distribution, of which the values are added in ascending order.
pub(crate) struct Sums {
    cumulative: Vec<(f64, f64)>,
    sum: f64,
    moment: f64,
}

impl Sums {
    /// Creates sums for at most `values` different values.
    pub(crate) fn with_capacity(values: usize) -> Sums {
        Sums { cumulative: Vec::with_capacity(values), sum: 0.0, moment: 0.0 }
    }

    /// Adds a value, not below the one before, as often as `count` says.
    #[inline]
    pub(crate) fn add(&mut self, value: f64, weight: f64, count: u32) {
        let part = value * weight;
        // One by one, because a product would round differently.
        for _ in 0..count {
            self.sum += weight;
            self.moment += part;
        }
        match self.cumulative.last_mut() {
            Some(last) if last.0.to_bits() == value.to_bits() => last.1 = self.sum,
            _ => self.cumulative.push((value, self.sum)),
        }
    }

    /// Returns the distribution; `None` if nothing was added.
    pub(crate) fn finish(self) -> Option<Distribution> {
        let Sums { cumulative, sum, moment } = self;
        let (least, most) = (cumulative.first()?.0, cumulative.last()?.0);
        // Rounding must not move the mean out of the range.
        Some(Distribution { cumulative, mean: (moment / sum).clamp(least, most) })
    }
}

/// Number of runs from which sorting into buckets first is faster than comparisons alone.
const MANY: usize = 1024;
/// Runs of a bucket, if the values are spread evenly.
const BUCKET_RUNS: usize = 4;

/// Sorts runs by value in the order of [`f64::total_cmp`]. Runs with equal values keep their order,
/// so that sums of weights round the same way. Many are first moved to buckets that divide the
/// range of the values evenly.
fn sorted(mut runs: Vec<Run>) -> Vec<Run> {
    if runs.len() < MANY {
        runs.sort_by(|a, b| a.value.total_cmp(&b.value));
        return runs;
    }
    let keys = || runs.iter().map(|run| ascending(run.value));
    let (least, most) =
        keys().fold((u64::MAX, 0), |(least, most), key| (least.min(key), most.max(key)));
    let buckets_log2 = (runs.len() / BUCKET_RUNS).ilog2();
    let shift = (u64::BITS - (most - least).leading_zeros()).saturating_sub(buckets_log2);
    let bucket = |key: u64| ((key - least) >> shift) as usize;
    // For each bucket the number of its runs, then the position of its next one, then its end.
    let mut ends = vec![0_u32; bucket(most) + 1];
    keys().for_each(|key| ends[bucket(key)] += 1);
    let mut next = 0;
    for end in &mut ends {
        next += std::mem::replace(end, next);
    }
    let mut sorted = vec![Run::default(); runs.len()];
    for run in &runs {
        let place = &mut ends[bucket(ascending(run.value))];
        sorted[*place as usize] = *run;
        *place += 1;
    }
    drop(runs);
    let mut begin = 0;
    for end in ends {
        let end = end as usize;
        sorted[begin..end].sort_by(|a, b| a.value.total_cmp(&b.value));
        begin = end;
    }
    sorted
}

/// Maps a value to an integer with the order of [`f64::total_cmp`].
fn ascending(value: f64) -> u64 {
    let bits = value.to_bits();
    let negative = (bits as i64 >> 63) as u64;
    bits ^ (negative | 1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATISTICS: [Statistic; 7] = [
        Statistic::Min,
        Statistic::P5,
        Statistic::P50,
        Statistic::P95,
        Statistic::P99,
        Statistic::Max,
        Statistic::Mean,
    ];

    /// Computes a statistic as docs/measures.md defines it, from all pairs one by one.
    fn by_definition(pairs: &[(f64, f64)], statistic: Statistic) -> f64 {
        let mut sorted = pairs.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = sorted.iter().fold(0.0, |sum, (_, weight)| sum + weight);
        let fraction = match statistic {
            Statistic::Min => 0.0,
            Statistic::P5 => 0.05,
            Statistic::P50 => 0.5,
            Statistic::P95 => 0.95,
            Statistic::P99 => 0.99,
            Statistic::Max => 1.0,
            Statistic::Mean => {
                let moment = sorted.iter().fold(0.0, |sum, (value, weight)| sum + value * weight);
                return (moment / total).clamp(sorted[0].0, sorted[sorted.len() - 1].0);
            }
        };
        let mut sum = 0.0;
        for (value, weight) in &sorted {
            sum += weight;
            if sum >= fraction * total * (1.0 - 1e-12) {
                return *value;
            }
        }
        sorted[sorted.len() - 1].0
    }

    proptest! {
        /// The standard library's stable sort is the reference. The values have arbitrary bits, and
        /// only a few differ, so that many are equal.
        #[test]
        fn many_are_sorted_as_few(
            bits in prop::collection::vec(any::<u64>(), 1..20),
            chosen in prop::collection::vec(any::<prop::sample::Index>(), MANY..MANY + 500),
        ) {
            let run = |(place, at): (usize, &prop::sample::Index)| {
                Run { value: f64::from_bits(*at.get(&bits)), weight: place as u32, count: 1 }
            };
            let runs: Vec<Run> = chosen.iter().enumerate().map(run).collect();
            let ours = sorted(runs.clone());
            let mut theirs = runs;
            theirs.sort_by(|a, b| a.value.total_cmp(&b.value));
            let exact = |runs: Vec<Run>| -> Vec<(u64, u32)> {
                runs.iter().map(|run| (run.value.to_bits(), run.weight)).collect()
            };
            prop_assert_eq!(exact(ours), exact(theirs));
        }

        /// To the bit, for few values and many, with runs of equal pairs and without.
        #[test]
        fn statistics_are_those_of_the_definition(
            pieces in prop::collection::vec(
                (prop_oneof![0.0..0.2_f64, Just(0.04), Just(0.0)],
                 prop_oneof![Just(0.001), Just(0.003), 1e-9..1.0_f64], 1..20_usize),
                1..400,
            ),
        ) {
            let pairs: Vec<(f64, f64)> = pieces
                .iter()
                .flat_map(|(value, weight, count)| std::iter::repeat_n((*value, *weight), *count))
                .collect();
            let distribution = Distribution::new(pairs.clone()).unwrap();
            for statistic in STATISTICS {
                let expected = by_definition(&pairs, statistic);
                prop_assert_eq!(distribution.statistic(statistic).to_bits(), expected.to_bits());
            }
        }
    }

    /// A hundred thousand samples of which each ten are alike take memory for ten thousand.
    #[test]
    fn equal_neighbours_are_kept_once() {
        let mut all = Weighted::default();
        (0..100_000).for_each(|number| all.add(f64::from(number / 10), 0.001));
        assert_eq!((all.runs.len(), all.weights.len()), (10_000, 1));
    }

    /// The values 1 to 100 once each: the k-th percentile is k.
    #[test]
    fn equal_weights_give_the_nearest_rank() {
        let hundred = (1..=100).rev().map(|value| (f64::from(value), 0.1));
        let distribution = Distribution::new(hundred.collect()).unwrap();
        assert_eq!(distribution.statistic(Statistic::Min), 1.0);
        assert_eq!(distribution.statistic(Statistic::P5), 5.0);
        assert_eq!(distribution.statistic(Statistic::P50), 50.0);
        assert_eq!(distribution.statistic(Statistic::P95), 95.0);
        assert_eq!(distribution.statistic(Statistic::P99), 99.0);
        assert_eq!(distribution.statistic(Statistic::Max), 100.0);
        assert!((distribution.mean() - 50.5).abs() < 1e-9);
    }

    /// 10 for 9 s and 90 for 1 s: median 10, 95th percentile 90, mean 18.
    #[test]
    fn weights_count() {
        let distribution = Distribution::new(vec![(90.0, 1.0), (10.0, 9.0)]).unwrap();
        assert_eq!(distribution.percentile(0.5), 10.0);
        assert_eq!(distribution.percentile(0.9), 10.0);
        assert_eq!(distribution.percentile(0.95), 90.0);
        assert!((distribution.mean() - 18.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_no_distribution() {
        assert_eq!(Distribution::new(vec![]), None);
        assert_eq!(Distribution::new(vec![(3.0, 0.0)]), None);
    }

    proptest! {
        #[test]
        fn percentiles_ascend(values in prop::collection::vec((0.0..1e9, 1e-3..10.0), 1..50)) {
            let distribution = Distribution::new(values.clone()).unwrap();
            let ladder = [Statistic::Min, Statistic::P5, Statistic::P50, Statistic::P95,
                Statistic::P99, Statistic::Max].map(|s| distribution.statistic(s));
            prop_assert!(ladder.is_sorted());
            let mean = distribution.mean();
            prop_assert!(ladder[0] <= mean && mean <= ladder[5]);
            prop_assert!(ladder.iter().all(|p| values.iter().any(|(v, _)| v == p)));
        }
    }
}
