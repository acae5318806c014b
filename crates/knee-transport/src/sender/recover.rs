//! Loss recovery: when it begins and ends, and when it was a mistake
//! (`tcp_fastretrans_alert`).
//!
//! With [`RecoveryPeriod::Quic`] it begins and ends according to RFC 9002,
//! section 7.3.2, and is never undone; losses are detected and retransmitted as
//! before. Left out from RFC 9002: its thresholds of loss detection (section
//! 6.1), its probe timeout instead of the retransmission timeout (section 6.2),
//! persistent congestion (section 7.6).

use super::{Probe, Sender, Undo, timestamp};
use crate::prr::Reduction;
use crate::rack::{Detection, Lost};
use crate::scoreboard::{EVER_RETRANSMITTED, RETRANSMISSION_OUT};
use crate::wire::Ack;
use crate::{after, before};
use knee_cc::{Event, Recovery, RecoveryPeriod, Sample};
use knee_units::Time;

use super::acknowledge::Progress;

impl Sender {
    /// Runs recovery for an ACK that is not plain. Returns when to check again
    /// for a loss that cannot be decided yet.
    #[inline(always)]
    pub(super) fn recover(
        &mut self,
        now: Time,
        ack: &Ack,
        progress: &Progress,
        sample: &mut Sample,
    ) -> Option<Time> {
        self.only_new_data = false;
        self.end_probe(now, ack, progress);
        // An ACK that only advances in Open tells of no loss (`tcp_ack_is_dubious`; RFC 8985,
        // section 6.2, looks for losses at each ACK). One that ends a recovery may: a
        // retransmission overtakes what was sent before it.
        let dubious = self.recovery != Recovery::Open
            || !progress.advanced
            || progress.sacked
            || progress.duplicate
            || ack.congestion_echo;
        if !dubious {
            return None;
        }
        self.end_recovery(now, ack, progress);
        self.undo_early(now, ack, progress);
        let held = self.only_new_data && self.recovery == Recovery::Recovery;
        let found = if held { Detection::default() } else { self.detect_losses(now) };
        sample.newly_lost = found.lost;
        // This includes the case that a recovery has just ended while segments sent
        // after it began are marked lost: the next one follows on the same ACK, and
        // no controller sees an open state in between (`tcp_time_to_recover`).
        if !self.in_recovery() && self.begins_recovery(&found) {
            self.enter_recovery(now);
        }
        if !self.in_recovery() {
            self.keep_open(now, ack, progress);
        }
        if self.reducing {
            let mss = u64::from(self.mss);
            let (in_flight, target) = (self.board.in_flight(), self.allowed);
            let growing = progress.advanced && found.lost == 0;
            self.reduction.on_ack(sample.newly_acked, in_flight, target, mss, growing);
        }
        found.look_again
    }

    /// Whether the losses begin a recovery, when not in recovery.
    pub(super) fn begins_recovery(&self, found: &Detection) -> bool {
        match self.recovery_period {
            RecoveryPeriod::Tcp => self.board.lost_bytes > 0,
            RecoveryPeriod::Quic => found.newest.is_some_and(|order| self.is_of_period(order)),
        }
    }

    /// Whether a transmission was sent after the last recovery began.
    fn is_of_period(&self, order: u32) -> bool {
        let so_far = self.counters.sent_segments;
        let since = (so_far as u32).wrapping_sub(order);
        so_far - u64::from(since) >= self.period_start
    }

    /// Whether data was acknowledged that was sent after the last recovery began.
    /// (An ACK that follows a retransmission too soon is for the original.)
    fn ends_period(&mut self, now: Time, progress: &Progress) -> bool {
        let Some(number) = progress.newest.number else { return false };
        let sent = *self.board.get(number);
        let again = sent.flags & EVER_RETRANSMITTED != 0;
        let original = again && now - sent.sent_at < self.rtt.minimum();
        !original && self.is_of_period(sent.order)
    }

    /// Begins a recovery, or a reduction instead of one.
    pub(super) fn begin_period(&mut self) {
        self.high = self.board.next();
        self.period_start = self.counters.sent_segments;
    }

    fn in_recovery(&self) -> bool {
        matches!(self.recovery, Recovery::Recovery | Recovery::Loss)
    }

    #[inline]
    pub(super) fn detect_losses(&mut self, now: Time) -> Detection {
        if self.rack.may_find(&mut self.board) {
            self.detect_overtaken(now)
        } else {
            Detection::default()
        }
    }

    #[inline(never)]
    fn detect_overtaken(&mut self, now: Time) -> Detection {
        let in_recovery = self.in_recovery();
        let attention = self.attention.as_mut().filter(|_| self.needs.losses);
        let mut lost =
            Lost { queue: &mut self.lost, told: attention.map(|attention| &mut attention.lost) };
        let found = self.rack.detect(now, &mut self.board, &self.rtt, in_recovery, &mut lost);
        self.counters.lost_bytes += found.lost;
        if found.lost > 0 && self.needs.losses {
            self.tell_losses(now);
        }
        found
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.counters.recoveries += 1;
        self.begin_period();
        // Retransmissions of an earlier recovery may be in flight: they count,
        // from the time the first of them was sent (Linux's `tcp_init_undo`,
        // and `retrans_stamp`, which is then kept). A D-SACK may report a probe, too,
        // but its time is none of theirs.
        let probe = matches!(self.probe, Some(Probe { retransmission: true, .. }));
        let outstanding = self.retransmissions_out() - u32::from(self.outstanding_probe());
        self.undo = Undo {
            possible: self.recovery_period == RecoveryPeriod::Tcp,
            restores: !self.reducing,
            first: self.board.first(),
            unconfirmed: Undo::unconfirmed(outstanding + u32::from(probe)),
            retransmitted: outstanding > 0,
            first_at: self.undo.first_at,
        };
        let prior_window = self.window();
        let reducing_already = self.reducing;
        self.recovery = Recovery::Recovery;
        if !reducing_already {
            self.announce_reduction = self.ecn;
            self.tell(now, Event::RecoveryStart);
            self.start_reduction(prior_window);
        }
        self.probe = None;
    }

    /// Returns the retransmissions that are out: D-SACKs may report them (`tcp_init_undo`).
    pub(super) fn retransmissions_out(&self) -> u32 {
        self.board.retransmission_bytes.div_ceil(u64::from(self.mss)) as u32
    }

    /// Whether a probe that repeated a segment is one of them.
    pub(super) fn outstanding_probe(&mut self) -> bool {
        let Some(Probe { high, retransmission: true }) = self.probe else { return false };
        let number = high.wrapping_sub(1);
        let outstanding = !before(number, self.board.first());
        outstanding && self.board.get(number).flags & RETRANSMISSION_OUT != 0
    }

    pub(super) fn set_reducing(&mut self, reducing: bool) {
        self.reducing = reducing;
        self.notes_sent = reducing || self.needs.sends;
    }

    fn start_reduction(&mut self, prior_window: u64) {
        if self.needs.proportional_rate_reduction {
            self.set_reducing(true);
            self.reduction = Reduction::start(prior_window);
        }
    }

    /// Updates the state outside of recovery: `Disorder` while segments are out
    /// of order, and a reduction once per window on an ECN echo (RFC 3168,
    /// section 6.1.2).
    fn keep_open(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        let echo = ack.congestion_echo && !self.needs.accurate_ecn;
        let due = match self.recovery_period {
            RecoveryPeriod::Tcp => true,
            RecoveryPeriod::Quic => self.ends_period(now, progress),
        };
        if echo && due && self.recovery != Recovery::WindowReduced {
            let prior_window = self.window();
            self.recovery = Recovery::WindowReduced;
            self.begin_period();
            self.announce_reduction = true;
            self.undo.possible = false;
            self.probe = None;
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

    /// Ends fast recovery when all data sent before it began is acknowledged; QUIC's
    /// when any data sent after it is.
    fn end_recovery(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        if self.recovery_period == RecoveryPeriod::Quic {
            return self.end_period(now, progress);
        }
        let first = self.board.first();
        if before(first, self.high) {
            return;
        }
        match self.recovery {
            Recovery::WindowReduced if first != self.high => self.finish(now),
            Recovery::Recovery => self.complete(now, ack),
            _ => {}
        }
    }

    /// Ends a recovery that is complete, or undoes it (`tcp_try_undo_recovery`).
    fn complete(&mut self, now: Time, ack: &Ack) {
        if self.may_undo(now, ack) {
            self.undo_reduction(now, false);
        } else {
            self.rack.on_recovery_end();
            self.finish(now);
        }
    }

    fn end_period(&mut self, now: Time, progress: &Progress) {
        let reduced = self.in_recovery() || self.recovery == Recovery::WindowReduced;
        if reduced && self.ends_period(now, progress) {
            if self.in_recovery() {
                self.rack.on_recovery_end();
            }
            self.finish(now);
        }
    }

    fn finish(&mut self, now: Time) {
        self.recovery = Recovery::Open;
        self.set_reducing(false);
        self.timeout_in_doubt = false;
        self.tell(now, Event::RecoveryEnd);
    }

    /// Undoes a reduction before recovery is complete: by timestamps on a
    /// partial ACK (Eifel, RFC 3522), by D-SACK, or by F-RTO (RFC 5682). A timeout's
    /// reduction is undone when recovery is complete, too.
    fn undo_early(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        match self.recovery {
            Recovery::Recovery
                if progress.advanced && self.undo.possible && self.was_delayed(now, ack) =>
            {
                self.undo_partial(now, ack, progress);
            }
            Recovery::Recovery if self.undo.possible && self.all_needless() => {
                self.undo_needless(now);
            }
            Recovery::Loss => self.process_loss(now, ack, progress),
            // The last duplicate may arrive after recovery is complete.
            Recovery::Open | Recovery::Disorder
                if progress.duplicate && self.undo.possible && self.all_needless() =>
            {
                self.undo_needless(now);
            }
            _ => {}
        }
    }

    /// Handles a hole filled by the original, which the path reordered. While
    /// retransmissions are out, new data is sent and nothing more counts as
    /// lost (`tcp_try_undo_partial`).
    fn undo_partial(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        self.note_filled_hole(now, progress.first, ack.number);
        if self.board.retransmission_bytes > 0 {
            self.only_new_data = true;
        } else {
            self.undo_reduction(now, true);
        }
    }

    /// Handles that D-SACKs have confirmed each retransmission (`tcp_try_undo_dsack`).
    fn undo_needless(&mut self, now: Time) {
        self.rack.on_needless_recovery();
        self.undo_reduction(now, false);
    }

    /// Undoes a timeout, doubts it, or ends the recovery from it once all data sent before it is
    /// acknowledged (`tcp_process_loss`). Like Linux, and unlike RFC 5682, section 3.1, step 2a,
    /// an original shows that a timeout was spurious even if the ACK covers all such data.
    fn process_loss(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        let complete =
            self.recovery_period == RecoveryPeriod::Tcp && !before(self.board.first(), self.high);
        let spurious = self.timeout_in_doubt && progress.original;
        if spurious || (progress.advanced && self.may_undo(now, ack)) {
            self.timeouts_in_a_row = 0;
            return self.undo_reduction(now, true);
        }
        if self.timeout_in_doubt {
            self.judge_timeout(progress, complete);
        }
        if complete {
            self.complete(now, ack);
        }
    }

    /// F-RTO (RFC 5682, section 3.1; `tcp_process_loss`). The first ACK that
    /// advances is answered with new data (step 2b). If the next one
    /// acknowledges that data, the timeout was not spurious (step 3a).
    fn judge_timeout(&mut self, progress: &Progress, complete: bool) {
        if after(self.board.next(), self.high) {
            let repeated = !progress.advanced && !progress.duplicate;
            self.timeout_in_doubt = !progress.sacked && !repeated;
        } else if progress.advanced && !complete {
            let waiting = self.written > self.board.sent_bytes();
            self.only_new_data = waiting && self.board.outstanding_bytes() < self.receive_window;
            self.timeout_in_doubt = self.only_new_data;
        }
    }

    fn may_undo(&self, now: Time, ack: &Ack) -> bool {
        self.undo.possible && (self.all_needless() || self.was_delayed(now, ack))
    }

    /// Whether every retransmission was reported as a duplicate.
    fn all_needless(&self) -> bool {
        self.undo.unconfirmed == 0
    }

    /// Whether the ACK echoes a timestamp from before the first retransmission,
    /// or there was no retransmission yet: the original arrived (Eifel, RFC
    /// 3522; `tcp_packet_delayed`). Timestamps tell no more once they have wrapped halfway.
    fn was_delayed(&self, now: Time, ack: &Ack) -> bool {
        const COMPARABLE: Time = Time::from_micros(1 << 31);
        let Undo { retransmitted, first_at, .. } = self.undo;
        let comparable = now.saturating_sub(first_at) < COMPARABLE;
        !retransmitted || (comparable && before(ack.timestamp_echo, timestamp(first_at)))
    }

    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            let mut number = self.board.first();
            while number != self.board.next() {
                self.board.unmark_lost(number);
                number = number.wrapping_add(1);
            }
            self.lost.clear();
            self.rack.judge_again(&mut self.board);
        }
        self.counters.spurious_recoveries += 1;
        self.recovery = Recovery::Open;
        self.set_reducing(false);
        self.timeout_in_doubt = false;
        // A reduction for an echo stays, even if a recovery or timeout after it was spurious.
        let undone = std::mem::take(&mut self.undo.possible) && self.undo.restores;
        self.tell(now, if undone { Event::SpuriousRecovery } else { Event::RecoveryEnd });
    }

    /// Ends a probe (RFC 8985, section 7.4.2; `tcp_process_tlp_ack`): it
    /// repaired a loss, which causes a reduction like any other, if an ACK goes
    /// beyond it and no ACK before showed that the original arrived too.
    fn end_probe(&mut self, now: Time, ack: &Ack, progress: &Progress) {
        let Some(probe) = self.probe else { return };
        if before(ack.number, probe.high) {
            return;
        }
        let repeated = !progress.advanced && !progress.sacked;
        let repaired = probe.retransmission && !progress.probe_duplicate && !repeated;
        if repaired && ack.number == probe.high {
            return;
        }
        self.probe = None;
        if repaired && !self.in_recovery() {
            self.begin_period();
            self.recovery = Recovery::WindowReduced;
            self.announce_reduction = self.ecn;
            self.tell(now, Event::RecoveryStart);
            self.finish(now);
        }
    }
}
