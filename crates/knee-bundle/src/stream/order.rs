//! Which stream sends next: deficit round robin (Shreedhar and Varghese, 1995) over the classes,
//! and within each class over its streams.
//!
//! A class or stream sends as long as it has credit; any excess is deducted from its next turn. So
//! two streams of a class that always have data are never further apart than a quantum and a piece.

use super::{CLASSES, Class, SendStream, StreamId};
use crate::frame::{HEADER, stream_overhead};
use knee_multipath::Source;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a turn; at least the size of a piece, so that each turn sends one.
const QUANTUM: i64 = 1500;
/// Weights of the classes, most urgent first.
const WEIGHTS: [i64; 3] = [16, 4, 1];

/// Position of a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The stream.
    pub stream: StreamId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u16,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    deficit: i64,
    /// Streams that may have data, and the credit of each.
    turns: VecDeque<(StreamId, i64)>,
}

/// Sending halves of all streams.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: BTreeMap<StreamId, SendStream>,
    queues: [Queue; CLASSES.len()],
    current: usize,
    waiting: u64,
    /// Bytes held by all streams, and those of them beyond the part of `own` bytes of each.
    held: u64,
    beyond: u64,
    own: u64,
    /// Maximum size of a datagram, bytes.
    datagram: u16,
}

impl Streams {
    /// Makes a set without streams, each of which has a part of so many bytes to itself.
    pub fn with_own(own: u64) -> Streams {
        Streams { own, ..Streams::default() }
    }

    /// Adds a stream.
    pub fn insert(&mut self, id: StreamId, stream: SendStream) {
        self.streams.insert(id, stream);
    }

    /// Removes a stream whose sending is done.
    pub fn remove(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            debug_assert_eq!((stream.waiting(), stream.held()), (0, 0));
        }
    }

    /// Returns a stream.
    pub fn get(&self, id: StreamId) -> Option<&SendStream> {
        self.streams.get(&id)
    }

    /// Returns the bytes written to all streams and not acknowledged.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the bytes of all streams beyond the part that each has to itself.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the number of streams of which everything that the peer allows has arrived, and whose
    /// further bytes wait: nobody reads them.
    pub fn unread(&self) -> usize {
        let is_unread =
            |stream: &&SendStream| stream.waits_for_credit() && !stream.is_outstanding();
        self.streams.values().filter(is_unread).count()
    }

    /// Applies `f` to a stream, if it exists.
    pub fn change<T>(&mut self, id: StreamId, f: impl FnOnce(&mut SendStream) -> T) -> Option<T> {
        let stream = self.streams.get_mut(&id)?;
        let (before, held) = (stream.waiting(), stream.held());
        let result = f(stream);
        let after = stream.waiting();
        self.waiting = self.waiting + after - before;
        let beyond = |held: u64| held.saturating_sub(self.own);
        self.beyond = self.beyond + beyond(stream.held()) - beyond(held);
        self.held = self.held + stream.held() - held;
        if before == 0 && after > 0 {
            let turns = &mut self.queues[id.class() as usize].turns;
            if !turns.iter().any(|(other, _)| *other == id) {
                turns.push_back((id, QUANTUM));
            }
        }
        Some(result)
    }

    /// Returns whether a stream has bytes that have not arrived, while further ones wait for credit
    /// of the peer: its own, or that of all streams if it is `used_up`.
    pub fn wait_for_credit(&self, used_up: bool) -> bool {
        let waits =
            |stream: &SendStream| stream.is_outstanding() && (used_up || stream.waits_for_credit());
        self.streams.values().any(waits)
    }

    /// Sets the maximum size of a datagram with a piece.
    pub fn set_datagram(&mut self, bytes: u16) {
        self.datagram = bytes;
    }

    /// Returns the class whose turn it is.
    fn class(&mut self) -> Option<Class> {
        if self.queues.iter().all(|queue| queue.turns.is_empty()) {
            return None;
        }
        loop {
            let queue = &mut self.queues[self.current];
            if queue.turns.is_empty() {
                queue.deficit = 0;
            } else if queue.deficit > 0 {
                return Some(CLASSES[self.current]);
            } else {
                queue.deficit += WEIGHTS[self.current] * QUANTUM;
                if queue.deficit > 0 {
                    return Some(CLASSES[self.current]);
                }
            }
            self.current = (self.current + 1) % CLASSES.len();
        }
    }

    /// Returns the stream whose turn it is. Streams without data leave the queues.
    fn next(&mut self) -> Option<StreamId> {
        while let Some(class) = self.class() {
            let queue = &mut self.queues[class as usize];
            let Some((id, credit)) = queue.turns.front_mut() else { continue };
            let has_some = self.streams.get(id).is_some_and(|stream| stream.waiting() > 0);
            if has_some && *credit > 0 {
                return Some(*id);
            }
            let (id, credit) = (*id, *credit);
            queue.turns.pop_front();
            if has_some {
                queue.turns.push_back((id, credit + QUANTUM));
            }
        }
        None
    }

    fn charge(&mut self, class: Class, len: u16) {
        let queue = &mut self.queues[class as usize];
        queue.deficit -= i64::from(len);
        if let Some((_, credit)) = queue.turns.front_mut() {
            *credit -= i64::from(len);
        }
        if queue.deficit <= 0 {
            self.current = (self.current + 1) % CLASSES.len();
        }
    }
}

impl Source for Streams {
    type Piece = Piece;

    fn cut(&mut self, max: u16) -> Option<(Piece, u16)> {
        let id = self.next()?;
        let stream = self.streams.get_mut(&id)?;
        let offset = stream.cut_end();
        let overhead = HEADER + stream_overhead(id.value(), offset);
        let room = usize::from(self.datagram).saturating_sub(overhead).max(1);
        let len = stream.waiting().min(u64::from(max)).min(room as u64) as u16;
        stream.cut(len.into());
        self.waiting -= u64::from(len);
        self.charge(id.class(), len);
        Some((Piece { stream: id, offset, len }, len))
    }

    fn waiting(&self) -> u64 {
        self.waiting
    }
}
