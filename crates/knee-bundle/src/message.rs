//! Messages: datagrams of flows, which are never repeated. A flow stays on one path for as long as
//! that path answers. A duplicated message goes over all paths, and is delivered once.

use crate::spans::Spans;
use bytes::Bytes;
use knee_sched::PathSet;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of waiting messages; beyond it the oldest is dropped.
const WAITING_MAX: usize = 256;
/// Maximum number of spans of a flow's numbers that are remembered.
const SPANS_MAX: usize = 64;
/// Maximum number of flows whose numbers are remembered; beyond it the lowest flow is forgotten.
const FLOWS_MAX: usize = 1024;

/// A waiting message.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The flow.
    pub flow: u64,
    /// Its number in the flow, if it goes over several paths.
    pub number: Option<u64>,
    /// Content.
    pub bytes: Bytes,
    /// Paths to which it must still be given; `None` if not chosen yet.
    pub left: Option<PathSet>,
}

/// Flows of one end.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    waiting: VecDeque<Waiting>,
    /// Path of each flow that is not duplicated.
    pinned: BTreeMap<u64, usize>,
    /// Next number of each duplicated flow.
    numbers: BTreeMap<u64, u64>,
    /// Numbers received of each duplicated flow, and the number below which all count as received.
    seen: BTreeMap<u64, (Spans, u64)>,
    dropped: u64,
}

impl Messages {
    /// Queues a message. `duplicate` sends it over all paths.
    pub fn push(&mut self, flow: u64, bytes: Bytes, duplicate: bool) {
        let number = duplicate.then(|| {
            let next = self.numbers.entry(flow).or_insert(0);
            *next += 1;
            *next - 1
        });
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(Waiting { flow, number, bytes, left: None });
    }

    /// Returns the first waiting message.
    pub fn first(&mut self) -> Option<&mut Waiting> {
        self.waiting.front_mut()
    }

    /// Removes the first message, which was sent.
    pub fn pop(&mut self) {
        self.waiting.pop_front();
    }

    /// Drops the first message, which cannot be sent.
    pub fn drop_first(&mut self) {
        self.dropped += u64::from(self.waiting.pop_front().is_some());
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
    pub fn is_new(&mut self, flow: u64, number: Option<u64>) -> bool {
        let Some(number) = number else { return true };
        if self.seen.len() >= FLOWS_MAX && !self.seen.contains_key(&flow) {
            self.seen.pop_first();
        }
        let (spans, settled) = self.seen.entry(flow).or_default();
        if number < *settled || spans.insert(number..number + 1) == 0 {
            return false;
        }
        if spans.len() > SPANS_MAX
            && let Some(first) = spans.pop_first()
        {
            *settled = first.end;
        }
        true
    }

    /// Returns the number of messages dropped: no path, too many waiting, or too large.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
