//! The rest of a burst: full segments of which it is certain that they leave,
//! one after another and each with more behind it, so that nothing has to be
//! asked for each.

use super::timer::TimerKind;
use super::{Sender, timestamp};
use crate::scoreboard::Sent;
use crate::wire::{Segment, SegmentKind};
use knee_units::Time;

/// Segments of new data that differ in their number alone. None ends a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The first of them.
    pub first: Segment,
    /// How many there are.
    pub count: u32,
}

impl Sender {
    /// The burst under way has more than one segment left.
    #[inline]
    pub fn burst_goes_on(&self, now: Time) -> bool {
        self.pacer.left(now) > 1
    }

    /// Segments that [`poll_new`](Self::poll_new), which has just given the one
    /// before, would give next, as far as that is certain. Nothing is left to do
    /// after the last of them but to ask again.
    #[inline]
    pub fn poll_rest(&mut self, now: Time) -> Option<Burst> {
        let waiting = self.written - self.board.sent_bytes();
        let offered = self.receive_window - self.board.outstanding_bytes();
        let count = self.certain_rest(now, waiting.min(offered));
        (count > 0).then(|| self.send_rest(now, count))
    }

    /// How many there are while `waiting` bytes may be sent: each is of the burst
    /// under way, and so is one that follows it.
    #[inline]
    pub(crate) fn certain_rest(&self, now: Time, waiting: u64) -> u32 {
        let of_burst = self.pacer.left(now);
        if of_burst < 2 || self.notes_sent || !self.stays_armed(now) {
            return 0;
        }
        let room = self.window().saturating_sub(self.board.in_flight()).min(waiting);
        let full = room.min(u64::from(u32::MAX)) as u32 / self.mss;
        full.min(of_burst).saturating_sub(1)
    }

    /// What is sent now does not touch the timer.
    #[inline]
    fn stays_armed(&self, now: Time) -> bool {
        let other = self.timer.kind != TimerKind::Probe && self.timer.deadline != Time::MAX;
        other || self.timer.sent_at == now
    }

    /// Sends what the connection gives a subflow; see
    /// [`certain_rest`](Self::certain_rest).
    #[inline]
    pub(crate) fn send_mapped_rest(&mut self, now: Time, count: u32) -> Burst {
        self.written += u64::from(count) * u64::from(self.mss);
        self.send_rest(now, count)
    }

    #[inline]
    fn send_rest(&mut self, now: Time, count: u32) -> Burst {
        let len = self.mss as u16;
        let number = self.board.next();
        let mut sent = Sent {
            len,
            in_flight: self.board.in_flight() as u32,
            lost: self.counters.lost_bytes as u32,
            order: self.counters.sent_segments as u32,
            ..Sent::default()
        };
        self.sampler.on_sent(now, false, &mut sent);
        for _ in 0..count {
            sent.in_flight = sent.in_flight.wrapping_add(self.mss);
            self.board.push(sent);
            sent.order = sent.order.wrapping_add(1);
            self.charge(len);
        }
        let first = Segment {
            kind: SegmentKind::Data,
            number,
            len,
            timestamp: timestamp(now),
            retransmission: false,
            window_reduced: false,
            push: false,
            ack_request: self.ack_request,
        };
        Burst { first, count }
    }
}
