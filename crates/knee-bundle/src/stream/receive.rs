//! Receiving half of a stream.

use bytes::{Bytes, BytesMut};
use knee_multipath::Reassembly;
use knee_units::Time;
use std::collections::BTreeMap;

/// Maximum number of pieces that may wait for earlier ones. A piece that follows another without a
/// gap is merged with it, up to the second limit in bytes. So the first limit counts gaps, and a
/// peer that sends byte by byte stays bounded.
const PIECES_MAX: usize = 4096;
const PIECE_BYTES_MAX: usize = 1 << 16;

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
    /// How long pieces waited, and how many bytes were duplicates.
    reassembly: Reassembly,
    /// Pieces out of order, without overlap.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Bytes in order, ready to be read.
    ready: BytesMut,
    /// Bytes read or discarded.
    read: u64,
    highest: u64,
    /// Offset below which the peer may send.
    limit: u64,
    size: Option<u64>,
    /// Bytes of all streams that had arrived when this one last received some.
    arrival: u64,
    /// Whether the peer reset the stream.
    is_reset: bool,
    /// Error code if this end no longer reads the stream.
    stopped: Option<u64>,
}

impl ReceiveStream {
    /// Makes a stream with nothing received.
    pub fn new(limit: u64) -> ReceiveStream {
        ReceiveStream { limit, ..ReceiveStream::default() }
    }

    /// Returns the next offset expected in order.
    fn next(&self) -> u64 {
        self.read + self.ready.len() as u64
    }

    /// Inserts a piece; `fin` means that the stream ends with it.
    pub fn insert(&mut self, now: Time, offset: u64, bytes: &[u8], fin: bool) -> Inserted {
        let end = offset + bytes.len() as u64;
        let beyond = self.size.is_some_and(|size| end > size || fin && end != size);
        if end > self.limit || beyond || fin && self.highest > end {
            return Inserted::Violation;
        }
        if self.is_reset {
            return Inserted::Taken(0);
        }
        let in_order = offset <= self.next();
        if !in_order && self.stopped.is_none() && self.pieces.len() >= PIECES_MAX {
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
        self.reassembly.insert(now, offset, bytes.len() as u64);
        self.add(offset, end, bytes);
        Inserted::Taken(risen)
    }

    /// Adds the bytes of a piece that are new.
    fn add(&mut self, offset: u64, end: u64, bytes: &[u8]) {
        let mut start = offset.max(self.next());
        while start < end {
            if let Some((at, piece)) = self.pieces.range(..=start).next_back()
                && at + piece.len() as u64 > start
            {
                start = at + piece.len() as u64;
                continue;
            }
            let next = self.pieces.range(start + 1..).next();
            let stop = next.map_or(end, |(at, _)| end.min(*at));
            let new = &bytes[(start - offset) as usize..(stop - offset) as usize];
            if start == self.next() {
                self.ready.extend_from_slice(new);
            } else {
                self.keep(start, new);
            }
            start = stop;
        }
        while let Some(first) = self.pieces.first_entry()
            && *first.key() == self.read + self.ready.len() as u64
        {
            self.ready.extend_from_slice(&first.remove());
        }
    }

    /// Keeps bytes that wait for earlier ones.
    fn keep(&mut self, start: u64, new: &[u8]) {
        if let Some((at, piece)) = self.pieces.range_mut(..start).next_back()
            && at + piece.len() as u64 == start
            && piece.len() + new.len() <= PIECE_BYTES_MAX
        {
            piece.extend_from_slice(new);
        } else {
            self.pieces.insert(start, new.to_vec());
        }
    }

    /// Returns whether bytes or the end can be read.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.is_done()
    }

    /// Reads bytes in order, at most `most`; `None` if there are none.
    pub fn read(&mut self, most: usize) -> Option<Bytes> {
        let len = self.ready.len().min(most);
        if len == 0 {
            return None;
        }
        self.read += len as u64;
        let bytes = self.ready.split_to(len).freeze();
        if self.ready.is_empty() {
            // Releases the memory of what was read.
            self.ready = BytesMut::new();
        }
        Some(bytes)
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
        self.forget();
        Some(risen)
    }

    /// Discards the rest of the stream. Returns whether it was not stopped before.
    pub fn stop(&mut self, code: u64) -> bool {
        if self.stopped.is_some() || self.is_done() || self.is_reset {
            return false;
        }
        self.stopped = Some(code);
        self.read = self.highest;
        self.forget();
        true
    }

    fn forget(&mut self) {
        self.pieces = BTreeMap::new();
        self.ready = BytesMut::new();
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

    /// Notes that bytes arrived, the last of `all` bytes of all streams.
    pub fn note_arrival(&mut self, all: u64) {
        self.arrival = all;
    }

    /// Returns the bytes that are held or may still come: those not read, and the unused credit if
    /// something arrived after the first `active_from` bytes of all streams.
    pub fn reserved(&self, active_from: u64) -> u64 {
        let end = self.size.unwrap_or(self.limit);
        let is_idle = self.arrival < active_from;
        if is_idle { self.highest - self.read } else { end - self.read }
    }

    /// Returns the reassembly measures.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }

    /// Returns the bytes of content held.
    pub fn held(&self) -> u64 {
        self.next() - self.read + self.pieces.values().map(|piece| piece.len() as u64).sum::<u64>()
    }
}
