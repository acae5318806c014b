//! Bursts: segments sent at the same instant that are certain to follow each
//! other, so that nothing has to be checked for each.

use super::transmit::{Admitted, Wait};
use super::{Sender, timestamp};
use crate::scoreboard::Sent;
use crate::wire::{Segment, SegmentKind};
use knee_units::Time;

/// Segments of new data that are sent together. They differ only in their
/// number, except that the last may be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The first segment, not pushed.
    pub first: Segment,
    /// Number of segments.
    pub count: u32,
    /// Whether the last segment is pushed.
    pub push: bool,
}

impl Burst {
    pub(crate) fn of_one(segment: Segment) -> Burst {
        let push = segment.push;
        Burst { first: Segment { push: false, ..segment }, count: 1, push }
    }
}

impl Sender {
    /// Returns the segments that successive calls of [`poll_new`](Self::poll_new)
    /// would return: as many of a burst as are full and certain to be sent now. Must
    /// be called again until it returns what to wait for.
    #[inline(always)]
    pub fn poll_burst(&mut self, now: Time) -> Result<Burst, Wait> {
        let admitted = self.admit(now)?;
        let mss = u64::from(self.mss);
        let alone = self.notes_sent || self.announce_reduction;
        if alone || admitted.in_flight == 0 || admitted.waiting < mss {
            return Ok(self.send_alone(now, &admitted));
        }
        let count = self.full_segments(now, admitted.room.min(admitted.waiting));
        let push = self.ends(&admitted, count);
        Ok(self.send_burst(now, admitted.in_flight, count, push))
    }

    /// Returns how many full segments of the current burst fit into `room` bytes.
    #[inline(always)]
    fn full_segments(&self, now: Time, room: u64) -> u32 {
        let (left, mss) = (self.pacer.left(now), u64::from(self.mss));
        if u64::from(left) * mss <= room { left } else { (room / mss) as u32 }
    }

    /// Sends a single segment, after which much may change.
    #[inline(never)]
    fn send_alone(&mut self, now: Time, admitted: &Admitted) -> Burst {
        Burst::of_one(self.send_admitted(now, admitted))
    }

    /// Sends `count` full segments while others are in flight.
    #[inline(always)]
    fn send_burst(&mut self, now: Time, in_flight: u64, count: u32, push: bool) -> Burst {
        let len = self.mss as u16;
        let mut sent = Sent {
            len,
            in_flight: (in_flight as u32).wrapping_add(self.mss),
            lost: self.counters.lost_bytes as u32,
            order: self.counters.sent_segments as u32,
            ..Sent::default()
        };
        self.sampler.on_sent(now, false, &mut sent);
        let number = self.board.push_burst(sent, count);
        self.pacer.on_burst_sent(count, self.counters.sent_segments);
        self.counters.sent_segments += u64::from(count);
        self.counters.sent_bytes += u64::from(count) * u64::from(len);
        self.arm_after_sending(now, false);
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
        Burst { first, count, push }
    }

    /// Sends full segments of the connection's data on a subflow with
    /// [room](Self::room) while others are in flight: as many of the burst as are
    /// certain to be sent now, if the connection has `waiting` bytes for it. `None` if
    /// not even one is. The last of the connection's `unsent` bytes are pushed.
    #[inline(always)]
    pub(crate) fn send_mapped(&mut self, now: Time, waiting: u64, unsent: u64) -> Option<Burst> {
        let (mss, window) = (u64::from(self.mss), self.window());
        let in_flight = self.board.in_flight();
        let alone = self.notes_sent || self.announce_reduction;
        if alone || in_flight == 0 || waiting < mss {
            return None;
        }
        let count = self.full_segments(now, window.saturating_sub(in_flight).min(waiting));
        let bytes = u64::from(count) * mss;
        debug_assert!(count > 0, "there was room at another time");
        self.written += bytes;
        let follows = in_flight + bytes + mss <= window;
        let push = unsent == bytes || self.pacer.ends_burst(count, follows);
        Some(self.send_burst(now, in_flight, count, push))
    }
}
