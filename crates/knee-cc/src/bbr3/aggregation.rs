//! `extra_acked`: data acknowledged at once beyond what the bandwidth explains, on
//! links that bunch packets or acknowledgements. The window is widened by it, so
//! that sending continues through the silence between two bunches (section 5.5.9).

use super::Bbr3;
use crate::bbr::filter::RunningMax;
use crate::{Connection, Sample};
use knee_units::Time;

/// Rounds that the maximum covers, once the pipe has been full.
const ROUNDS: u32 = 10;

/// Rounds that the maximum covers before that: while rates grow, an old excess is
/// soon small beside a new one.
const ROUNDS_IN_STARTUP: u32 = 1;

/// State of the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    interval_start: Time,
    /// Bytes acknowledged since `interval_start`.
    acked: u64,
    /// Largest excess, bytes.
    filter: RunningMax,
}

impl Aggregation {
    /// Starts a new interval.
    pub(super) fn restart(&mut self, now: Time) {
        self.interval_start = now;
        self.acked = 0;
    }
}

impl Bbr3 {
    /// `UpdateACKAggregation`.
    #[inline]
    pub(super) fn update_aggregation(&mut self, sample: &Sample, connection: &Connection) {
        if sample.newly_acked == 0 {
            return;
        }
        let now = connection.now;
        let passed = now.saturating_sub(self.aggregation.interval_start);
        let mut expected = bytes_in(self.bw, passed);
        if self.aggregation.acked <= expected {
            self.aggregation.restart(now);
            expected = 0;
        }
        let aggregation = &mut self.aggregation;
        aggregation.acked += sample.newly_acked;
        let extra = aggregation.acked.saturating_sub(expected).min(self.window);
        let rounds = if self.full_pipe.reached { ROUNDS } else { ROUNDS_IN_STARTUP };
        let extra = extra.min(u64::from(u32::MAX)) as u32;
        aggregation.filter.update(rounds, self.bandwidth.rounds, extra);
    }

    /// Returns the bytes by which the window is widened.
    #[inline]
    pub(super) fn extra_acked(&self) -> u64 {
        let extra = u64::from(self.aggregation.filter.get());
        match self.config.extra_acked_limit {
            Time::MAX => extra,
            limit => extra.min(bytes_in(self.bw, limit)),
        }
    }
}

/// Returns the bytes that `rate` delivers in `time`.
#[inline]
fn bytes_in(rate: u64, time: Time) -> u64 {
    rate.saturating_mul(time.as_micros()) / 1_000_000
}
