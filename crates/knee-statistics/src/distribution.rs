//! A distribution over time: values weighted by how long each was in effect.

use knee_scenario::Statistic;

/// Values with their weights, ascending, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Value, and the sum of all weights up to and including it.
    cumulative: Vec<(f64, f64)>,
    mean: f64,
}

impl Distribution {
    /// Creates a distribution of `(value, weight)`; pairs without a positive weight do not count.
    /// Returns `None` if nothing is left.
    pub fn new(mut weighted: Vec<(f64, f64)>) -> Option<Distribution> {
        weighted.retain(|(_, weight)| *weight > 0.0);
        sort(&mut weighted);
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let moment: f64 = weighted.iter().map(|(value, weight)| value * weight).sum();
        let mut sum = 0.0;
        for (_, weight) in &mut weighted {
            sum += *weight;
            *weight = sum;
        }
        let (least, most) = (weighted.first()?.0, weighted.last()?.0);
        Some(Distribution {
            cumulative: weighted,
            // Rounding must not move the mean out of the range.
            mean: (moment / total).clamp(least, most),
        })
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

/// Number of pairs from which a pass over all of them per digit is faster than comparisons.
const MANY: usize = 1024;
/// Bits per digit.
const DIGIT: u32 = 8;
const DIGITS: usize = (u64::BITS / DIGIT) as usize;

/// Sorts pairs by value in the order of [`f64::total_cmp`]. Pairs with equal values keep their
/// order, so that sums of weights round the same way. A large number is sorted by a stable radix
/// sort, last digit first; digits that all values share, such as those of exponents, are skipped.
fn sort(pairs: &mut Vec<(f64, f64)>) {
    if pairs.len() < MANY {
        return pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let digit = |key: u64, place: usize| (key >> (DIGIT * place as u32)) as usize & 0xff;
    let mut counts = [[0_usize; 1 << DIGIT]; DIGITS];
    for (value, _) in pairs.iter() {
        let key = ascending(*value);
        counts.iter_mut().enumerate().for_each(|(place, count)| count[digit(key, place)] += 1);
    }
    let mut sorted = vec![(0.0, 0.0); pairs.len()];
    for (place, count) in counts.iter_mut().enumerate() {
        if count.contains(&pairs.len()) {
            continue;
        }
        // Position of the next pair with each digit.
        let mut next = 0;
        for here in count.iter_mut() {
            next += std::mem::replace(here, next);
        }
        for pair in pairs.iter() {
            let here = &mut count[digit(ascending(pair.0), place)];
            sorted[*here] = *pair;
            *here += 1;
        }
        std::mem::swap(pairs, &mut sorted);
    }
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

    proptest! {
        /// The standard library's stable sort is the reference. The values have arbitrary bits, and
        /// only a few differ, so that many are equal.
        #[test]
        fn many_are_sorted_as_few(
            bits in prop::collection::vec(any::<u64>(), 1..20),
            chosen in prop::collection::vec(any::<prop::sample::Index>(), MANY..MANY + 500),
        ) {
            let value = |(place, at): (usize, &prop::sample::Index)| {
                (f64::from_bits(*at.get(&bits)), place as f64)
            };
            let pairs: Vec<(f64, f64)> = chosen.iter().enumerate().map(value).collect();
            let (mut ours, mut theirs) = (pairs.clone(), pairs);
            sort(&mut ours);
            theirs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let exact = |pairs: Vec<(f64, f64)>| -> Vec<(u64, u64)> {
                pairs.iter().map(|(a, b)| (a.to_bits(), b.to_bits())).collect()
            };
            prop_assert_eq!(exact(ours), exact(theirs));
        }
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
