//! The sending half of a stream.

use crate::spans::Spans;
use std::collections::VecDeque;

/// Bytes of memory that a stream keeps although it needs less.
const KEPT: usize = 1 << 17;

/// Bytes that were written and are not acknowledged from the first on, and how
/// far they were cut, were given to paths, and may be.
#[derive(Clone, Debug, Default)]
pub struct SendStream {
    /// From the byte `base` on.
    buffer: VecDeque<u8>,
    base: u64,
    cut: u64,
    /// Before this lies all that was given to a path; pieces may be given out of order.
    given: u64,
    /// The peer lets through what lies before this.
    limit: u64,
    acknowledged: Spans,
    /// Nothing more is written.
    finished: bool,
    /// The end needs a frame of its own: the last byte was given to a path before it.
    fin_apart: bool,
    fin_acknowledged: bool,
    /// The stream was reset, with this code.
    reset: Option<u64>,
    reset_acknowledged: bool,
}

impl SendStream {
    /// Nothing is written yet.
    pub fn new(limit: u64) -> SendStream {
        SendStream { limit, ..SendStream::default() }
    }

    /// Bytes written.
    pub fn written(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Bytes cut.
    pub fn cut_end(&self) -> u64 {
        self.cut
    }

    /// The peer counts bytes before this at most.
    pub fn given_end(&self) -> u64 {
        self.given
    }

    /// What lies before this is about to be given to a path.
    pub fn on_given(&mut self, end: u64) {
        self.given = self.given.max(end);
    }

    /// Bytes that wait and may be cut.
    pub fn waiting(&self) -> u64 {
        self.written().min(self.limit).saturating_sub(self.cut)
    }

    /// Takes bytes as far as `most` are buffered; returns how many.
    pub fn write(&mut self, bytes: &[u8], most: u64) -> usize {
        if self.finished || self.reset.is_some() {
            return 0;
        }
        let room = most.saturating_sub(self.buffer.len() as u64);
        let taken = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.buffer.extend(&bytes[..taken]);
        taken
    }

    /// The peer lets more through.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Cuts off the next bytes, at most so many of those that may be.
    pub fn cut(&mut self, len: u64) {
        debug_assert!(len <= self.waiting());
        self.cut += len;
    }

    /// Nothing more is written. Returns whether the end needs a frame of its
    /// own.
    pub fn finish(&mut self) -> bool {
        if self.finished || self.reset.is_some() {
            return false;
        }
        self.finished = true;
        self.fin_apart = self.given == self.written();
        self.fin_apart
    }

    /// The stream ends there.
    pub fn ends_at(&self, offset: u64) -> bool {
        self.finished && offset == self.written()
    }

    /// What of a place that was cut has not arrived, but for holes behind its first byte:
    /// first byte and length; none: it is not needed any more.
    pub fn needed(&self, offset: u64, len: u16) -> Option<(u64, u16)> {
        let end = offset + u64::from(len);
        if self.reset.is_some() || self.is_delivered(offset, len.into()) {
            return None;
        }
        let start = offset.max(self.base);
        Some((start, (end - start) as u16))
    }

    /// What was cut at a place, to be sent; none: it is not needed any more.
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

    /// These bytes have arrived.
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

    /// A stream that buffered much once does not keep the memory. Each time at least half of
    /// it goes, so that this costs little for each byte.
    fn give_back(&mut self) {
        let wanted = 2 * self.buffer.len();
        if self.buffer.capacity() > KEPT.max(2 * wanted) {
            self.buffer.shrink_to(wanted.max(KEPT / 2));
        }
    }

    /// All of these bytes have arrived.
    pub fn is_delivered(&self, offset: u64, len: u64) -> bool {
        self.acknowledged.contains_all(offset..offset + len)
    }

    /// The frame of its own that said the end has arrived.
    pub fn on_fin_delivered(&mut self) {
        self.fin_acknowledged = true;
    }

    /// Ends the stream at once. Returns whether that is new.
    pub fn reset(&mut self, code: u64) -> bool {
        if self.reset.is_some() || self.is_done() {
            return false;
        }
        self.reset = Some(code);
        self.limit = 0;
        self.buffer = VecDeque::new();
        true
    }

    /// Why it was reset.
    pub fn reset_code(&self) -> Option<u64> {
        self.reset
    }

    /// The peer knows of the reset.
    pub fn on_reset_delivered(&mut self) {
        self.reset_acknowledged = true;
    }

    /// Nothing is left to do.
    pub fn is_done(&self) -> bool {
        if self.reset.is_some() {
            // What was written is forgotten, so nothing follows from what arrived.
            return self.reset_acknowledged;
        }
        let all = self.acknowledged.prefix() == self.written();
        self.finished && self.fin_acknowledged && all
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> u64 {
        self.buffer.len() as u64
    }
}
