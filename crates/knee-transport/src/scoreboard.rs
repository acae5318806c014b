//! Segments that were sent and are not yet acknowledged cumulatively.

use crate::prefetch;
use knee_units::Time;

/// Selectively acknowledged.
pub const SACKED: u8 = 1;
/// Marked lost.
pub const LOST: u8 = 2;
/// A retransmission is in flight.
pub const RETRANSMISSION_OUT: u8 = 4;
/// Was retransmitted at least once.
pub const EVER_RETRANSMITTED: u8 = 8;
/// Sent while the application limited the rate, so it says nothing about delivery.
pub const APP_LIMITED: u8 = 16;
/// RACK has marked the last transmission lost. RACK judges each transmission
/// once, even if the mark is taken back.
pub const JUDGED: u8 = 32;

/// A segment that was sent, with the data for its delivery-rate sample
/// (draft-ietf-ccwg-bbr, section "per-packet state").
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Time of the last transmission.
    pub sent_at: Time,
    /// Send time of the segment that was acknowledged last before this one was
    /// sent: the start of the send interval.
    pub first_sent_at: Time,
    /// When the connection's delivered count last grew before this was sent.
    pub delivered_at: Time,
    /// Bytes delivered on the connection when this was sent.
    pub delivered: u64,
    /// Bytes in flight right after this was sent.
    pub in_flight: u32,
    /// Bytes marked lost on the connection when this was sent, wrapping.
    pub lost: u32,
    /// Transmission number: higher for later transmissions, even at the same instant.
    pub order: u32,
    /// Payload bytes.
    pub len: u16,
    /// SACKED, LOST …
    pub flags: u8,
}

/// Segments that one ACK acknowledges, none of which was selectively
/// acknowledged, lost or retransmitted.
pub struct PlainRun {
    /// Number of the first.
    pub first: u32,
    /// Number of segments.
    pub count: u32,
    /// Payload bytes of the segments.
    pub bytes: u64,
    /// When the first was sent.
    pub oldest_sent_at: Time,
    /// When the last was sent.
    pub newest_sent_at: Time,
    /// Transmission number of the last.
    pub newest_order: u32,
}

/// Ring of sent segments `first..next`, by number, and byte counts.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    ring: Box<[Sent]>,
    /// First segment not acknowledged cumulatively (SND.UNA).
    first: u32,
    /// Next new segment (SND.NXT).
    next: u32,
    /// Bytes before `first`.
    first_byte: u64,
    /// Bytes before `next`.
    next_byte: u64,
    /// Bytes in flight: outstanding, less selectively acknowledged and lost, plus
    /// retransmitted ones (`tcp_packets_in_flight`).
    in_flight: u64,
    /// Outstanding segments that are SACKED.
    pub sacked_segments: u32,
    /// Outstanding bytes that are LOST, retransmitted or not.
    pub lost_bytes: u64,
    /// Bytes whose retransmission is in flight.
    pub retransmission_bytes: u64,
}

/// Returns how many copies of a segment with these flags are in flight.
#[inline]
fn copies(flags: u8) -> u64 {
    u64::from(flags & (SACKED | LOST) == 0) + u64::from(flags & RETRANSMISSION_OUT != 0)
}

/// Initial size of the ring; it doubles when full.
const RING_MIN: usize = 16;

impl Scoreboard {
    /// Returns SND.UNA in segments.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }
    /// Returns SND.NXT in segments.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }
    /// Returns the bytes acknowledged cumulatively.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.first_byte
    }
    /// Returns the bytes sent so far, without retransmissions.
    #[inline]
    pub fn sent_bytes(&self) -> u64 {
        self.next_byte
    }
    /// Returns the outstanding segments.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.next.wrapping_sub(self.first)
    }
    /// Returns the outstanding segments that were not selectively acknowledged.
    #[inline]
    pub fn missing_segments(&self) -> u32 {
        self.segments() - self.sacked_segments
    }
    /// Whether nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next == self.first
    }
    /// Returns the outstanding bytes, whatever their state.
    #[inline]
    pub fn outstanding_bytes(&self) -> u64 {
        self.next_byte - self.first_byte
    }
    /// Returns the bytes in flight.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Begins to load the segments that the next ACK removes or looks at, and the
    /// places of those that are sent then, into the cache.
    pub fn prefetch_ends(&self) {
        let mask = self.ring.len().wrapping_sub(1);
        let (first, next) = (self.first as usize & mask, self.next as usize & mask);
        // Those that go around the end of the ring are loaded when they are needed.
        self.ring.get(first..first + 4).into_iter().for_each(prefetch);
        self.ring.get(next..next + 2).into_iter().for_each(prefetch);
    }
    /// Returns segment `number`, which must be outstanding.
    #[inline]
    pub fn get(&mut self, number: u32) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[number as usize & mask]
    }
    /// Appends the next new segment.
    #[inline]
    pub fn push(&mut self, sent: Sent) -> u32 {
        if self.segments() as usize == self.ring.len() {
            self.grow();
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.next_byte += u64::from(sent.len);
        self.in_flight += u64::from(sent.len);
        *self.get(number) = sent;
        number
    }
    /// Appends `count` new segments of equal length that are sent together:
    /// only their number, and what depends on it, differs.
    #[inline]
    pub fn push_burst(&mut self, mut sent: Sent, count: u32) -> u32 {
        while (self.segments() + count) as usize > self.ring.len() {
            self.grow();
        }
        let first = self.next;
        self.next = first.wrapping_add(count);
        let bytes = u64::from(count) * u64::from(sent.len);
        self.next_byte += bytes;
        self.in_flight += bytes;
        let mask = self.ring.len().wrapping_sub(1);
        let ring = &mut self.ring[..];
        for behind in 0..count {
            ring[first.wrapping_add(behind) as usize & mask] = sent;
            sent.in_flight = sent.in_flight.wrapping_add(u32::from(sent.len));
            sent.order = sent.order.wrapping_add(1);
        }
        first
    }
    /// Returns what an ACK acknowledges, if it is a run of segments with no
    /// event since they were sent; otherwise, or if not outstanding, `None`.
    #[inline(always)]
    pub fn plain_run(&self, acknowledged: u32) -> Option<PlainRun> {
        let (first, count) = (self.first, acknowledged.wrapping_sub(self.first));
        if count.wrapping_sub(1) >= self.segments() {
            return None;
        }
        let mask = self.ring.len().wrapping_sub(1);
        let ring = &self.ring[..];
        let oldest_sent_at = ring[first as usize & mask].sent_at;
        let (mut bytes, mut flags) = (0, 0);
        let mut number = first;
        loop {
            let sent = &ring[number as usize & mask];
            bytes += u64::from(sent.len);
            flags |= sent.flags;
            number = number.wrapping_add(1);
            if number == acknowledged {
                let (newest_sent_at, newest_order) = (sent.sent_at, sent.order);
                let run =
                    PlainRun { first, count, bytes, oldest_sent_at, newest_sent_at, newest_order };
                return (flags & !APP_LIMITED == 0).then_some(run);
            }
        }
    }
    /// Removes a plain run.
    #[inline(always)]
    pub fn pop_plain(&mut self, run: &PlainRun) {
        self.first = run.first.wrapping_add(run.count);
        self.first_byte += run.bytes;
        self.in_flight -= run.bytes;
    }
    /// Removes the first segment.
    #[inline]
    pub fn pop(&mut self) -> Sent {
        let sent = *self.get(self.first);
        self.first = self.first.wrapping_add(1);
        self.first_byte += u64::from(sent.len);
        self.in_flight -= copies(sent.flags) * u64::from(sent.len);
        if sent.flags & !APP_LIMITED != 0 {
            self.forget(&sent);
        }
        sent
    }

    /// Removes the first segment if it was selectively acknowledged, and neither
    /// lost nor retransmitted before. Returns whether it did.
    #[inline]
    pub fn pop_sacked(&mut self) -> bool {
        let sent = self.get(self.first);
        let (flags, len) = (sent.flags, u64::from(sent.len));
        let found = flags & !APP_LIMITED == SACKED;
        if found {
            self.first = self.first.wrapping_add(1);
            self.first_byte += len;
            self.sacked_segments -= 1;
        }
        found
    }

    #[cold]
    fn forget(&mut self, sent: &Sent) {
        let len = u64::from(sent.len);
        if sent.flags & SACKED != 0 {
            self.sacked_segments -= 1;
        }
        if sent.flags & LOST != 0 {
            self.lost_bytes -= len;
        }
        if sent.flags & RETRANSMISSION_OUT != 0 {
            self.retransmission_bytes -= len;
        }
    }

    /// Whether an outstanding segment had no event since it was sent.
    #[inline]
    pub fn is_plain(&mut self, number: u32) -> bool {
        self.get(number).flags & !APP_LIMITED == 0
    }

    /// Marks a [plain](Self::is_plain) segment selectively acknowledged. Returns
    /// its earlier state.
    #[inline]
    pub fn mark_plain_sacked(&mut self, number: u32) -> Sent {
        let sent = self.get(number);
        let before = *sent;
        sent.flags |= SACKED;
        self.in_flight -= u64::from(before.len);
        self.sacked_segments += 1;
        before
    }

    /// Marks a segment selectively acknowledged: it is no longer lost or in
    /// flight. Returns its earlier state.
    pub fn mark_sacked(&mut self, number: u32) -> Sent {
        let sent = self.get(number);
        let before = *sent;
        sent.flags = (sent.flags & !(LOST | RETRANSMISSION_OUT)) | SACKED;
        let len = u64::from(before.len);
        if before.flags & LOST != 0 {
            self.lost_bytes -= len;
        }
        if before.flags & RETRANSMISSION_OUT != 0 {
            self.retransmission_bytes -= len;
        }
        self.sacked_segments += 1;
        self.count_again(before.flags, SACKED, len);
        before
    }

    /// Marks a segment lost, or lost again if its retransmission was out.
    /// Returns its bytes, or `None` if it already waits for retransmission.
    pub fn mark_lost(&mut self, number: u32) -> Option<u64> {
        let sent = self.get(number);
        let len = u64::from(sent.len);
        let flags = sent.flags;
        if flags & (LOST | RETRANSMISSION_OUT) == LOST {
            return None;
        }
        sent.flags = (flags | LOST) & !RETRANSMISSION_OUT;
        if flags & RETRANSMISSION_OUT != 0 {
            self.retransmission_bytes -= len;
        }
        if flags & LOST == 0 {
            self.lost_bytes += len;
        }
        self.count_again(flags, LOST, len);
        Some(len)
    }

    /// Removes the lost mark of a segment.
    pub fn unmark_lost(&mut self, number: u32) {
        let sent = self.get(number);
        if sent.flags & LOST != 0 {
            let (len, before) = (u64::from(sent.len), sent.flags);
            sent.flags &= !LOST;
            self.lost_bytes -= len;
            self.count_again(before, before & !LOST, len);
        }
    }

    /// Records that a lost segment is in flight again.
    pub fn mark_retransmitted(&mut self, number: u32) {
        let sent = self.get(number);
        let len = u64::from(sent.len);
        let again = sent.flags & RETRANSMISSION_OUT != 0;
        sent.flags = (sent.flags & !JUDGED) | RETRANSMISSION_OUT | EVER_RETRANSMITTED;
        if !again {
            self.retransmission_bytes += len;
            self.in_flight += len;
        }
    }

    /// Records that the retransmission of a segment is no longer in flight.
    pub fn end_retransmission(&mut self, number: u32) {
        let sent = self.get(number);
        if sent.flags & RETRANSMISSION_OUT != 0 {
            let len = u64::from(sent.len);
            sent.flags &= !RETRANSMISSION_OUT;
            self.retransmission_bytes -= len;
            self.in_flight -= len;
        }
    }

    /// Corrects the bytes in flight by a segment whose flags changed.
    fn count_again(&mut self, before: u8, after: u8, len: u64) {
        self.in_flight = self.in_flight + copies(after) * len - copies(before) * len;
    }

    /// Numbers the next new segment `number`; nothing may be outstanding.
    #[cfg(test)]
    pub fn skip_to(&mut self, number: u32) {
        assert!(self.is_empty());
        (self.first, self.next) = (number, number);
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = (self.ring.len() * 2).max(RING_MIN);
        let mut ring = vec![Sent::default(); capacity].into_boxed_slice();
        let mut number = self.first;
        while number != self.next {
            ring[number as usize & (capacity - 1)] = *self.get(number);
            number = number.wrapping_add(1);
        }
        self.ring = ring;
    }
}

#[cfg(test)]
mod tests;
