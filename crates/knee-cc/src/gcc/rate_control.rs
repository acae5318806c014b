//! The delay-based estimate and its three states (section 5.5).

use super::detector::Signal;
use super::incoming::Incoming;
use knee_units::Time;

/// Decrease, beta (section 5.6).
const BETA: f64 = 0.85;
/// Factor of the multiplicative increase per second.
const ETA: f64 = 1.08;
/// Limit of the estimate, relative to the incoming rate.
const HEADROOM: f64 = 1.5;
/// Response time of estimator and detector, added to the RTT.
const REACTION: Time = Time::from_millis(100);
/// Least additive increase of an update, in bits.
const LEAST_INCREASE: f64 = 1000.0;
/// Frame rate and maximum packet size, in bits, for the expected packet size.
const FRAME_RATE: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// Weight of the previous average.
const SMOOTHING: f64 = 0.95;
/// Standard deviations within which a rate is close to the average.
const CLOSE: f64 = 3.0;
/// Bounds of the variance over the average, in bit/s, as in libwebrtc (0.4 and 2.5 kbit/s):
/// a first rate has no variance, so that nothing would be close to it.
const VARIANCE: (f64, f64) = (400.0, 2500.0);

/// The states of the table in section 5.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Hold,
    Increase,
    Decrease,
}

/// Average and variance of the incoming rate where the path was over-used.
#[derive(Clone, Copy, Debug)]
struct Known {
    mean: f64,
    variance: f64,
}

impl Known {
    fn take(known: Option<Known>, rate: f64) -> Known {
        let mut known = known.unwrap_or(Known { mean: rate, variance: 0.0 });
        known.mean = SMOOTHING * known.mean + (1.0 - SMOOTHING) * rate;
        let off = rate - known.mean;
        known.variance = SMOOTHING * known.variance + (1.0 - SMOOTHING) * off * off;
        let (least, most) = VARIANCE;
        known.variance = known.variance.clamp(least * known.mean, most * known.mean);
        known
    }

    /// How far a rate may be from the mean to be close.
    fn reach(&self) -> f64 {
        CLOSE * self.variance.sqrt()
    }
}

/// The delay-based controller's second half.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    /// A_hat, in bit/s.
    pub(super) estimate: f64,
    pub(super) stage: Stage,
    /// Whether the last increase was additive.
    pub(super) additive: bool,
    known: Option<Known>,
    pub(super) incoming: Incoming,
}

impl RateControl {
    pub(super) fn new(estimate: f64) -> RateControl {
        RateControl {
            estimate,
            stage: Stage::Increase,
            additive: false,
            known: None,
            incoming: Incoming::default(),
        }
    }

    /// Reacts to over-use at once. The incoming rate of the last half second is the rate
    /// that the path carries.
    pub(super) fn over_use(&mut self, incoming: Option<f64>) {
        let incoming = incoming.unwrap_or(self.estimate);
        if self.stage != Stage::Decrease {
            self.known = Some(Known::take(self.known, incoming));
        }
        self.stage = Stage::Decrease;
        // Never upwards: the sender may have had less to send until now.
        self.estimate = self.estimate.min(BETA * incoming);
    }

    /// Ends a period: changes the state by the table, and increases in the increase state.
    pub(super) fn update(
        &mut self,
        signal: Option<Signal>,
        incoming: Option<f64>,
        since: Time,
        rtt: Time,
    ) {
        self.stage = match (self.stage, signal) {
            (stage, None | Some(Signal::Over)) => stage,
            (Stage::Hold, Some(Signal::Normal)) => Stage::Increase,
            (Stage::Decrease, Some(_)) => Stage::Hold,
            (Stage::Increase, Some(Signal::Under)) => Stage::Hold,
            (stage, Some(_)) => stage,
        };
        if self.stage == Stage::Increase {
            self.increase(incoming, since, rtt);
        }
    }

    fn increase(&mut self, incoming: Option<f64>, since: Time, rtt: Time) {
        self.additive = self.close(incoming);
        let grown = if self.additive {
            self.estimate + additive(self.estimate, since, rtt)
        } else {
            self.estimate * ETA.powf(since.as_secs_f64().min(1.0))
        };
        let most = incoming.map_or(f64::INFINITY, |rate| HEADROOM * rate);
        self.estimate = grown.min(most).max(self.estimate);
    }

    /// Returns whether the rate is close to convergence. Discards the average if the
    /// incoming rate is above it.
    fn close(&mut self, incoming: Option<f64>) -> bool {
        let (Some(known), Some(rate)) = (self.known, incoming) else { return false };
        if rate > known.mean + known.reach() {
            self.known = None;
            return false;
        }
        rate >= known.mean - known.reach()
    }
}

/// Half a packet per response time, in bit/s.
fn additive(estimate: f64, since: Time, rtt: Time) -> f64 {
    let response = (REACTION + rtt).as_secs_f64();
    let alpha = 0.5 * (since.as_secs_f64() / response).min(1.0);
    let frame = estimate / FRAME_RATE;
    let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
    (alpha * packet).max(LEAST_INCREASE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Signal::{Normal, Under};

    const PERIOD: Time = Time::from_millis(100);
    const RTT: Time = Time::from_millis(40);

    fn at(stage: Stage) -> RateControl {
        RateControl { stage, ..RateControl::new(1e6) }
    }

    /// Every cell of the table in section 5.5.
    #[test]
    fn states_follow_the_table() {
        use Stage::{Decrease, Hold, Increase};
        for from in [Hold, Increase, Decrease] {
            let mut control = at(from);
            control.over_use(None);
            assert_eq!(control.stage, Decrease, "{from:?}");
        }
        let table = [
            (Hold, Normal, Increase),
            (Increase, Normal, Increase),
            (Decrease, Normal, Hold),
            (Hold, Under, Hold),
            (Increase, Under, Hold),
            (Decrease, Under, Hold),
        ];
        for (from, signal, to) in table {
            let mut control = at(from);
            control.update(Some(signal), None, PERIOD, RTT);
            assert_eq!(control.stage, to, "{from:?}, {signal:?}");
        }
    }

    /// 1.08 in a second of ten periods, and after a silence for one second at most.
    #[test]
    fn far_from_convergence_it_grows_by_8_percent_in_a_second() {
        let mut control = at(Stage::Increase);
        for _ in 0..10 {
            control.update(Some(Normal), None, PERIOD, RTT);
        }
        assert!((control.estimate - 1.08e6).abs() < 1.0, "{}", control.estimate);
        control.update(Some(Normal), None, Time::from_secs(5), RTT);
        assert!((control.estimate - 1.08e6 * 1.08).abs() < 1.0, "{}", control.estimate);
    }

    /// By hand at 1 Mbit/s: a picture has 33 333 bits, four packets of 8333; half of one in
    /// 140 ms is 2976 bits in 100 ms. At 200 kbit/s a picture is one packet of 6667 bits:
    /// 2381; and in 10 ms the least of 1000.
    #[test]
    fn the_additive_increase_is_half_a_packet() {
        assert!((additive(1e6, PERIOD, RTT) - 2976.2).abs() < 0.1);
        assert!((additive(2e5, PERIOD, RTT) - 2381.0).abs() < 0.1);
        assert_eq!(additive(2e5, Time::from_millis(10), RTT), 1000.0);
        // Never more than half a packet.
        assert!((additive(1e6, Time::from_secs(3), RTT) - 4166.7).abs() < 0.1);
    }

    /// Over-use at 1 Mbit/s of incoming rate gives 850 kbit/s. The standard deviation is
    /// then sqrt(400 x 1e6) = 20 kbit/s: from 940 to 1060 kbit/s it is close.
    #[test]
    fn it_decreases_to_85_percent_and_remembers_where() {
        let mut control = at(Stage::Increase);
        control.estimate = 1.1e6;
        control.over_use(Some(1e6));
        assert!((control.estimate - 0.85e6).abs() < 1e-6);
        assert!(!control.close(Some(0.93e6)));
        assert!(control.close(Some(0.95e6)));
        assert!(control.close(Some(1.05e6)));
        assert!(!control.close(Some(1.07e6)), "the path has changed");
        assert!(!control.close(Some(1e6)), "and what was known of it is forgotten");
    }

    /// Within one decrease the average counts it once, and the estimate only falls.
    #[test]
    fn a_decrease_that_goes_on_only_falls() {
        let mut control = at(Stage::Increase);
        control.over_use(Some(1e6));
        control.over_use(Some(2e6));
        assert!((control.estimate - 0.85e6).abs() < 1e-6);
        assert!((control.known.unwrap().mean - 1e6).abs() < 1e-6);
        control.over_use(Some(0.8e6));
        assert!((control.estimate - 0.68e6).abs() < 1e-6);
    }

    /// A sender that has only 500 kbit/s to send does not come beyond 750.
    #[test]
    fn the_estimate_stays_near_what_is_sent() {
        let mut control = RateControl::new(0.6e6);
        for _ in 0..1000 {
            control.update(Some(Normal), Some(0.5e6), PERIOD, RTT);
        }
        assert!((control.estimate - 0.75e6).abs() < 1e-6, "{}", control.estimate);
    }
}
