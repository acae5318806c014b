//! Messages: datagrams of flows, which are never repeated. A flow stays on one path for as long as
//! that path answers. A duplicated message goes over all paths, and is delivered once.

use crate::spans::Spans;
use bytes::Bytes;
use knee_multipath::sched::PathSet;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of waiting messages; beyond it the oldest is dropped.
const WAITING_MAX: usize = 256;
/// Maximum number of spans of numbers that are remembered.
const SPANS_MAX: usize = 1024;
/// Maximum number of flows whose paths are remembered; beyond it the lowest flow is forgotten, which
/// is the oldest, and gets a path again with its next message.
const FLOWS_MAX: usize = 16_384;

/// A waiting message.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The flow.
    pub flow: u64,
    /// Its number among those that go over several paths, if it does.
    pub number: Option<u64>,
    /// Content.
    pub bytes: Bytes,
    /// Paths to which copies of it must still be given; `None` if not chosen yet.
    pub left: Option<PathSet>,
    /// Whether a copy was sent.
    pub is_sent: bool,
}

/// Flows of one end.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    waiting: VecDeque<Waiting>,
    /// Path of each flow that is not duplicated.
    pinned: BTreeMap<u64, usize>,
    /// Next number of a duplicated message. All flows share the numbers, so that neither end has to
    /// remember a flow for them.
    next: u64,
    /// Numbers received.
    seen: Spans,
    /// Number below which all count as received.
    settled: u64,
    dropped: u64,
}

impl Messages {
    /// Queues a message. `duplicate` sends it over all paths.
    pub fn push(&mut self, flow: u64, bytes: Bytes, duplicate: bool) {
        let number = duplicate.then(|| {
            self.next += 1;
            self.next - 1
        });
        if self.waiting.len() >= WAITING_MAX {
            self.remove(0);
        }
        self.waiting.push_back(Waiting { flow, number, bytes, left: None, is_sent: false });
    }

    /// Returns the waiting message at a place, in the order in which they came.
    pub fn get(&mut self, at: usize) -> Option<&mut Waiting> {
        self.waiting.get_mut(at)
    }

    /// Notes that the message at a place was sent on a path, or cannot be. It is removed unless
    /// copies remain for other paths.
    pub fn give(&mut self, at: usize, path: usize, is_sent: bool) {
        let Some(waiting) = self.waiting.get_mut(at) else { return };
        waiting.is_sent |= is_sent;
        let left = waiting.left.get_or_insert_default();
        left.remove(path);
        if left.is_empty() {
            self.remove(at);
        }
    }

    /// Removes the message at a place.
    pub fn remove(&mut self, at: usize) {
        let removed = self.waiting.remove(at);
        self.dropped += u64::from(removed.is_some_and(|waiting| !waiting.is_sent));
    }

    /// Forgets a flow that is over.
    pub fn forget(&mut self, flow: u64) {
        self.pinned.remove(&flow);
    }

    /// Returns the path of a flow if it is usable, or assigns `choose` from now on.
    pub fn path(
        &mut self,
        flow: u64,
        answers: impl Fn(usize) -> bool,
        choose: Option<usize>,
    ) -> Option<usize> {
        if let Some(path) = self.pinned.get(&flow).filter(|path| answers(**path)) {
            return Some(*path);
        }
        let path = choose?;
        if self.pinned.len() >= FLOWS_MAX {
            self.pinned.pop_first();
        }
        self.pinned.insert(flow, path);
        Some(path)
    }

    /// Notes a message that arrived, and returns whether it is not a duplicate.
    pub fn is_new(&mut self, number: Option<u64>) -> bool {
        let Some(number) = number else { return true };
        if number < self.settled || self.seen.insert(number..number + 1) == 0 {
            return false;
        }
        if self.seen.len() > SPANS_MAX
            && let Some(first) = self.seen.pop_first()
        {
            self.settled = first.end;
        }
        true
    }

    /// Returns the number of messages dropped: no path, too many waiting, or too large.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
