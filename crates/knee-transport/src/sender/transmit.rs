//! Determines what is sent, and when.

use super::{Handshake, Probe, Sender, TimerKind, timestamp};
use crate::scoreboard::{LOST, RETRANSMISSION_OUT, Sent};
use crate::wire::{Segment, SegmentKind};
use crate::{after, before};
use knee_cc::{Event, Recovery};
use knee_units::Time;

/// Answer to [`Sender::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Send this segment, then poll again.
    Segment(Segment),
    /// Send nothing before this time, unless an ACK arrives.
    At(Time),
    /// Send nothing until an ACK, a timer or the application.
    Nothing,
}

/// Why no new data may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Pacing delays it until this time, unless an ACK arrives.
    Until(Time),
    /// It requires an ACK, a timer or the application.
    ForEvent,
}

/// New data that may be sent now: at least one segment.
pub(super) struct Admitted {
    /// Bytes written by the application and not yet sent.
    pub waiting: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes for which both windows have room.
    pub room: u64,
}

impl Sender {
    /// Returns what to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Transmit {
        if self.handshake != Handshake::Done {
            return self.poll_handshake(now);
        }
        if !self.sends_only_new()
            && let Some(first) = self.poll_recovery(now)
        {
            return first;
        }
        self.poll_new(now)
    }

    /// Whether the connection is open and has only new data to send: then
    /// [`poll_new`](Self::poll_new) returns the same as
    /// [`poll_transmit`](Self::poll_transmit).
    #[inline]
    pub fn sends_only_new(&self) -> bool {
        self.handshake == Handshake::Done
            && !self.only_new_data
            && !self.probe_due
            && self.lost.is_empty()
    }

    /// Returns what recovery or a probe has to send before new data; `None` if nothing.
    #[cold]
    fn poll_recovery(&mut self, now: Time) -> Option<Transmit> {
        if self.only_new_data && !self.probe_due {
            let new = self.poll_new(now);
            if new != Transmit::Nothing || !self.ends_doubt() {
                return Some(new);
            }
        }
        if self.lost.is_empty() && !self.probe_due {
            return None;
        }
        let first = self.poll_again(now);
        // What was lost goes before new data, even if shorter new data would fit (RFC 6675,
        // section 5, NextSeg; Linux's window counts packets).
        let held = !self.lost.is_empty();
        (first != Transmit::Nothing || held).then_some(first)
    }

    /// Whether F-RTO found nothing new to send after a timeout: it cannot
    /// decide, and recovery continues (RFC 5682, section 3.1, step 2b).
    #[cold]
    fn ends_doubt(&mut self) -> bool {
        let cannot_tell = self.recovery == Recovery::Loss && self.board.next() == self.high;
        if cannot_tell {
            self.only_new_data = false;
            self.timeout_in_doubt = false;
        }
        cannot_tell
    }

    #[cold]
    pub(super) fn poll_handshake(&mut self, now: Time) -> Transmit {
        if self.handshake == Handshake::SynSent {
            return Transmit::Nothing;
        }
        self.handshake = Handshake::SynSent;
        self.arm_retransmission(now);
        Transmit::Segment(Segment {
            kind: SegmentKind::Syn,
            number: 0,
            len: 0,
            timestamp: timestamp(now),
            retransmission: false,
            window_reduced: false,
            push: false,
            ack_request: self.ack_request,
        })
    }

    /// Returns the new data to send now.
    #[inline]
    pub fn poll_new(&mut self, now: Time) -> Transmit {
        match self.admit(now) {
            Ok(admitted) => Transmit::Segment(self.send_admitted(now, &admitted)),
            Err(Wait::Until(time)) => Transmit::At(time),
            Err(Wait::ForEvent) => Transmit::Nothing,
        }
    }

    /// Sends one segment of the data that may be sent now.
    pub(super) fn send_admitted(&mut self, now: Time, admitted: &Admitted) -> Segment {
        let push = self.ends(admitted, 1);
        let len = admitted.waiting.min(u64::from(self.mss));
        self.send_new(now, len, admitted.in_flight, push)
    }

    /// Whether the last of `count` segments sent now is pushed because nothing
    /// follows soon.
    #[inline(always)]
    pub(super) fn ends(&self, admitted: &Admitted, count: u32) -> bool {
        let mss = u64::from(self.mss);
        let before = u64::from(count - 1) * mss;
        let (waiting, room) = (admitted.waiting - before, admitted.room - before);
        let more = waiting.saturating_sub(mss);
        let follows = more > 0 && mss + more.min(mss) <= room;
        more == 0 || self.pacer.ends_burst(count, follows)
    }

    /// Returns how much new data may be sent now. If any, a burst has begun.
    #[inline(always)]
    pub(super) fn admit(&mut self, now: Time) -> Result<Admitted, Wait> {
        let waiting = self.written - self.board.sent_bytes();
        let in_flight = self.board.in_flight();
        if waiting == 0 {
            self.out_of_data(in_flight);
            return Err(Wait::ForEvent);
        }
        let len = waiting.min(u64::from(self.mss));
        let window = self.window();
        if in_flight + len > window {
            self.note_window_use(true);
            return Err(Wait::ForEvent);
        }
        let offered = self.receive_window - self.board.outstanding_bytes();
        if len > offered {
            self.begin_receive_limited(now);
            self.note_window_use(false);
            return Err(Wait::ForEvent);
        }
        let room = (window - in_flight).min(offered);
        if !self.pacer.in_burst(now) {
            if !self.pacer.is_due(now) {
                self.note_window_use(false);
                return Err(Wait::Until(self.pacer.next()));
            }
            if self.defers(now, waiting, room) {
                self.note_window_use(room < offered);
                return Err(Wait::ForEvent);
            }
            // At most half of the window (`tcp_cwnd_test`).
            let half = window / 2 / u64::from(self.mss);
            self.pacer.begin_burst(now, half.min(u64::from(self.quantum)) as u32);
        }
        Ok(Admitted { waiting, in_flight, room })
    }

    /// Whether a burst with little `room` waits for an ACK that is due within a
    /// millisecond and allows a longer burst: larger bursts save a host work,
    /// but idling for them costs rate (`tcp_tso_should_defer` of Linux 6.18).
    #[inline]
    fn defers(&mut self, now: Time, waiting: u64, room: u64) -> bool {
        const SOON: Time = Time::from_millis(1);
        let mss = u64::from(self.mss);
        if waiting <= mss
            || room >= u64::from(self.quantum) * mss
            || room >= self.window().min(self.receive_window) / 3
            || matches!(self.recovery, Recovery::Recovery | Recovery::Loss)
            || self.board.is_empty()
            || now > self.pacer.last() + SOON
        {
            return false;
        }
        let first = self.board.first();
        let srtt = self.rtt.smoothed();
        let expected = self.board.get(first).sent_at + srtt;
        expected <= now + SOON.min(srtt / 2)
    }

    #[inline]
    pub(super) fn send_new(&mut self, now: Time, len: u64, in_flight: u64, push: bool) -> Segment {
        if in_flight == 0 {
            self.begin_busy(now);
            self.tell(now, Event::SentAfterIdle);
        }
        let nothing_outstanding = self.board.is_empty();
        let mut sent = Sent {
            len: len as u16,
            in_flight: (in_flight + len) as u32,
            lost: self.counters.lost_bytes as u32,
            order: self.counters.sent_segments as u32,
            ..Sent::default()
        };
        self.sampler.on_sent(now, nothing_outstanding, &mut sent);
        let number = self.board.push(sent);
        self.charge(len as u16);
        self.arm_after_sending(now, nothing_outstanding);
        if self.notes_sent {
            self.note_sent(now, number, len);
        }
        Segment {
            kind: SegmentKind::Data,
            number,
            len: len as u16,
            timestamp: timestamp(now),
            retransmission: false,
            window_reduced: std::mem::take(&mut self.announce_reduction),
            push,
            ack_request: self.ack_request,
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, len: u16) {
        self.pacer.on_sent(len, self.counters.sent_segments);
        self.counters.sent_segments += 1;
        self.counters.sent_bytes += u64::from(len);
    }

    /// Called when the application has no more data: if the window has room and
    /// nothing waits to be retransmitted, rate samples up to this point
    /// underestimate the path (`tcp_rate_check_app_limited`).
    #[inline]
    pub(super) fn out_of_data(&mut self, in_flight: u64) {
        if in_flight < self.window() && self.lost.is_empty() {
            self.sampler.mark_app_limited(in_flight);
        }
        self.note_window_use(in_flight + u64::from(self.mss) > self.window());
    }

    /// Records for one round whether the window was the limit (`tcp_cwnd_validate`).
    #[inline]
    pub(super) fn note_window_use(&mut self, limited: bool) {
        if limited || !before(self.board.first(), self.usage_end) {
            self.window_limited = limited;
            self.usage_end = self.board.next();
        }
    }

    /// Returns a probe or a lost segment, if one may be sent. Neither window nor pacing holds
    /// back the segment that timed out (RFC 6298, section 5.4; `tcp_retransmit_timer`).
    #[cold]
    pub(super) fn poll_again(&mut self, now: Time) -> Transmit {
        if self.probe_due {
            self.probe_due = false;
            return Transmit::Segment(self.send_probe(now));
        }
        let timed_out = std::mem::take(&mut self.first_due);
        while let Some(&number) = self.lost.front() {
            if !self.waits_for_retransmission(number) {
                self.lost.pop_front();
                continue;
            }
            if timed_out && number == self.board.first() {
                self.lost.pop_front();
                return Transmit::Segment(self.send_again(now, number, false));
            }
            let len = u64::from(self.board.get(number).len);
            if self.board.in_flight() + len > self.window() {
                self.note_window_use(true);
                return Transmit::Nothing;
            }
            if !self.pacer.admit(now, self.quantum) {
                return Transmit::At(self.pacer.next());
            }
            self.lost.pop_front();
            return Transmit::Segment(self.send_again(now, number, false));
        }
        Transmit::Nothing
    }

    fn waits_for_retransmission(&mut self, number: u32) -> bool {
        !before(number, self.board.first())
            && after(self.board.next(), number)
            && self.board.get(number).flags & (LOST | RETRANSMISSION_OUT) == LOST
    }

    /// Sends the tail loss probe: a new segment if there is one and the
    /// receiver's window has room, otherwise the last one again. The congestion
    /// window does not block it (RFC 8985, section 7.3).
    fn send_probe(&mut self, now: Time) -> Segment {
        self.counters.probes += 1;
        let waiting = (self.written - self.board.sent_bytes()).min(u64::from(self.mss));
        let room = self.board.outstanding_bytes() + waiting <= self.receive_window;
        let new = waiting > 0 && room;
        let segment = if new {
            self.send_new(now, waiting, self.board.in_flight(), true)
        } else {
            self.send_again(now, self.board.next().wrapping_sub(1), true)
        };
        self.probed = self.counters.sent_segments;
        self.probe = Some(Probe { high: self.board.next(), retransmission: !new });
        self.arm_retransmission(now);
        segment
    }

    fn send_again(&mut self, now: Time, number: u32, probe: bool) -> Segment {
        if self.board.in_flight() == 0 && self.recovery != Recovery::Loss {
            self.tell(now, Event::SentAfterIdle);
        }
        self.board.mark_retransmitted(number);
        let (in_flight, lost) = (self.board.in_flight() as u32, self.counters.lost_bytes as u32);
        let order = self.counters.sent_segments as u32;
        let sent = self.board.get(number);
        sent.in_flight = in_flight;
        sent.lost = lost;
        sent.order = order;
        let len = sent.len;
        self.sampler.on_sent(now, false, sent);
        self.rack.on_retransmitted(number, order);
        if !probe {
            self.undo.on_retransmitted(now);
        }
        self.charge(len);
        self.counters.retransmitted_bytes += u64::from(len);
        self.counters.retransmitted_segments += 1;
        // The timeout of the first segment runs from its last transmission
        // (`tcp_xmit_retransmit_queue`), once a reordering timer has expired.
        let first = number == self.board.first();
        if self.timer.deadline == Time::MAX || (first && self.timer.kind != TimerKind::Reordering) {
            self.arm_retransmission(now);
        } else if first {
            self.timer.timeout_at = now + self.rtt.rto();
        }
        if self.notes_sent {
            self.note_sent(now, number, u64::from(len));
        }
        Segment {
            kind: SegmentKind::Data,
            number,
            len,
            timestamp: timestamp(now),
            retransmission: true,
            window_reduced: false,
            push: false,
            ack_request: self.ack_request,
        }
    }
}
