//! Messages: datagrams of flows, which are not repeated. Each flow keeps to one path as
//! long as that answers; one that is duplicated goes over all of them, and what comes
//! twice is handed over once.

use crate::spans::Spans;
use bytes::Bytes;
use knee_sched::PathSet;
use std::collections::{BTreeMap, VecDeque};

/// Messages that wait; of more the oldest is dropped.
const WAITING_MAX: usize = 256;
/// Spans of a flow's numbers that are remembered.
const SPANS_MAX: usize = 64;
/// Flows whose numbers are remembered; of more the least number goes.
const FLOWS_MAX: usize = 1024;

/// One that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The flow.
    pub flow: u64,
    /// Its number in the flow, where it goes over several paths.
    pub number: Option<u64>,
    /// Content.
    pub bytes: Bytes,
    /// Paths that it has not been given to; none yet: to be chosen.
    pub left: Option<PathSet>,
}

/// The flows of one end.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    waiting: VecDeque<Waiting>,
    /// The path of each flow that is not duplicated.
    pinned: BTreeMap<u64, usize>,
    /// Numbers given to flows that are.
    numbers: BTreeMap<u64, u64>,
    /// What arrived of them, and the number below which all counts as arrived.
    seen: BTreeMap<u64, (Spans, u64)>,
    dropped: u64,
}

impl Messages {
    /// Queues a message. `duplicate`: over all paths.
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

    /// The first that waits.
    pub fn first(&mut self) -> Option<&mut Waiting> {
        self.waiting.front_mut()
    }

    /// The first is done with.
    pub fn pop(&mut self) {
        self.waiting.pop_front();
    }

    /// The first cannot be sent.
    pub fn drop_first(&mut self) {
        self.dropped += u64::from(self.waiting.pop_front().is_some());
    }

    /// The path that a flow keeps to, if it answers; else that of `choose` from now on.
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

    /// A message arrived; whether it is the first time.
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

    /// Messages that were not sent: no path, or too many waited, or too large.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
