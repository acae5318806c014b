//! A monitor interval: what was sent in it, and the outcome (section 3 of the paper).

use crate::Loss;
use knee_units::Time;

/// Counts of one monitor interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    pub(super) start: Time,
    pub(super) end: Time,
    acked: u64,
    lost: u64,
    /// Whether the application limited what was sent.
    pub(super) limited: bool,
    /// Sums for the regression of RTT on time, in seconds since `start`.
    samples: f64,
    sum_t: f64,
    sum_rtt: f64,
    sum_tt: f64,
    sum_t_rtt: f64,
}

/// Slopes of the RTT up to this value are noise (section 4.3).
const NOISE: f64 = 0.01;

/// Coefficients of the utility (section 3.1): exponent of the rate, penalty for
/// a rising RTT, penalty for loss.
const EXPONENT: f64 = 0.9;
const LATENCY_PRICE: f64 = 900.0;
const LOSS_PRICE: f64 = 11.35;

impl Interval {
    pub(super) fn new(start: Time, length: Time) -> Interval {
        Interval { start, end: start + length, ..Interval::default() }
    }

    /// Whether a segment sent at `sent_at` belongs to the interval.
    fn has(&self, sent_at: Time) -> bool {
        (self.start..self.end).contains(&sent_at)
    }

    pub(super) fn on_ack(&mut self, sent_at: Time, bytes: u64, rtt: Option<Time>, limited: bool) {
        if !self.has(sent_at) {
            return;
        }
        self.acked += bytes;
        self.limited |= limited;
        let Some(rtt) = rtt else { return };
        let (t, rtt) = ((sent_at - self.start).as_secs_f64(), rtt.as_secs_f64());
        self.samples += 1.0;
        self.sum_t += t;
        self.sum_rtt += rtt;
        self.sum_tt += t * t;
        self.sum_t_rtt += t * rtt;
    }

    pub(super) fn on_loss(&mut self, loss: &Loss) {
        if self.has(loss.sent_at) {
            self.lost += loss.bytes;
        }
    }

    /// Whether no outcome is known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.acked + self.lost == 0
    }

    /// Returns d(RTT)/dT by least squares, with noise removed.
    fn slope(&self) -> f64 {
        let spread = self.samples * self.sum_tt - self.sum_t * self.sum_t;
        if self.samples < 2.0 || spread <= 0.0 {
            return 0.0;
        }
        let slope = (self.samples * self.sum_t_rtt - self.sum_t * self.sum_rtt) / spread;
        if slope.abs() < NOISE { 0.0 } else { slope }
    }

    fn loss_share(&self) -> f64 {
        self.lost as f64 / (self.acked + self.lost).max(1) as f64
    }

    /// Returns equation 2 for a sending rate in Mbit/s, or for what was sent if the receive window
    /// allowed less than half of it: otherwise the rate would grow without end.
    pub(super) fn utility(&self, mbit: f64) -> f64 {
        let seconds = self.end.saturating_sub(self.start).as_secs_f64();
        let sent = (self.acked + self.lost) as f64 * 8.0 / 1e6 / seconds.max(1e-6);
        let rate = if 2.0 * sent < mbit { sent } else { mbit };
        utility(rate, self.slope(), self.loss_share())
    }
}

/// Equation 2: `x^0.9 - 900 x d(RTT)/dT - 11.35 x L`, x in Mbit/s. A falling
/// RTT does not count as a gain.
fn utility(mbit: f64, slope: f64, loss: f64) -> f64 {
    mbit.powf(EXPONENT) - LATENCY_PRICE * mbit * slope.max(0.0) - LOSS_PRICE * mbit * loss
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 10^0.9 = 7.943; a slope of 0.02 costs 180, a loss of 5 % 5.675.
    #[test]
    fn utility_is_that_of_the_paper() {
        assert!((utility(10.0, 0.0, 0.0) - 7.943).abs() < 0.001);
        assert!((utility(10.0, 0.02, 0.0) - (7.943 - 180.0)).abs() < 0.001);
        assert!((utility(10.0, -0.02, 0.05) - (7.943 - 5.675)).abs() < 0.001);
    }

    /// Section 3.1: on a link of fixed rate the utility is largest at that
    /// rate, whether the excess is queued or dropped: the slope is then x / C -
    /// 1, and the loss 1 - C / x.
    #[test]
    fn utility_is_greatest_at_the_rate_of_the_link() {
        for link in [1.0_f64, 10.0, 100.0, 1000.0] {
            let queued = |x: f64| utility(x, x / link - 1.0, 0.0);
            let dropped = |x: f64| utility(x, 0.0, (1.0 - link / x).max(0.0));
            for step in 1..100 {
                let away = 0.01 * f64::from(step);
                let (below, above) = (link * (1.0 - away), link * (1.0 + away));
                for of in [&queued as &dyn Fn(f64) -> f64, &dropped] {
                    assert!(of(link) > of(below) && of(link) > of(above), "{link}, {away}");
                }
            }
        }
    }

    /// RTTs on a line give its slope, in any order.
    #[test]
    fn the_slope_is_that_of_a_line() {
        let mut interval = Interval::new(Time::from_secs(3), Time::from_millis(100));
        for ms in [50, 10, 90, 30, 70] {
            let sent = Time::from_millis(3000 + ms);
            let rtt = Time::from_micros(40_000 + 250 * ms);
            interval.on_ack(sent, 1000, Some(rtt), false);
        }
        assert!((interval.slope() - 0.25).abs() < 1e-6, "{}", interval.slope());
        let mut flat = Interval::new(Time::from_secs(3), Time::from_millis(100));
        for ms in [10, 90] {
            let rtt = Time::from_micros(40_000 + 9 * ms);
            flat.on_ack(Time::from_millis(3000 + ms), 1000, Some(rtt), false);
        }
        assert_eq!(flat.slope(), 0.0, "noise");
    }
}
