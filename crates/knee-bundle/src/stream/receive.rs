//! Receiving half of a stream.

use super::blocks::{Blocks, Pool};
use bytes::Bytes;
use knee_multipath::Reassembly;
use knee_units::Time;

/// Maximum number of ranges that may wait for earlier bytes, each behind a gap, so that a peer that
/// leaves out every other byte stays bounded.
const RANGES_MAX: usize = 4096;

/// Result of inserting a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Accepted; the highest offset grew by this many bytes.
    Taken(u64),
    /// No room; the datagram must count as lost.
    NoRoom,
    /// The piece exceeds the credit or the end of the stream.
    Violation,
}

/// Received bytes, in order and out of order.
#[derive(Clone, Debug, Default)]
pub struct ReceiveStream {
    /// Which bytes arrived, how long they waited, and how many were duplicates.
    reassembly: Reassembly,
    /// The bytes from the first one not read.
    blocks: Blocks,
    /// Bytes read or discarded.
    read: u64,
    highest: u64,
    /// Offset below which the peer may send.
    limit: u64,
    size: Option<u64>,
    /// When something last arrived.
    arrival: Time,
    /// Whether the peer reset the stream.
    is_reset: bool,
    /// Error code if this end no longer reads the stream.
    stopped: Option<u64>,
    /// How often the peer has given credit back.
    round: u64,
    /// Whether it was asked to.
    is_asked: bool,
}

impl ReceiveStream {
    /// Makes a stream with nothing received.
    pub fn new(limit: u64) -> ReceiveStream {
        ReceiveStream { limit, ..ReceiveStream::default() }
    }

    /// Returns the number of bytes in order that have not been read.
    fn ready(&self) -> u64 {
        // What is read without having arrived was reset or stopped.
        self.reassembly.next().saturating_sub(self.read)
    }

    /// Inserts a piece; `fin` means that the stream ends with it.
    pub fn insert(
        &mut self,
        now: Time,
        offset: u64,
        bytes: &[u8],
        fin: bool,
        pool: &mut Pool,
    ) -> Inserted {
        let end = offset + bytes.len() as u64;
        let beyond = self.size.is_some_and(|size| end > size || fin && end != size);
        if end > self.limit || beyond || fin && self.highest > end {
            return Inserted::Violation;
        }
        if self.is_reset {
            return Inserted::Taken(0);
        }
        let in_order = offset <= self.reassembly.next();
        if !in_order && self.stopped.is_none() && self.reassembly.ranges() >= RANGES_MAX {
            return Inserted::NoRoom;
        }
        if fin {
            self.size = Some(end);
        }
        let risen = end.saturating_sub(self.highest);
        self.highest += risen;
        if self.stopped.is_some() {
            self.read = self.highest;
            return Inserted::Taken(risen);
        }
        // Bytes in order may have been seen by the reader: they stay as they are.
        let known = self.reassembly.next().saturating_sub(offset).min(bytes.len() as u64);
        self.blocks.write(offset + known, &bytes[known as usize..], pool);
        self.reassembly.insert(now, offset, bytes.len() as u64);
        Inserted::Taken(risen)
    }

    /// Returns whether bytes or the end can be read.
    pub fn is_readable(&self) -> bool {
        self.ready() > 0 || self.is_done()
    }

    /// Reads bytes in order, at most `most`, and not always all that are ready; `None` if there are
    /// none.
    pub fn read(&mut self, most: usize, pool: &mut Pool) -> Option<Bytes> {
        let bytes = self.blocks.take(self.ready().min(most as u64), pool);
        self.read += bytes.len() as u64;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Processes a reset. Returns by how much the highest offset grew; `None` if the size is wrong.
    pub fn on_reset(&mut self, size: u64) -> Option<u64> {
        let fits = size >= self.highest && size <= self.limit;
        if !fits || self.size.is_some_and(|known| known != size) {
            return None;
        }
        let risen = size - self.highest;
        if !self.is_done() {
            self.is_reset = true;
        }
        (self.size, self.highest, self.read) = (Some(size), size, size);
        self.blocks = Blocks::default();
        Some(risen)
    }

    /// Discards the rest of the stream. Returns whether it was not stopped before.
    pub fn stop(&mut self, code: u64) -> bool {
        if self.stopped.is_some() || self.is_done() || self.is_reset {
            return false;
        }
        self.stopped = Some(code);
        self.read = self.highest;
        self.blocks = Blocks::default();
        true
    }

    /// Returns the error code of [`stop`](Self::stop).
    pub fn stop_code(&self) -> Option<u64> {
        self.stopped
    }

    /// Returns whether all of it was read or discarded.
    pub fn is_done(&self) -> bool {
        self.size.is_some_and(|size| self.read >= size)
    }

    /// Returns the bytes read or discarded.
    pub fn consumed(&self) -> u64 {
        self.read
    }

    /// Returns the offset below which the peer may send.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns whether a limit of `window` bytes beyond what was read is higher than now by a
    /// quarter of `window`.
    pub fn is_worth_raising(&self, window: u64) -> bool {
        self.size.is_none() && self.read + window >= self.limit + window / 4
    }

    /// Raises the limit to `window` bytes beyond what was read, if that is worth it. Returns whether
    /// it did.
    pub fn raise_limit(&mut self, window: u64) -> bool {
        let worth = self.is_worth_raising(window);
        if worth {
            self.limit = self.read + window;
        }
        worth
    }

    /// Notes that something arrived, or might have.
    pub fn note_arrival(&mut self, now: Time) {
        self.arrival = now;
    }

    /// Returns the bytes that are held or may still come, and must be kept.
    pub fn reserved(&self) -> u64 {
        if self.is_reset || self.stopped.is_some() {
            return 0;
        }
        self.size.unwrap_or(self.limit) - self.read
    }

    /// Asks for unused credit beyond `own` bytes back if there is some, nothing arrived since
    /// `active_from`, and it was not asked for yet. Returns whether it did.
    pub fn ask_back(&mut self, active_from: Time, own: u64) -> bool {
        let unused = self.limit.saturating_sub(self.highest);
        let may = self.size.is_none() && self.stopped.is_none() && !self.is_asked;
        let asks = may && self.arrival < active_from && unused > own;
        self.is_asked |= asks;
        asks
    }

    /// Returns whether the peer was asked for credit and has not answered.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Returns how often the peer has given credit back: what it was told before is void.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Lowers the limit to what the peer keeps after it gave credit back for the `round`th time.
    /// Returns false if that is impossible.
    pub fn on_return(&mut self, round: u64, end: u64) -> bool {
        // An older one, repeated.
        if round <= self.round {
            return true;
        }
        if round > self.round + 1 || !self.is_asked || end > self.limit || end < self.highest {
            return false;
        }
        (self.round, self.limit, self.is_asked) = (round, end, false);
        true
    }

    /// Returns the reassembly measures.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }

    /// Returns the bytes of content held.
    pub fn held(&self) -> u64 {
        if self.is_reset || self.stopped.is_some() {
            return 0;
        }
        self.ready() + self.reassembly.waiting()
    }
}
