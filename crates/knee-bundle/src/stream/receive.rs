//! The receiving half of a stream.

use bytes::{Bytes, BytesMut};
use knee_multipath::Reassembly;
use knee_units::Time;
use std::collections::BTreeMap;

/// Pieces that may wait for what comes before them. What follows another without a gap
/// is put to it, as far as both have at most so many bytes: gaps are what counts, and a
/// peer that sends byte by byte finds an end.
const PIECES_MAX: usize = 4096;
const PIECE_BYTES_MAX: usize = 1 << 16;

/// What a piece that arrived led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The highest byte is higher by so many.
    Taken(u64),
    /// There is no room: the datagram is to count as lost.
    NoRoom,
    /// It goes beyond its credit, or beyond the end of the stream.
    Violation,
}

/// Bytes that arrived, in order and out of it.
#[derive(Clone, Debug, Default)]
pub struct ReceiveStream {
    /// How long what waits did so, and what came twice.
    reassembly: Reassembly,
    /// Out of order, none overlapping.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// In order, to be read.
    ready: BytesMut,
    /// Bytes read, or thrown away.
    read: u64,
    highest: u64,
    /// What the peer may send lies before this.
    limit: u64,
    size: Option<u64>,
    /// The peer reset it.
    is_reset: bool,
    /// Nobody wants what comes; why.
    stopped: Option<u64>,
}

impl ReceiveStream {
    /// Nothing has arrived yet.
    pub fn new(limit: u64) -> ReceiveStream {
        ReceiveStream { limit, ..ReceiveStream::default() }
    }

    /// Next byte expected.
    fn next(&self) -> u64 {
        self.read + self.ready.len() as u64
    }

    /// Takes a piece; `fin`: the stream ends with it.
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

    /// Adds what is new of a piece.
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

    /// Keeps what waits for what comes before it.
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

    /// Something can be read, or the end.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.is_done()
    }

    /// What arrived in order, at most so much; none: nothing.
    pub fn read(&mut self, most: usize) -> Option<Bytes> {
        let len = self.ready.len().min(most);
        if len == 0 {
            return None;
        }
        self.read += len as u64;
        let bytes = self.ready.split_to(len).freeze();
        if self.ready.is_empty() {
            // It must not keep the memory of what is read.
            self.ready = BytesMut::new();
        }
        Some(bytes)
    }

    /// The peer ends it at once. Returns how much higher the highest byte is;
    /// none: that is not its size.
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

    /// Nobody wants any more of it. Returns whether that is new.
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

    /// Why nobody wants it.
    pub fn stop_code(&self) -> Option<u64> {
        self.stopped
    }

    /// All of it was read, or thrown away.
    pub fn is_done(&self) -> bool {
        self.size.is_some_and(|size| self.read >= size)
    }

    /// Bytes read or thrown away.
    pub fn consumed(&self) -> u64 {
        self.read
    }

    /// What the peer may send lies before this.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Lets the peer send as far as so many bytes beyond what was read, once
    /// that is a quarter more. Returns whether it does.
    pub fn raise_limit(&mut self, window: u64) -> bool {
        let raised = self.read + window;
        let worth = self.size.is_none() && raised >= self.limit + window / 4;
        if worth {
            self.limit = raised;
        }
        worth
    }

    /// Measures of its waiting.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }

    /// Bytes of content that it holds.
    pub fn held(&self) -> u64 {
        self.next() - self.read + self.pieces.values().map(|piece| piece.len() as u64).sum::<u64>()
    }
}
