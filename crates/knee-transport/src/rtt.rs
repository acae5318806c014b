//! RTT estimation and the retransmission timeout (RFC 6298), as Linux
//! computes them.

use knee_units::Time;

/// Timeout before the first RTT sample: 1 s (RFC 6298, section 2.1).
const INITIAL_RTO: Time = Time::from_secs(1);
/// Largest timeout: 120 s, Linux's `TCP_RTO_MAX`.
const RTO_MAX: Time = Time::from_secs(120);
/// Window of the minimum RTT: 300 s, Linux's `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Time = Time::from_secs(300);

/// Smoothed RTT, its variation, the timeout and the minimum.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    latest: Time,
    smoothed: Time,
    mean_deviation: Time,
    /// Largest mean deviation in the current round.
    deviation_max: Time,
    variation: Time,
    /// Segment that ends the round over which the deviation is maximised.
    round_end: u32,
    minimum: Time,
    minimum_at: Time,
    largest: Time,
    smallest: Time,
    rto_min: Time,
    rto: Time,
}

impl RttEstimator {
    /// Creates an estimator without a sample; the timeout never falls below the
    /// smoothed RTT plus `rto_min`.
    pub fn new(rto_min: Time) -> RttEstimator {
        RttEstimator {
            latest: Time::ZERO,
            smoothed: Time::ZERO,
            mean_deviation: Time::ZERO,
            deviation_max: Time::ZERO,
            variation: Time::ZERO,
            round_end: 0,
            minimum: Time::ZERO,
            minimum_at: Time::ZERO,
            largest: Time::ZERO,
            smallest: Time::MAX,
            rto_min,
            rto: INITIAL_RTO,
        }
    }

    /// Updates the smoothed RTT, its variation and the timeout with a sample.
    /// `acknowledged` and `next` are the first unacknowledged and the next new
    /// segment: the variation falls only once per round.
    ///
    /// This departs from RFC 6298 in the same two ways as Linux: the variation
    /// is a round's largest mean deviation and decays slowly, so that many
    /// samples per round do not shrink it; and an RTT below the smoothed one
    /// changes the mean deviation with a gain of 1/32.
    #[inline]
    pub fn update(&mut self, rtt: Time, acknowledged: u32, next: u32) {
        if self.smoothed == Time::ZERO {
            self.first(rtt, next);
        } else {
            self.smooth(rtt);
            if crate::after(acknowledged, self.round_end) {
                self.end_round(next);
            }
        }
        self.rto = (self.smoothed + self.variation).min(RTO_MAX);
    }

    fn first(&mut self, rtt: Time, next: u32) {
        self.smoothed = rtt;
        self.mean_deviation = rtt / 2;
        self.deviation_max = (rtt * 2).max(self.rto_min);
        self.variation = self.deviation_max;
        self.round_end = next;
    }

    /// `mean_deviation` here is the deviation itself; Linux stores four times
    /// its value, which is what the timeout adds.
    #[inline]
    fn smooth(&mut self, rtt: Time) {
        let (rtt, smoothed) = (rtt.as_nanos() as i64, self.smoothed.as_nanos() as i64);
        let error = rtt - smoothed;
        self.smoothed = Time::from_nanos((smoothed + error / 8) as u64);
        let deviation = self.mean_deviation.as_nanos() as i64;
        let mut change = error.abs() - deviation;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.mean_deviation = Time::from_nanos((deviation + change / 4) as u64);
        let four = self.mean_deviation * 4;
        if four > self.deviation_max {
            self.deviation_max = four;
            self.variation = self.variation.max(four);
        }
    }

    fn end_round(&mut self, next: u32) {
        if self.deviation_max < self.variation {
            self.variation -= (self.variation - self.deviation_max) / 4;
        }
        self.round_end = next;
        self.deviation_max = self.rto_min;
    }

    /// Updates the minimum with the RTT of the segment sent last; it expires
    /// after 300 s. Linux keeps the three best samples of the window instead of
    /// one; the two differ only after those 300 s.
    #[inline(always)]
    pub fn update_minimum(&mut self, now: Time, rtt: Time) {
        self.latest = rtt;
        self.largest = self.largest.max(rtt);
        self.smallest = self.smallest.min(rtt);
        let expired = now.saturating_sub(self.minimum_at) > MIN_RTT_WINDOW;
        if rtt <= self.minimum || self.minimum == Time::ZERO || expired {
            self.minimum = rtt;
            self.minimum_at = now;
        }
    }

    /// Returns the last sample; zero before the first.
    #[inline]
    pub fn latest(&self) -> Time {
        self.latest
    }
    /// Returns SRTT; zero before the first sample.
    #[inline]
    pub fn smoothed(&self) -> Time {
        self.smoothed
    }
    /// Returns the minimum over the last 300 s; zero before the first sample.
    #[inline]
    pub fn minimum(&self) -> Time {
        self.minimum
    }
    /// Returns the mean deviation from the smoothed RTT (RTTVAR of RFC 6298).
    pub fn deviation(&self) -> Time {
        self.mean_deviation
    }
    /// Returns four times the mean deviation, at least the smallest timeout.
    pub fn variation(&self) -> Time {
        self.variation
    }
    /// Returns the smallest and largest sample ever; `None` before the first.
    pub fn range(&self) -> Option<(Time, Time)> {
        (self.largest > Time::ZERO).then_some((self.smallest, self.largest))
    }
    /// Returns the smallest difference of the timeout from the smoothed RTT.
    #[inline]
    pub fn rto_min(&self) -> Time {
        self.rto_min
    }
    /// Returns the retransmission timeout, backed off since the last sample.
    #[inline]
    pub fn rto(&self) -> Time {
        self.rto
    }
    /// Doubles the timeout until the next sample (RFC 6298, section 5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(RTO_MAX);
    }
}
