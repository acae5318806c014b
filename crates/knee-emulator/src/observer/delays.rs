//! Distribution of the delays of a flow's packets.

use crate::lateness::{bucket, upper_bound};
use knee_units::Time;
use std::collections::BTreeMap;

/// Histogram of delays, exact to 3 %. It has only the buckets in use: a flow of ten packets needs
/// ten at most, the longest flow some 1900.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    counts: BTreeMap<u16, u64>,
    packets: u64,
    max: Time,
}

impl Delays {
    /// Counts a packet with this delay.
    pub fn record(&mut self, delay: Time) {
        *self.counts.entry(bucket(delay.as_nanos()) as u16).or_default() += 1;
        self.packets += 1;
        self.max = self.max.max(delay);
    }

    /// Returns the number of packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets whose delay is below `limit` for certain: up to 3 % below it,
    /// they may be missing.
    pub fn below(&self, limit: Time) -> u64 {
        let places = self.counts.range(..bucket(limit.as_nanos()) as u16);
        places.map(|(_, count)| count).sum()
    }

    /// Returns the longest delay, exactly.
    pub fn max(&self) -> Time {
        self.max
    }

    /// Returns the delay that the fraction `share` of the packets, in `0.0..=1.0`, does not exceed;
    /// up to 3 % too large. `None` without packets.
    pub fn at(&self, share: f64) -> Option<Time> {
        let rank = (share * self.packets as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.counts.iter().find_map(|(place, count)| {
            seen += count;
            let reached = seen >= rank;
            reached.then(|| Time::from_nanos(upper_bound(usize::from(*place))).min(self.max))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a sorted list of the same values.
    #[test]
    fn quantiles_are_those_of_the_sorted_delays() {
        let mut delays = Delays::default();
        assert_eq!(delays.at(0.5), None);
        let mut values: Vec<u64> = (0..1000_u64).map(|n| (n * 7919 % 1000) * 90_000).collect();
        values.iter().for_each(|value| delays.record(Time::from_nanos(*value)));
        values.sort_unstable();
        for share in [0.0, 0.05, 0.5, 0.95, 1.0] {
            let exact = values[((share * 1000.0) as usize).clamp(1, 1000) - 1];
            let found = delays.at(share).unwrap().as_nanos();
            assert!(found >= exact && found <= exact + exact / 32, "{share}: {found} for {exact}");
        }
        assert_eq!((delays.packets(), delays.max()), (1000, Time::from_nanos(999 * 90_000)));
    }
}
