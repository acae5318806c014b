//! The change `tobit_filter`: estimates the bandwidth with a Tobit Kalman
//! filter instead of the windowed maximum (Chiariotti, Zanella, Kucera,
//! Claussen, "BBR-S: A Low-Latency BBR Modification for Fast-Varying
//! Connections", IEEE Access 9, 2021).
//!
//! On a varying path, a maximum holds on to the best moment and queues the
//! difference. A Kalman filter follows the mean, but a delivery rate cannot
//! exceed the sending rate: a sample at that limit only means "at least this
//! much". The Tobit Kalman filter (Allik et al., IEEE Transactions on Control
//! Systems Technology 24(1), 2016) models such censored samples:
//! ```text
//!   a      = (limit - x) / s                 s: deviation of a measurement
//!   p      = Phi(a)                          probability that y is below the limit
//!   l      = phi(a) / Phi(a)
//!   E(y)   = p (x - s l) + (1 - p) limit
//!   Var(y) = s^2 (1 - l (l + a))             of those below the limit
//!   K      = P p / (p^2 P + Var(y))
//!   x     += K (y - E(y)),   P *= 1 - K p
//! ```
//! If the limit is far above the estimate, this is the Kalman filter; a limit
//! far below the estimate teaches nothing, as it should for an
//! application-limited sample.
//!
//! The paper's abstract says that the filter is adaptive, for unknown noise
//! statistics, and gives results; its constants were not available. Ours are:
//! - *The limit* of a sample is the rate at which its data was sent, or the
//!   slowest pace of the last two rounds if that is faster: a full window sends
//!   as fast as acknowledgements arrive, and it is the path that slows those.
//! - *One sample a round*, the last one: samples of one flight overlap, and their
//!   noise is not independent. On a short path a flight is a burst, and its first
//!   acknowledgement counts the silence before it but not what follows: a filter of
//!   such samples falls to a fraction of the path, because nothing takes the best.
//! - *A sample below its limit* moves the estimate no further than to itself. K
//!   gives little weight to a sample that should have been at its limit, and is
//!   far above 1 there.
//! - *Drift*: from round to round the bandwidth does a random walk of 5 %.
//! - *Adaptation*: with correct statistics, the signs of the innovations alternate.
//!   The part of an innovation that the filter's variances do not explain is drift
//!   if it has the same sign as the last one, and adds to the variance of the
//!   estimate; otherwise it is noise, and the noise variance follows with a weight
//!   of 1/8. The deviation of the noise stays between 0.5 and 25 % of the estimate.
//! - *Start-up* uses the maximum, because it grows faster than a random walk;
//!   the filter starts from its last value with a deviation of 25 %.

use super::bandwidth::PacketRate;

/// Deviation of the random walk per round, as a fraction of the estimate.
const DRIFT: f64 = 0.05;

/// Deviation of the first estimate and of the first measurement, likewise.
const FIRST_ESTIMATE: f64 = 0.25;
const FIRST_NOISE: f64 = 0.1;

/// Bounds of the deviation of a measurement, likewise.
const NOISE: (f64, f64) = (0.005, 0.25);

/// Weight of the latest innovation in the noise variance.
const WEIGHT: f64 = 0.125;

/// Number of deviations beyond which censoring is certain or impossible.
const FAR: f64 = 8.0;

/// Least fraction of the noise variance that a censored sample has.
const LEAST_VARIANCE: f64 = 1e-3;

/// The filter; rates in packets per microsecond times 2^24.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tobit {
    /// Estimate of the bandwidth; zero before the filter has started.
    mean: f64,
    /// Variance of the estimate, and of a measurement.
    variance: f64,
    noise: f64,
    /// The last innovation below a limit.
    last: f64,
    /// Slowest pace of this round, and of the previous one.
    paces: [u64; 2],
    /// The last sample and its limit.
    pub(super) measured: Option<(PacketRate, PacketRate)>,
}

impl Tobit {
    /// Records the current pace and returns the slowest of this round and the
    /// previous one; with `round_start` the next round begins.
    pub(super) fn pace(&mut self, pace: u64, round_start: bool) -> u64 {
        self.paces[0] = self.paces[0].min(pace);
        let slowest = self.paces[0].min(self.paces[1]);
        if round_start {
            self.paces = [pace, self.paces[0]];
        }
        slowest
    }

    /// Adds a measurement that cannot exceed `limit` and returns the estimate.
    /// On the first call the filter starts at `first`.
    pub(super) fn update(
        &mut self,
        first: PacketRate,
        rate: PacketRate,
        limit: PacketRate,
    ) -> PacketRate {
        if self.mean == 0.0 {
            let mean = f64::from(first.max(1));
            let square = |part: f64| (part * mean) * (part * mean);
            self.mean = mean;
            self.variance = square(FIRST_ESTIMATE);
            self.noise = square(FIRST_NOISE);
        }
        self.take(f64::from(rate), f64::from(limit.max(rate)));
        self.mean as PacketRate
    }

    fn take(&mut self, measured: f64, limit: f64) {
        self.variance += (DRIFT * self.mean) * (DRIFT * self.mean);
        let deviation = self.noise.sqrt();
        let away = ((limit - self.mean) / deviation).clamp(-FAR, FAR);
        let (below, ratio) = normal(away);
        let expected = below * (self.mean - deviation * ratio) + (1.0 - below) * limit;
        let left = self.noise * (1.0 - ratio * (ratio + away)).max(LEAST_VARIANCE);
        let innovation = measured - expected;
        let free = measured < limit;
        if free {
            self.adapt(innovation, below, left);
        }
        let gain = self.variance * below / (below * below * self.variance + left);
        let mut mean = self.mean + gain * innovation;
        if free {
            mean = mean.clamp(measured.min(self.mean), measured.max(self.mean));
        }
        self.mean = mean.clamp(1.0, f64::from(PacketRate::MAX));
        self.variance *= 1.0 - gain * below;
        let bounds = (NOISE.0 * self.mean, NOISE.1 * self.mean);
        self.noise = self.noise.clamp(bounds.0 * bounds.0, bounds.1 * bounds.1);
    }

    /// Attributes the part of an innovation that neither variance explains to
    /// the bandwidth if it has the same sign as the last one, otherwise to the
    /// measurement.
    fn adapt(&mut self, innovation: f64, below: f64, left: f64) {
        let explained = below * below * self.variance + left;
        let unexplained = (innovation * innovation - explained).max(0.0);
        if innovation * self.last > 0.0 {
            self.variance += unexplained;
        } else {
            self.noise += WEIGHT * (unexplained - self.noise);
        }
        self.last = innovation;
    }

    /// Converts rates in packets to a new segment size.
    pub(super) fn rescale(&mut self, old_mss: u64, new_mss: u64) {
        let factor = old_mss as f64 / new_mss as f64;
        self.mean *= factor;
        self.variance *= factor * factor;
        self.noise *= factor * factor;
        self.paces = [0; 2];
        self.measured = None;
    }
}

/// Returns the standard normal distribution function at `x`, and the ratio of the
/// density to it: Abramowitz and Stegun, 26.2.17, and 26.2.14 from two deviations
/// below the mean on, because the censored variance needs an exact ratio there.
fn normal(x: f64) -> (f64, f64) {
    const SLOPE: f64 = 0.231_641_9;
    const TERMS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    const DEPTH: u32 = 60;
    let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    if x < -2.0 {
        let ratio = (1..=DEPTH).rev().fold(-x, |rest, k| f64::from(k) / rest - x);
        return (density / ratio, ratio);
    }
    let t = 1.0 / (1.0 + SLOPE * x.abs());
    let tail = density * TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let below = if x < 0.0 { tail } else { 1.0 - tail };
    (below, density / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of the normal distribution; the ratio at 0 is 1 / (sqrt(2 pi) / 2).
    #[test]
    fn the_normal_distribution() {
        for (x, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_7),
            (-1.0, 0.158_655_3),
            (1.959_964, 0.975),
            (-3.0, 0.001_349_9),
        ] {
            assert!((normal(x).0 - expected).abs() < 1e-6, "{x}: {}", normal(x).0);
        }
        assert!((normal(-4.0).1 - 4.225_6).abs() < 1e-3, "{}", normal(-4.0).1);
        assert!((normal(0.0).1 - 0.797_884_6).abs() < 1e-5);
        // Mills' ratio: |x| + 1/|x| - 2/|x|^3 … far below zero.
        assert!((normal(-8.0).1 - 8.1215).abs() < 1e-3, "{}", normal(-8.0).1);
    }

    fn at(mean: f64, deviation: f64, noise: f64) -> Tobit {
        Tobit { mean, variance: deviation * deviation, noise: noise * noise, ..Tobit::default() }
    }

    /// With limits far above, the step is the Kalman filter's own. P = 100^2 + 50^2
    /// = 12500, r = 100^2, K = 12500 / 22500; x = 1000 + K (1180 - 1000) = 1100.
    #[test]
    fn without_a_limit_it_is_the_kalman_filter() {
        let mut filter = at(1000.0, 100.0, 100.0);
        filter.take(1180.0, 1e9);
        assert!((filter.mean - 1100.0).abs() < 1e-3, "{}", filter.mean);
        assert!((filter.variance - 12_500.0 * (1.0 - 5.0 / 9.0)).abs() < 0.1);
    }

    /// The limit equals the estimate: p = 1/2, l = 0.7979, E(y) = 1000 - 100 x
    /// 0.39894, Var(y) = 100^2 (1 - 0.63662), K = 6250 / (3125 + 3633.8).
    #[test]
    fn at_the_limit_it_rises() {
        let mut filter = at(1000.0, 100.0, 100.0);
        filter.take(1000.0, 1000.0);
        let expected = 1000.0 + 6250.0 / (3125.0 + 3633.8) * 39.894;
        assert!((filter.mean - expected).abs() < 0.05, "{} for {expected}", filter.mean);
    }

    /// A sample limited far below the estimate teaches nothing.
    #[test]
    fn what_the_application_limits_is_no_evidence() {
        let mut filter = at(1000.0, 20.0, 20.0);
        for _ in 0..20 {
            filter.take(100.0, 100.0);
        }
        assert!((filter.mean - 1000.0).abs() < 1.0, "{}", filter.mean);
    }

    /// A link of 1000 with 10 % noise, paced at 1.25, 0.75 and six times 1 of
    /// the estimate: the mean of the estimate is the link's rate; the maximum
    /// of ten samples would be 15 % above (1.54 deviations).
    #[test]
    fn the_mean_of_a_noisy_link() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut filter, mut sum) = (at(500.0, 125.0, 50.0), 0.0);
        for round in 0..4_000 {
            let noise: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let gain = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][round % 8];
            let sent = gain * filter.mean;
            filter.take((1000.0 + 100.0 * noise).min(sent), sent);
            if round >= 2_000 {
                sum += filter.mean / 2_000.0;
            }
        }
        assert!((940.0..1_060.0).contains(&sum), "{sum}");
    }

    /// The estimate follows a fall by half within ten rounds of full measurements.
    #[test]
    fn a_fall_is_followed() {
        let mut filter = at(1000.0, 50.0, 20.0);
        let rounds = (1..).find(|_| {
            filter.take(500.0, filter.mean);
            filter.mean < 550.0
        });
        assert!(rounds.is_some_and(|rounds| rounds <= 10), "{rounds:?}");
    }

    #[test]
    fn other_segments_are_other_rates() {
        let mut filter = at(1000.0, 100.0, 50.0);
        filter.rescale(1000, 500);
        assert_eq!((filter.mean, filter.variance, filter.noise), (2000.0, 40_000.0, 10_000.0));
    }
}
