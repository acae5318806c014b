//! A player's estimate of throughput, from the segments so far.
//!
//! The lower of two moving averages with different half-lives: a decrease shows at once, an
//! increase only when it lasts. A segment is weighted by its transfer time.

use knee_units::Time;

/// Half-lives of the two averages, s (`throughputFastHalfLifeSeconds`,
/// `throughputSlowHalfLifeSeconds`).
const HALF_LIVES_S: [f64; 2] = [3.0, 8.0];
/// Weight of a second of transfer
/// (`weightDownloadTimeMultiplicationFactor`, there per millisecond).
const WEIGHT_PER_SECOND: f64 = 1.5;

/// Exponentially weighted moving averages of throughput.
#[derive(Default)]
pub(crate) struct Throughput {
    averages_bps: [f64; 2],
    weight: f64,
}

impl Throughput {
    /// Adds a segment of `bytes` that took `span` from its first byte to its last. The wait for the
    /// first byte does not count (`useDeadTimeLatency`); a segment that arrived all at once gives
    /// no measurement.
    pub fn add(&mut self, bytes: u64, span: Time) {
        if span == Time::ZERO {
            return;
        }
        let seconds = span.as_secs_f64();
        let sample_bps = bytes as f64 * 8.0 / seconds;
        let weight = WEIGHT_PER_SECOND * seconds;
        for (average, half_life) in self.averages_bps.iter_mut().zip(HALF_LIVES_S) {
            let kept = 0.5_f64.powf(weight / half_life);
            *average = (1.0 - kept) * sample_bps + kept * *average;
        }
        self.weight += weight;
    }

    /// Returns the estimate in bit/s, or `None` before the first segment. The averages begin at
    /// zero; the division corrects for that.
    pub fn average_bps(&self) -> Option<f64> {
        let unbiased = |index: usize| {
            let zeros = 0.5_f64.powf(self.weight / HALF_LIVES_S[index]);
            self.averages_bps[index] / (1.0 - zeros)
        };
        (self.weight > 0.0).then(|| unbiased(0).min(unbiased(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_what_is_measured() {
        let mut throughput = Throughput::default();
        assert_eq!(throughput.average_bps(), None);
        throughput.add(1000, Time::ZERO);
        assert_eq!(throughput.average_bps(), None);
        for milliseconds in [1, 2000, 40, 7000] {
            throughput.add(milliseconds * 250, Time::from_millis(milliseconds));
            let average = throughput.average_bps().expect("a segment arrived");
            assert!((average / 2e6 - 1.0).abs() < 1e-9, "{average}");
        }
    }

    /// By hand: 2 s weigh 3, one fast half-life. From 4 to 1 Mbit/s the fast average is (2/4 of 1 +
    /// 1/4 of 4) / (3/4) = 2 Mbit/s. From 1 to 4 it is 3; with k = 2^(-3/8) the slow one is (1 (k -
    /// k²) + 4 (1 - k)) / (1 - k²) = (k + 4) / (1 + k) = 2.694.
    #[test]
    fn a_fall_shows_sooner_than_a_rise() {
        let measured = |rates_mbps: [u64; 2]| {
            let mut throughput = Throughput::default();
            for mbps in rates_mbps {
                throughput.add(mbps * 250_000, Time::from_secs(2));
            }
            throughput.average_bps().expect("segments arrived") / 1e6
        };
        assert!((measured([4, 1]) - 2.0).abs() < 1e-9);
        let k = 0.771_105_412_7;
        assert!((measured([1, 4]) - (k + 4.0) / (1.0 + k)).abs() < 1e-9);
    }
}
