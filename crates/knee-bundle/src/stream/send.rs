//! Sending half of a stream.

use crate::spans::Spans;
use std::collections::VecDeque;

/// Memory that a stream may keep although it needs less, bytes.
const KEPT: usize = 1 << 17;

/// Returns the memory for so many bytes, with a quarter to spare.
fn with_spare(bytes: usize) -> usize {
    bytes + bytes / 4
}

/// Bytes from the first that is not acknowledged, and how far they were cut, given to paths, and
/// allowed by the peer.
#[derive(Clone, Debug, Default)]
pub struct SendStream {
    /// Bytes from offset `base` on.
    buffer: VecDeque<u8>,
    base: u64,
    cut: u64,
    /// End of everything that was given to a path; pieces may be given out of order.
    given: u64,
    /// Offset below which the peer allows bytes.
    limit: u64,
    /// How often credit was given back, the limit that was left the last time, and whether the peer
    /// asks for more.
    round: u64,
    kept: u64,
    is_asked: bool,
    acknowledged: Spans,
    /// Whether the end was set.
    finished: bool,
    /// Whether the end needs a frame of its own, because the last byte was given to a path before.
    fin_apart: bool,
    fin_acknowledged: bool,
    /// Error code, if the stream was reset.
    reset: Option<u64>,
    reset_acknowledged: bool,
}

impl SendStream {
    /// Makes a stream with nothing written.
    pub fn new(limit: u64) -> SendStream {
        SendStream { limit, ..SendStream::default() }
    }

    /// Returns the bytes written.
    pub fn written(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Returns the bytes cut.
    pub fn cut_end(&self) -> u64 {
        self.cut
    }

    /// Returns the highest offset that the peer may have counted.
    pub fn given_end(&self) -> u64 {
        self.given
    }

    /// Notes that bytes up to `end` are about to be given to a path.
    pub fn on_given(&mut self, end: u64) {
        self.given = self.given.max(end);
    }

    /// Returns the bytes that wait and may be cut.
    pub fn waiting(&self) -> u64 {
        self.written().min(self.limit).saturating_sub(self.cut)
    }

    /// Returns whether something was cut and has not arrived.
    pub fn is_outstanding(&self) -> bool {
        self.reset.is_none() && self.base < self.cut
    }

    /// Returns whether bytes wait for credit of the peer.
    pub fn waits_for_credit(&self) -> bool {
        self.reset.is_none() && self.written() > self.limit && self.cut >= self.limit
    }

    /// Writes bytes while at most `most` are buffered, and returns how many.
    pub fn write(&mut self, bytes: &[u8], most: u64) -> usize {
        if self.finished || self.reset.is_some() {
            return 0;
        }
        let room = most.saturating_sub(self.buffer.len() as u64);
        let taken = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let wanted = self.buffer.len() + taken;
        if wanted > self.buffer.capacity().max(KEPT) {
            // It would double otherwise.
            self.buffer.reserve_exact(with_spare(wanted) - self.buffer.len());
        }
        self.buffer.extend(&bytes[..taken]);
        taken
    }

    /// Raises the peer's limit, unless the peer did not know yet that credit was given back.
    pub fn raise_limit(&mut self, round: u64, limit: u64) {
        if round == self.round {
            self.limit = self.limit.max(limit);
        }
    }

    /// Notes that the peer, which knows of `round` times that credit was given back, asks for unused
    /// credit.
    pub fn on_recall(&mut self, round: u64) {
        self.is_asked |= round == self.round;
    }

    /// Gives credit back beyond `own` bytes if the peer asks for it and nothing is to be sent or
    /// outstanding: a stream in use keeps it. Returns whether it did.
    pub fn give_credit_back(&mut self, own: u64) -> bool {
        let is_due = self.is_asked && self.reset.is_none() && self.buffer.is_empty();
        if is_due {
            self.is_asked = false;
            self.round += 1;
            self.limit = self.limit.min(self.cut + own);
            self.kept = self.limit;
        }
        is_due
    }

    /// Returns how often credit was given back, and the limit that was left the last time.
    pub fn given_back(&self) -> (u64, u64) {
        (self.round, self.kept)
    }

    /// Cuts off the next `len` of the waiting bytes.
    pub fn cut(&mut self, len: u64) {
        debug_assert!(len <= self.waiting());
        self.cut += len;
    }

    /// Ends the stream. Returns whether the end needs a frame of its own.
    pub fn finish(&mut self) -> bool {
        if self.finished || self.reset.is_some() {
            return false;
        }
        self.finished = true;
        self.fin_apart = self.given == self.written();
        self.fin_apart
    }

    /// Returns whether the stream ends at `offset`.
    pub fn ends_at(&self, offset: u64) -> bool {
        self.finished && offset == self.written()
    }

    /// Returns the first byte and the length of what has not arrived of a cut piece, ignoring holes
    /// behind its first byte; `None` if nothing is needed any more.
    pub fn needed(&self, offset: u64, len: u16) -> Option<(u64, u16)> {
        let end = offset + u64::from(len);
        if self.reset.is_some() || self.is_delivered(offset, len.into()) {
            return None;
        }
        let start = offset.max(self.base);
        Some((start, (end - start) as u16))
    }

    /// Returns the bytes of a cut piece, or `None` if they are not needed any more.
    pub fn bytes(&self, offset: u64, len: usize) -> Option<impl Iterator<Item = &[u8]>> {
        if self.reset.is_some() || offset < self.base {
            return None;
        }
        let start = (offset - self.base) as usize;
        let (front, back) = self.buffer.as_slices();
        let split = front.len();
        let of_front = &front[start.min(split)..(start + len).min(split)];
        let of_back = &back[start.saturating_sub(split)..(start + len).saturating_sub(split)];
        Some([of_front, of_back].into_iter())
    }

    /// Notes that these bytes have arrived.
    pub fn on_delivered(&mut self, offset: u64, len: u64) {
        self.acknowledged.insert(offset..offset + len);
        if !self.fin_apart && self.ends_at(offset + len) {
            self.fin_acknowledged = true;
        }
        let free = self.acknowledged.prefix().saturating_sub(self.base);
        if self.reset.is_none() && free > 0 {
            self.buffer.drain(..free as usize);
            self.base += free;
            self.give_back();
        }
    }

    /// Releases memory of a stream that once buffered more, so that it holds at most twice its bytes.
    /// That copies at most two bytes for each that was acknowledged since the memory was taken.
    fn give_back(&mut self) {
        let held = self.buffer.len();
        if self.buffer.capacity() > KEPT.max(2 * held) {
            self.buffer.shrink_to(with_spare(held).max(KEPT / 2));
        }
    }

    /// Returns whether all of these bytes have arrived.
    pub fn is_delivered(&self, offset: u64, len: u64) -> bool {
        self.acknowledged.contains_all(offset..offset + len)
    }

    /// Notes that the separate frame with the end has arrived.
    pub fn on_fin_delivered(&mut self) {
        self.fin_acknowledged = true;
    }

    /// Resets the stream. Returns whether it was not reset before.
    pub fn reset(&mut self, code: u64) -> bool {
        if self.reset.is_some() || self.is_done() {
            return false;
        }
        self.reset = Some(code);
        self.limit = 0;
        self.buffer = VecDeque::new();
        true
    }

    /// Returns the error code of the reset.
    pub fn reset_code(&self) -> Option<u64> {
        self.reset
    }

    /// Notes that the peer has received the reset.
    pub fn on_reset_delivered(&mut self) {
        self.reset_acknowledged = true;
    }

    /// Returns whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        if self.reset.is_some() {
            // The bytes written were forgotten, so acknowledgements of them mean nothing.
            return self.reset_acknowledged;
        }
        let all = self.acknowledged.prefix() == self.written();
        self.finished && self.fin_acknowledged && all
    }

    /// Returns the bytes of memory held.
    pub fn held(&self) -> u64 {
        self.buffer.len() as u64
    }
}
