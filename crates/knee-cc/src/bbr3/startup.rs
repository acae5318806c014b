//! STARTUP and DRAIN: doubles the rate until the pipe is full, which shows in a
//! rate that no longer grows or in losses; then drains the queue that this left
//! (sections 5.3.1 and 5.3.2).
//!
//! Left out: the rule for connections without selective acknowledgements.

use super::config::StartupLoss;
use super::{Bbr3, Phase};
use crate::{Connection, Loss, Recovery, Sample};

/// Growth in a round that shows that the pipe is not full: 25 %, as a fraction.
const GROWTH: (u64, u64) = (5, 4);

/// Rounds without growth after which the pipe counts as full: time for a
/// receive window to grow and for one round of congestion to pass.
const FLAT_ROUNDS: u8 = 3;

/// Estimator of whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// `full_bw`: rate from which growth is measured, bytes per second.
    pub(super) rate: u64,
    /// `full_bw_count`: rounds without growth.
    pub(super) rounds: u8,
    /// `full_bw_now`: full since the last restart of the estimator.
    pub(super) now: bool,
    /// `full_bw_reached`: full at least once.
    pub(super) reached: bool,
}

impl FullPipe {
    /// `ResetFullBW`, with `rate` as the new base.
    #[inline]
    pub(super) fn restart(&mut self, rate: u64) {
        (self.rate, self.rounds, self.now) = (rate, 0, false);
    }

    /// `CheckFullBWReached`, at the start of a round that only the path limited.
    fn check(&mut self, rate: u64) {
        if rate.saturating_mul(GROWTH.1) >= self.rate.saturating_mul(GROWTH.0) {
            return self.restart(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= FLAT_ROUNDS;
        self.reached |= self.now;
    }
}

/// Losses of one round as ranges of sent data: packets lost consecutively form one range.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRanges {
    pub(super) count: u32,
    /// Start and end of the last lost packet, in total bytes sent.
    last: (u64, u64),
}

impl LossRanges {
    /// Counts a loss. Sent data is delivered, lost or in flight: the sum of the
    /// three gives the bytes sent up to the end of a packet, and so which
    /// packets are consecutive.
    pub(super) fn note(&mut self, loss: &Loss) {
        let end = loss.in_flight_at_send + loss.delivered_at_send + loss.lost_at_send;
        let begin = end.saturating_sub(loss.bytes);
        let joins = self.count > 0 && (begin == self.last.1 || end == self.last.0);
        self.count = self.count.saturating_add(u32::from(!joins));
        self.last = (begin, end);
    }
}

impl Bbr3 {
    #[inline]
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        if self.bandwidth.round_start && !sample.app_limited && !self.full_pipe.now {
            self.full_pipe.check(self.bandwidth.sample);
        }
    }

    /// `CheckStartupDone`.
    #[inline]
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if !self.full_pipe.reached {
            self.check_high_loss(sample);
        }
        if self.signals.loss_round_start {
            self.loss_ranges = LossRanges::default();
        }
        if self.phase == Phase::Startup && self.full_pipe.reached {
            self.phase = Phase::Drain;
            self.drain_start_round = self.bandwidth.rounds;
        }
    }

    /// `CheckStartupHighLoss`, at the end of a round that began with a loss:
    /// the connection was in fast recovery until this acknowledgement. (With
    /// QUIC's recovery this acknowledgement may have ended it.) With `startup_loss = "at-once"` no
    /// round has to end.
    fn check_high_loss(&mut self, sample: &Sample) {
        let round_over = self.signals.loss_round_start && self.prior_recovery == Recovery::Recovery;
        let high = (round_over || self.config.startup_loss == StartupLoss::AtOnce)
            && self.loss_ranges.count >= self.config.startup_loss_ranges
            && self.is_too_high(sample.lost_since_send, sample.in_flight_at_send);
        if !high {
            return;
        }
        self.undo.phase = Some(Phase::Startup);
        self.full_pipe.now = true;
        self.full_pipe.reached = true;
        let delivered =
            if self.config.startup_keeps_delivered { self.signals.in_flight_latest } else { 0 };
        self.in_flight_long = self.bdp(self.bandwidth.max()).max(delivered);
    }

    /// `CheckDrainDone`.
    #[inline]
    pub(super) fn check_drain_done(&mut self, connection: &Connection) {
        if self.phase != Phase::Drain {
            return;
        }
        let rounds = self.bandwidth.rounds.wrapping_sub(self.drain_start_round);
        if connection.in_flight <= self.in_flight_target(self.bw)
            || rounds > self.config.drain_rounds
        {
            self.start_down(connection);
        }
    }
}
