//! Receiving halves of all streams, and the credit that they share.

use super::{Inserted, Pool, ReceiveStream, Shares, StreamId};
use bytes::Bytes;
use knee_units::Time;
use std::collections::BTreeMap;

/// Receiving halves of all streams. What the peer may send on all of them together, beyond what was
/// read, never exceeds the window that they share.
#[derive(Debug, Default)]
pub struct Receiving {
    streams: BTreeMap<StreamId, ReceiveStream>,
    pool: Pool,
    shares: Shares,
    /// Bytes of the shared part that streams hold or may still send.
    taken: u64,
    /// Bytes of content held.
    held: u64,
    /// Streams of which not everything was read.
    open: u64,
    /// When idle streams may be asked for their credit again.
    recall_from: Time,
}

impl Receiving {
    /// Makes a set without streams.
    pub fn new(shares: Shares) -> Receiving {
        Receiving { shares, ..Receiving::default() }
    }

    /// Adds a stream.
    pub fn insert(&mut self, now: Time, id: StreamId) {
        let mut stream = ReceiveStream::new(self.shares.own());
        stream.note_arrival(now);
        self.streams.insert(id, stream);
        self.open += 1;
    }

    /// Removes a stream that is done. Returns whether it was there.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.remove(&id) else { return false };
        self.taken -= self.shares.beyond(stream.reserved());
        self.held -= stream.held();
        self.open -= u64::from(!stream.is_done());
        if self.streams.is_empty() {
            self.pool = Pool::default();
        }
        true
    }

    /// Returns a stream.
    pub fn get(&self, id: StreamId) -> Option<&ReceiveStream> {
        self.streams.get(&id)
    }

    /// Returns whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns the number of streams of which not everything was read.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Returns the bytes of content held.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of streams that hold content.
    pub fn holding(&self) -> usize {
        self.streams.values().filter(|stream| stream.held() > 0).count()
    }

    /// Returns the share of the shared part that content takes which was not read.
    pub fn fullness(&self) -> f64 {
        self.held as f64 / (self.shares.shared() as f64).max(1.0)
    }

    fn with<T>(
        &mut self,
        id: StreamId,
        f: impl FnOnce(&mut ReceiveStream, &mut Pool) -> T,
    ) -> Option<T> {
        let stream = self.streams.get_mut(&id)?;
        let of = |stream: &ReceiveStream| (stream.reserved(), stream.held(), stream.is_done());
        let (reserved, held, was_done) = of(stream);
        let result = f(stream, &mut self.pool);
        let (reserves, holds, is_done) = of(stream);
        self.taken = self.taken + self.shares.beyond(reserves) - self.shares.beyond(reserved);
        self.held = self.held + holds - held;
        self.open -= u64::from(is_done && !was_done);
        Some(result)
    }

    /// Applies `f` to a stream, if it exists.
    pub fn change<T>(
        &mut self,
        id: StreamId,
        f: impl FnOnce(&mut ReceiveStream) -> T,
    ) -> Option<T> {
        self.with(id, |stream, _| f(stream))
    }

    /// Inserts a piece into a stream, if it exists; `fin` means that the stream ends with it.
    pub fn add(
        &mut self,
        now: Time,
        id: StreamId,
        offset: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Option<Inserted> {
        self.with(id, |stream, pool| {
            stream.note_arrival(now);
            stream.insert(now, offset, bytes, fin, pool)
        })
    }

    /// Reads bytes of a stream in order, at most `most`, and not always all that are ready.
    pub fn read(&mut self, id: StreamId, most: usize) -> Option<Bytes> {
        self.with(id, |stream, pool| stream.read(most, pool))?
    }

    /// Raises the peer's credit for a stream by what its share allows, if that is worth it; a new one
    /// gets no more than suffices for most transfers. Returns whether it did.
    pub fn raise(&mut self, id: StreamId, is_new: bool) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let others = self.taken - self.shares.beyond(stream.reserved());
        let most = if is_new { self.shares.first(others) } else { self.shares.most(others) };
        self.change(id, |stream| stream.raise_limit(most)).unwrap_or(false)
    }

    /// Returns the streams whose unused credit is to be asked back so that others find enough: those
    /// on which nothing arrived for four round trips. Most connections stay open without data, and
    /// credit given once stays with them. If the peer still uses one, it keeps its credit.
    pub fn recall(&mut self, now: Time, rtt: Time) -> Vec<StreamId> {
        if 2 * self.taken <= self.shares.shared() || now < self.recall_from {
            return Vec::new();
        }
        // The search is not worth its time for each packet.
        self.recall_from = now + rtt;
        let active_from = now.saturating_sub(rtt * 4);
        let own = self.shares.own();
        let ask = |(id, stream): (&StreamId, &mut ReceiveStream)| {
            stream.ask_back(active_from, own).then_some(*id)
        };
        self.streams.iter_mut().filter_map(ask).collect()
    }
}
