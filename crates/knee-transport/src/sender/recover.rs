//! Loss recovery: when it begins, when it ends, when it was a mistake
//! (`tcp_fastretrans_alert`).

use super::{Sender, Undo};
use crate::before;
use crate::prr::Reduction;
use crate::rack::Detection;
use crate::wire::Ack;
use knee_cc::{Event, Recovery, Sample};
use knee_units::Time;

use super::acknowledge::Progress;

impl Sender {
    /// Runs recovery for an ACK that was not plain. Returns when to look
    /// again for a loss that cannot be decided yet.
    #[inline(never)]
    pub(super) fn recover(
        &mut self,
        now: Time,
        ack: &Ack,
        progress: &Progress,
        sample: &mut Sample,
    ) -> Option<Time> {
        self.end_probe(now, ack, progress);
        self.end_recovery(now, ack);
        self.undo_early(now, ack, progress);
        let found = if self.board.sacked_segments > 0 || self.in_recovery() {
            self.detect_losses(now)
        } else {
            Detection::default()
        };
        sample.newly_lost = found.lost;
        // Also when a recovery has just ended while segments sent after its
        // start are marked lost: the next one follows on the same ACK, and no
        // controller sees an open state between them (`tcp_time_to_recover`).
        if self.board.lost_bytes > 0 && !self.in_recovery() {
            self.enter_recovery(now);
        }
        if !self.in_recovery() {
            self.keep_open(now, ack);
        }
        if self.reducing {
            let mss = u64::from(self.mss);
            let (in_flight, target) = (self.board.in_flight(), self.decision.window);
            let growing = progress.advanced && found.lost == 0;
            self.reduction.on_ack(sample.newly_acked, in_flight, target, mss, growing);
        }
        found.look_again
    }

    fn in_recovery(&self) -> bool {
        matches!(self.recovery, Recovery::Recovery | Recovery::Loss)
    }

    pub(super) fn detect_losses(&mut self, now: Time) -> Detection {
        let in_recovery = self.in_recovery();
        let found = self.rack.detect(now, &mut self.board, &self.rtt, in_recovery, &mut self.lost);
        self.counters.lost_bytes += found.lost;
        found
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.counters.recoveries += 1;
        self.high = self.board.next();
        // Retransmissions of an earlier recovery may be under way: they count,
        // from when the first of them was sent (Linux's `tcp_init_undo`, and
        // `retrans_stamp`, which then stays).
        let outstanding = self.board.retransmission_bytes.div_ceil(u64::from(self.mss)) as u32;
        self.undo = Undo {
            possible: true,
            unconfirmed: outstanding,
            retransmitted: outstanding > 0,
            first_timestamp: self.undo.first_timestamp,
        };
        let prior_window = self.window();
        let reducing_already = self.reducing;
        self.recovery = Recovery::Recovery;
        if !reducing_already {
            self.tell(now, Event::RecoveryStart);
            self.start_reduction(prior_window);
        }
        self.probe = None;
    }

    fn start_reduction(&mut self, prior_window: u64) {
        if self.needs.proportional_rate_reduction {
            self.reducing = true;
            self.reduction = Reduction::start(prior_window);
        }
    }

    /// Not in recovery: `Disorder` while something is out of order, and a
    /// reduction once per window on an ECN echo (RFC 3168, section 6.1.2).
    fn keep_open(&mut self, now: Time, ack: &Ack) {
        let echo = ack.congestion_echo && !self.needs.accurate_ecn;
        if echo && self.recovery != Recovery::WindowReduced {
            let prior_window = self.window();
            self.recovery = Recovery::WindowReduced;
            self.high = self.board.next();
            self.announce_reduction = true;
            self.undo.possible = false;
            self.tell(now, Event::CongestionEcho);
            self.start_reduction(prior_window);
        }
        if self.recovery != Recovery::WindowReduced {
            let disorder = self.board.sacked_segments > 0
                || self.board.lost_bytes > 0
                || self.board.retransmission_bytes > 0;
            self.recovery = if disorder { Recovery::Disorder } else { Recovery::Open };
        }
    }

    /// All that was sent before recovery began is acknowledged.
    fn end_recovery(&mut self, now: Time, ack: &Ack) {
        let first = self.board.first();
        if before(first, self.high) {
            return;
        }
        match self.recovery {
            Recovery::WindowReduced if first != self.high => self.finish(now),
            Recovery::Recovery | Recovery::Loss => {
                self.rack.on_recovery_end();
                if self.may_undo(ack) {
                    self.undo_reduction(now, false);
                } else {
                    self.finish(now);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, now: Time) {
        self.recovery = Recovery::Open;
        self.reducing = false;
        self.timeout_in_doubt = false;
        self.tell(now, Event::RecoveryEnd);
    }

    /// Undo before recovery is complete: by timestamps on a partial ACK
    /// (Eifel, RFC 3522), by D-SACK, or by F-RTO when data that was not sent
    /// again after the timeout is acknowledged (RFC 5682).
    fn undo_early(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        match self.recovery {
            Recovery::Recovery
                if progress.advanced
                    && self.undo.possible
                    && self.was_delayed(ack)
                    && self.board.retransmission_bytes == 0 =>
            {
                self.undo_reduction(now, true);
            }
            Recovery::Loss => {
                let spurious = self.timeout_in_doubt && progress.original;
                if spurious || (progress.advanced && self.may_undo(ack)) {
                    self.undo_reduction(now, true);
                } else if progress.advanced {
                    self.timeout_in_doubt = false;
                }
            }
            // The last duplicate may arrive after recovery was complete.
            Recovery::Open | Recovery::Disorder
                if progress.duplicate && self.undo.possible && self.all_needless() =>
            {
                self.undo_reduction(now, false);
            }
            _ => {}
        }
    }

    fn may_undo(&self, ack: &Ack) -> bool {
        self.undo.possible && (self.all_needless() || self.was_delayed(ack))
    }

    /// Every retransmission was reported as a duplicate.
    fn all_needless(&self) -> bool {
        self.undo.retransmitted && self.undo.unconfirmed == 0
    }

    /// The ACK echoes a timestamp from before the first retransmission: the
    /// original arrived (Eifel, RFC 3522).
    fn was_delayed(&self, ack: &Ack) -> bool {
        self.undo.retransmitted && before(ack.timestamp_echo, self.undo.first_timestamp)
    }

    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            let mut number = self.board.first();
            while number != self.board.next() {
                self.board.unmark_lost(number);
                number = number.wrapping_add(1);
            }
            self.lost.clear();
        }
        self.counters.spurious_recoveries += 1;
        self.recovery = Recovery::Open;
        self.reducing = false;
        self.undo.possible = false;
        self.timeout_in_doubt = false;
        self.tell(now, Event::SpuriousRecovery);
    }

    /// A probe's end (`tcp_process_tlp_ack`): when it was a retransmission
    /// and no D-SACK tells that the original arrived too, it repaired a loss,
    /// and the window is reduced as for any loss (RFC 8985, section 7.4.2).
    fn end_probe(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        let Some(probe) = self.probe else { return };
        if before(ack.number, probe.high) && !progress.duplicate {
            return;
        }
        self.probe = None;
        let repaired = probe.retransmission
            && !progress.duplicate
            && crate::after(ack.number, probe.high.wrapping_sub(1))
            && !self.was_original(ack, progress);
        if repaired && !self.in_recovery() {
            self.high = self.board.next();
            self.recovery = Recovery::WindowReduced;
            self.tell(now, Event::RecoveryStart);
            self.finish(now);
        }
    }

    /// The ACK of the probed segment is for its first transmission.
    fn was_original(&self, ack: &Ack, progress: &Progress) -> bool {
        let sent = progress.newest.sent;
        progress.newest.valid && before(ack.timestamp_echo, super::timestamp(sent.sent_at))
    }
}
