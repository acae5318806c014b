//! Response to loss (sections 5.5.10 and 5.5.11). While a flow probes, a lost
//! packet shows how much in flight is too much: this sets the long-term bound.
//! At other times, a loss means that the path has less capacity than before:
//! the short-term bounds follow what is delivered, until the next probe resets
//! them. The response to a spurious loss is undone.
//!
//! Left out: the rule for connections without selective acknowledgements, and
//! ECN, for which the draft defines no response (section 3.6): no packet is
//! sent as ECN-capable.

use super::{Bbr3, NONE, Phase, UNIT, part};
use crate::{Connection, Loss, Recovery, Sample};

/// Signals of the last round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// `bw_latest`: largest rate of the round, bytes per second.
    rate_latest: u64,
    /// `inflight_latest`: largest amount that one sample of the round delivered, bytes.
    pub(super) in_flight_latest: u64,
    /// The loss round ends when a packet sent after this many bytes were
    /// delivered is itself delivered.
    loss_round_end: u64,
    /// Whether this acknowledgement began such a round.
    pub(super) loss_round_start: bool,
    /// Whether a packet was lost in this round.
    pub(super) lost_in_round: bool,
}

impl Signals {
    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.lost_in_round = false;
        (self.rate_latest, self.in_flight_latest) = (0, 0);
    }
}

/// State that a spurious recovery restores.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The phase that the loss ended: [`Phase::Startup`] or [`Phase::Up`].
    pub(super) phase: Option<Phase>,
    pub(super) rate_short: u64,
    pub(super) in_flight_short: u64,
    pub(super) in_flight_long: u64,
    /// Whether an episode of loss is under way, and the fields above were saved for it.
    saved: bool,
}

impl Bbr3 {
    /// `UpdateLatestDeliverySignals`.
    #[inline]
    pub(super) fn update_signals(&mut self, sample: &Sample, connection: &Connection) {
        let signals = &mut self.signals;
        signals.loss_round_start = false;
        if self.bandwidth.sample == 0 {
            return;
        }
        signals.rate_latest = signals.rate_latest.max(self.bandwidth.sample);
        signals.in_flight_latest = signals.in_flight_latest.max(sample.delivered);
        if sample.prior_delivered >= signals.loss_round_end {
            signals.loss_round_end = connection.delivered;
            signals.loss_round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    #[inline]
    pub(super) fn advance_signals(&mut self, sample: &Sample) {
        if self.signals.loss_round_start {
            self.signals.rate_latest = self.bandwidth.sample;
            self.signals.in_flight_latest = sample.delivered;
        }
    }

    /// The second half of `UpdateCongestionSignals`: updates the short-term
    /// bounds once per round (section 5.5.10.3).
    #[inline]
    pub(super) fn adapt_short_term(&mut self) {
        if !self.signals.loss_round_start {
            return;
        }
        if self.signals.lost_in_round && !self.probes_bandwidth() {
            self.lower_short_term();
        }
        self.signals.lost_in_round = false;
    }

    fn lower_short_term(&mut self) {
        if self.rate_short == NONE {
            self.rate_short = self.bandwidth.max();
        }
        if self.in_flight_short == NONE {
            // A timeout has cut the window, which says nothing about the
            // capacity of the path: use the earlier window (as in Linux).
            let cut = self.prior_recovery == Recovery::Loss;
            let before = if cut { self.prior_window } else { 0 };
            self.in_flight_short = self.window.max(before);
        }
        let beta = self.config.beta;
        self.rate_short = part(self.rate_short, beta).max(self.signals.rate_latest);
        self.in_flight_short = part(self.in_flight_short, beta).max(self.signals.in_flight_latest);
    }

    /// `ResetShortTermModel`.
    pub(super) fn forget_short_term(&mut self) {
        (self.rate_short, self.in_flight_short) = (NONE, NONE);
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up)
    }

    /// `IsInflightTooHigh`: whether more than 2 % of what was in flight is lost.
    #[inline]
    pub(super) fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost > part(in_flight, self.config.loss_threshold)
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_loss(&mut self, loss: &Loss, connection: &Connection) {
        if !self.undo.saved {
            self.save_for_undo();
        }
        if !self.signals.lost_in_round {
            self.signals.loss_round_end = connection.delivered;
            self.signals.lost_in_round = true;
        }
        self.loss_ranges.note(loss);
        if !self.cycle.samples_probe {
            return; // not sent while probing
        }
        let lost = connection.lost.saturating_sub(loss.lost_at_send);
        if self.is_too_high(lost, loss.in_flight_at_send) {
            let in_flight = self.in_flight_at_loss(lost, loss);
            self.handle_too_high(in_flight, loss.app_limited, connection);
        }
    }

    /// `InflightAtLoss`: the point in this packet at which the losses crossed the
    /// threshold; before the packet if earlier losses had crossed it (as in Linux).
    pub(super) fn in_flight_at_loss(&self, lost: u64, loss: &Loss) -> u64 {
        let threshold = self.config.loss_threshold;
        let in_flight_before = loss.in_flight_at_send.saturating_sub(loss.bytes);
        let lost_before = lost.saturating_sub(loss.bytes);
        let room = part(in_flight_before, threshold).saturating_sub(lost_before);
        let kept = u64::from((UNIT - threshold.min(UNIT)).max(1));
        in_flight_before + room * u64::from(UNIT) / kept
    }

    /// `HandleInflightTooHigh`. If the application limited it, the probe did
    /// not test how much fits, and the bound stays.
    fn handle_too_high(&mut self, in_flight: u64, app_limited: bool, connection: &Connection) {
        self.cycle.too_high = true;
        self.cycle.samples_probe = false; // one response per probe
        if !app_limited {
            let least = part(self.target_in_flight(), self.config.beta);
            self.in_flight_long = in_flight.max(least);
        }
        if self.phase == Phase::Up {
            self.undo.phase = Some(Phase::Up);
            self.start_down(connection);
        }
    }

    /// `SaveStateUponLoss`, once per episode. The draft saves again in each
    /// round with loss and when recovery begins; the changes made by the first
    /// losses could then never be undone.
    fn save_for_undo(&mut self) {
        self.save_window();
        self.undo = Undo {
            phase: None,
            rate_short: self.rate_short,
            in_flight_short: self.in_flight_short,
            in_flight_long: self.in_flight_long,
            saved: true,
        };
    }

    /// Called when fast recovery begins, or its equivalent.
    pub(super) fn on_recovery_start(&mut self) {
        if !self.undo.saved {
            self.save_for_undo();
        }
    }

    /// `OnEnterRTO`: leaves room for one packet more than is in flight.
    pub(super) fn on_timeout(&mut self, connection: &Connection) {
        self.on_recovery_start();
        self.window = connection.in_flight + u64::from(self.mss);
        self.prior_recovery = Recovery::Loss;
    }

    /// Called when recovery is over: restores the earlier window, within the
    /// bounds that the next acknowledgement sets.
    pub(super) fn on_recovery_end(&mut self) {
        self.restore_window();
        self.undo.saved = false;
    }

    /// Tracks recovery from one acknowledgement to the next. Losses that
    /// started no recovery (with QUIC, losses of data sent before the last
    /// recovery began) are not an episode.
    #[inline]
    pub(super) fn follow_recovery(&mut self, recovery: Recovery) {
        self.prior_recovery = recovery;
        self.undo.saved &= !matches!(recovery, Recovery::Open | Recovery::Disorder);
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn on_spurious(&mut self, connection: &Connection) {
        self.restore_window();
        self.signals.lost_in_round = false;
        self.full_pipe.restart(0);
        self.rate_short = self.rate_short.max(self.undo.rate_short);
        self.in_flight_short = self.in_flight_short.max(self.undo.in_flight_short);
        self.in_flight_long = self.in_flight_long.max(self.undo.in_flight_long);
        self.undo.saved = false;
        match self.undo.phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_pipe.reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if self.phase != Phase::Up && self.phase != Phase::ProbeRtt => {
                self.start_refill(connection);
            }
            _ => {}
        }
    }

    /// `SaveCwnd`: saves the last window that neither loss nor PROBE_RTT had cut.
    pub(super) fn save_window(&mut self) {
        let cut = self.undo.saved || self.phase == Phase::ProbeRtt;
        self.prior_window = if cut { self.prior_window.max(self.window) } else { self.window };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}
