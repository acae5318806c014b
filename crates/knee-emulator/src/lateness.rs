//! Histogram of lateness: constant memory, one addition per packet.

use knee_units::Time;

/// Binary logarithm of the number of buckets per power of two; values are exact to 3 %.
const STEPS_LOG2: u32 = 5;
const STEPS: usize = 1 << STEPS_LOG2;
const BUCKETS: usize = (65 - STEPS_LOG2 as usize) * STEPS;

/// Log-linear histogram of the lateness of packets, with 32 buckets per power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: Box<[u64]>,
    total: u64,
    max: Time,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { counts: vec![0; BUCKETS].into_boxed_slice(), total: 0, max: Time::ZERO }
    }
}

impl Lateness {
    /// Counts this many packets with this lateness.
    #[inline]
    pub fn record(&mut self, late: Time, packets: u32) {
        self.counts[bucket(late.as_nanos())] += u64::from(packets);
        self.total += u64::from(packets);
        self.max = self.max.max(late);
    }

    /// Returns the number of packets counted.
    pub fn packets(&self) -> u64 {
        self.total
    }

    /// Returns the maximum lateness, exactly.
    pub fn max(&self) -> Time {
        self.max
    }

    /// Returns the lateness that the fraction `share` of the packets, in `0.0..=1.0`, does not
    /// exceed; up to 3 % too large, and zero without packets.
    pub fn at(&self, share: f64) -> Time {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Time::from_nanos(upper_bound(bucket)).min(self.max);
            }
        }
        Time::ZERO
    }
}

/// Returns the bucket of a value. Values below 32 have a bucket each; above, the leading bit and
/// the five bits after it determine the bucket.
pub(crate) fn bucket(value: u64) -> usize {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(STEPS_LOG2);
    (shift as usize) * STEPS + (value >> shift) as usize
}

/// Returns the largest value in a bucket.
pub(crate) fn upper_bound(bucket: usize) -> u64 {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let shift = bucket / STEPS - 1;
    let first = (bucket % STEPS + STEPS) as u64;
    (((u128::from(first) + 1) << shift) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a sorted list of the same values, over nine powers of ten.
    #[test]
    fn percentiles_of_a_known_distribution() {
        let mut lateness = Lateness::default();
        let mut values: Vec<u64> = (0..20_000_u64).map(|n| n * n * n / 8).collect();
        for value in &values {
            lateness.record(Time::from_nanos(*value), 1);
        }
        values.sort_unstable();
        for share in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((share * 20_000.0) as usize).clamp(1, 20_000);
            let exact = values[rank - 1];
            let found = lateness.at(share).as_nanos();
            assert!(found >= exact && found <= exact + exact / 32, "{share}: {found} for {exact}");
        }
        assert_eq!(lateness.max().as_nanos(), 19_999 * 19_999 * 19_999 / 8);
    }

    #[test]
    fn extremes_have_buckets() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.at(0.5), Time::ZERO);
        lateness.record(Time::MAX, 3);
        assert_eq!(lateness.at(0.5), Time::MAX);
        assert_eq!(lateness.packets(), 3);
    }
}
