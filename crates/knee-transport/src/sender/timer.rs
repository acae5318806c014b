//! The single retransmission timer: reordering, tail loss probe or timeout.

use super::{Handshake, Sender, Undo};
use crate::rack::DUPLICATE_THRESHOLD;
use crate::scoreboard::{LOST, RETRANSMISSION_OUT, SACKED};
use knee_cc::{Event, Recovery, RecoveryPeriod};
use knee_units::Time;

/// Added to the probe timeout in case an ACK is only late: two ticks of a 1000
/// Hz clock, Linux's `TCP_TIMEOUT_MIN`.
const PROBE_SLACK: Time = Time::from_millis(2);

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// The controller requested to be woken, or has failed.
    Controller,
    /// The SYN was not answered.
    Handshake,
    /// A segment may still turn out lost (RACK).
    Reordering,
    /// Tail loss probe.
    Probe,
    /// Retransmission timeout.
    Retransmit,
}

/// The timer; a deadline of [`Time::MAX`] means disarmed.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub kind: TimerKind,
    pub deadline: Time,
    /// When it was last armed after sending, if since then nothing happened
    /// except further sending; otherwise [`Time::MAX`].
    pub sent_at: Time,
    /// While the timer is one of reordering or a probe: when the timeout that it replaced would
    /// come.
    pub timeout_at: Time,
}

impl Timer {
    pub const DISARMED: Timer = Timer::new(TimerKind::Retransmit, Time::MAX);

    pub const fn new(kind: TimerKind, deadline: Time) -> Timer {
        Timer { kind, deadline, sent_at: Time::MAX, timeout_at: deadline }
    }
}

impl Sender {
    /// Processes the expiry of the timer.
    #[cold]
    pub fn on_timer(&mut self, now: Time) {
        debug_assert!(now >= self.timer());
        if self.wake < self.timer.deadline {
            return self.wake_controller(now);
        }
        self.timer.deadline = Time::MAX;
        self.only_new_data = false;
        if self.handshake != Handshake::Done {
            self.handshake = Handshake::SynDue;
            self.timeouts_in_a_row += 1;
            self.rtt.back_off();
            return;
        }
        match self.timer.kind {
            TimerKind::Reordering => self.on_reordering_timer(now),
            TimerKind::Probe => {
                if self.board.is_empty() {
                    return;
                }
                self.probe_due = true;
            }
            TimerKind::Controller | TimerKind::Handshake | TimerKind::Retransmit => {
                self.on_timeout(now)
            }
        }
    }

    /// Arms the timer after an ACK that `restarts` the timeout, or that leaves a loss undecided.
    #[inline]
    pub(super) fn arm_after_ack(&mut self, now: Time, restarts: bool, look_again: Option<Time>) {
        if self.board.is_empty() {
            self.timer.deadline = Time::MAX;
        } else if let Some(at) = look_again {
            let timeout_at = if restarts { now + self.rtt.rto() } else { self.timeout_at() };
            self.arm_reordering(at.max(now), timeout_at);
        } else {
            self.arm_probe_or_timeout(now, now, Time::MAX);
        }
    }

    /// Arms the reordering timer, no later than the timeout, which only an ACK that restarts it
    /// puts off (RFC 6298, section 5.3). Linux's `tcp_rack_mark_lost` forgets the timeout
    /// meanwhile (RFC 8985, section 8: one timer at a time): while each ACK leaves another hole,
    /// a first segment that RACK does not look at would never be sent again.
    #[inline(never)]
    fn arm_reordering(&mut self, at: Time, timeout_at: Time) {
        let timer = Timer::new(TimerKind::Reordering, at.min(timeout_at));
        self.timer = Timer { timeout_at, ..timer };
    }

    /// Returns when the timeout comes if nothing restarts it.
    fn timeout_at(&mut self) -> Time {
        match self.timer.kind {
            TimerKind::Probe => {
                let first = self.board.first();
                self.timer.deadline.max(self.board.get(first).sent_at + self.rtt.rto())
            }
            _ => self.timer.timeout_at,
        }
    }

    /// Arms the timer after a new segment was sent.
    #[inline(always)]
    pub(super) fn arm_after_sending(&mut self, now: Time, nothing_outstanding: bool) {
        // For the rest of a burst the probe's deadline is unchanged.
        if self.timer.sent_at != now {
            self.arm_after_first(now, nothing_outstanding);
        }
    }

    #[inline(always)]
    fn arm_after_first(&mut self, now: Time, nothing_outstanding: bool) {
        let idle = nothing_outstanding || self.timer.deadline == Time::MAX;
        if idle || self.timer.kind == TimerKind::Probe || self.may_probe() {
            let first_sent_at = self.board.get(self.board.first()).sent_at;
            let timeout_at = if idle { Time::MAX } else { self.timer.timeout_at };
            self.arm_probe_or_timeout(now, first_sent_at, timeout_at);
            // For a single segment the probe is due later.
            if self.timer.kind == TimerKind::Probe && self.board.segments() > 1 {
                self.timer.sent_at = now;
            }
        }
    }

    /// Arms a probe, no later than the timeout, which counts from `since` (RFC 8985, section
    /// 7.2); or the timeout if no probe may be sent. If that time has passed, because an ACK
    /// restarted the timeout, the bound is `timeout_at`, where Linux's
    /// `tcp_schedule_loss_probe` has none: each new segment would put the probe off.
    #[inline]
    fn arm_probe_or_timeout(&mut self, now: Time, since: Time, timeout_at: Time) {
        if self.may_probe() {
            let probe = now + self.probe_timeout();
            let timeout = since + self.rtt.rto();
            let timeout_at = if timeout > now { timeout } else { timeout_at };
            let timer = Timer::new(TimerKind::Probe, probe.min(timeout_at.max(now)));
            self.timer = Timer { timeout_at, ..timer };
        } else {
            self.timer = Timer::new(TimerKind::Retransmit, (since + self.rtt.rto()).max(now));
        }
    }

    /// Whether a probe may be armed (RFC 8985, section 7.2): not in recovery, and nothing is
    /// selectively acknowledged.
    #[inline]
    fn may_probe(&self) -> bool {
        let calm = matches!(self.recovery, Recovery::Open | Recovery::WindowReduced);
        calm && self.probe.is_none() && self.board.sacked_segments == 0
    }

    /// Returns two smoothed RTTs; with a single segment outstanding its ACK may be
    /// delayed, so the smallest timeout is added (`tcp_schedule_loss_probe`).
    #[inline]
    fn probe_timeout(&self) -> Time {
        let smoothed = self.rtt.smoothed();
        if smoothed == Time::ZERO {
            return self.rtt.rto();
        }
        let slack = if self.board.segments() == 1 { self.rtt.rto_min() } else { PROBE_SLACK };
        smoothed * 2 + slack
    }

    pub(super) fn arm_retransmission(&mut self, now: Time) {
        self.timer = Timer::new(TimerKind::Retransmit, now + self.rtt.rto());
    }

    /// Arms the timeout that the reordering timer replaced: it counts from when the first
    /// segment was last sent (RFC 6298, section 5.1; `tcp_rearm_rto` with `tcp_rto_delta_us`),
    /// but a retransmission that waits for pacing comes first (`tcp_pacing_delay`).
    fn arm_remaining_timeout(&mut self, now: Time) {
        let sent_at = self.board.get(self.board.first()).sent_at;
        let timeout = (sent_at + self.rtt.rto()).max(now);
        let paced = if self.lost.is_empty() { now } else { self.pacer.next().max(now) };
        self.timer = Timer::new(TimerKind::Retransmit, timeout + (paced - now));
    }

    fn on_reordering_timer(&mut self, now: Time) {
        let found = self.detect_losses(now);
        let in_recovery = matches!(self.recovery, Recovery::Recovery | Recovery::Loss);
        if found.lost > 0 && !in_recovery && self.begins_recovery(&found) {
            self.enter_recovery(now);
        }
        if self.reducing && found.lost > 0 {
            let mss = u64::from(self.mss);
            let (in_flight, target) = (self.board.in_flight(), self.allowed);
            self.reduction.on_ack(mss, in_flight, target, mss, false);
        }
        match found.look_again {
            Some(at) if at > now && self.timer.timeout_at > now => {
                self.arm_reordering(at, self.timer.timeout_at);
            }
            _ if self.board.is_empty() => {}
            _ => self.arm_remaining_timeout(now),
        }
    }

    /// Processes a retransmission timeout (RFC 6298, section 5;
    /// `tcp_enter_loss`): all segments sent more than an RTT ago and not
    /// selectively acknowledged count as lost.
    fn on_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.counters.timeouts += 1;
        let before_recovery = !matches!(self.recovery, Recovery::Recovery | Recovery::Loss);
        let calm = matches!(self.recovery, Recovery::Open | Recovery::Disorder);
        if calm && self.board.sacked_segments >= DUPLICATE_THRESHOLD {
            self.rack.on_timeout_in_disorder();
        }
        // A window that is being reduced for an echo is not reduced again.
        let new_episode = calm
            || !crate::before(self.board.first(), self.high)
            || (self.recovery == Recovery::Loss && self.timeouts_in_a_row == 0);
        let undoable = self.recovery_period == RecoveryPeriod::Tcp;
        self.timeout_in_doubt = undoable && (before_recovery || self.timeouts_in_a_row > 0);
        self.timeouts_in_a_row += 1;
        self.rtt.back_off();
        self.mark_all_lost(now);
        self.tell_losses(now);
        self.set_reducing(false);
        // A probe is not one of the retransmissions for which D-SACKs are expected.
        let probe = u32::from(self.outstanding_probe());
        let unconfirmed = self.retransmissions_out() - probe;
        self.probe = None;
        self.probe_due = false;
        self.first_due = true;
        // It is sent alone, also if the burst that would have followed had begun at this very time.
        self.pacer.end_burst();
        if new_episode {
            self.undo = Undo {
                possible: undoable,
                restores: true,
                first: self.board.first(),
                unconfirmed: Undo::unconfirmed(unconfirmed),
                ..Undo::default()
            };
        }
        self.begin_period();
        self.announce_reduction = self.ecn;
        self.recovery = if new_episode { Recovery::Open } else { Recovery::Loss };
        self.tell(now, Event::Timeout);
        self.recovery = Recovery::Loss;
        self.arm_retransmission(now);
    }

    fn mark_all_lost(&mut self, now: Time) {
        let mut number = self.board.first();
        self.lost.clear();
        while number != self.board.next() {
            let sent = *self.board.get(number);
            let recent = number != self.board.first() && !self.rack.is_overdue(sent.sent_at, now);
            if sent.flags & SACKED == 0
                && !recent
                && let Some(bytes) = self.board.mark_lost(number)
            {
                self.counters.lost_bytes += bytes;
                if let Some(told) = self.told_losses() {
                    told.push(sent);
                }
            }
            if self.board.get(number).flags & (LOST | RETRANSMISSION_OUT | SACKED) == LOST {
                self.lost.push_back(number);
            }
            number = number.wrapping_add(1);
        }
    }
}
