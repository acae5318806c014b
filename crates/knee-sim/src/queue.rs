//! The event queue: a short list in order, then a 4-ary heap, of packed keys.
//!
//! A key holds the time in its upper 64 bits, then the number of the event
//! within the run, then its source. Events at the same time come in the order
//! in which they were queued, so what else goes on in the run does not change
//! the order of those that share a link or a connection. No two events have
//! the same number: whoever waits for one cannot mistake another for it.

use knee_units::Time;

/// Bits of a key that name the source; 44 are left for the number, which is
/// enough for years of computing.
const SOURCE_BITS: u32 = 20;
/// Most sources: links, and timers of flows.
pub const SOURCES_MAX: usize = 1 << SOURCE_BITS;

/// An event of the run, unlike every other: its number and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(u64);

impl Event {
    #[inline]
    pub fn source(self) -> usize {
        self.0 as usize & (SOURCES_MAX - 1)
    }
}

/// The earliest event that is queued for a timer or a link.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    pub time: Time,
    event: Event,
}

impl Armed {
    /// None is queued that counts: no event is the one waited for.
    pub const NOTHING: Armed = Armed { time: Time::MAX, event: Event(0) };

    /// Whether this is the event waited for; if so, none is any more.
    #[inline]
    pub fn take(&mut self, event: Event) -> bool {
        let found = self.event == event;
        if found {
            *self = Armed::NOTHING;
        }
        found
    }
}

/// Keys that are kept in order before the heap: more than a run with a few flows
/// ever queues.
const NEAR_MAX: usize = 32;
/// Keys that are taken into the list when it is empty: as many again find room.
const REFILL: usize = NEAR_MAX / 2;

/// A priority queue of events.
///
/// Most events are due soon: the next packet of a link comes before nearly all
/// timers. So the earliest keys are a short list in order, into which such a key
/// is put with few comparisons, and only what comes later goes into the heap.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// The earliest keys, from the latest to the earliest.
    near: [u128; NEAR_MAX],
    near_len: usize,
    /// The heap of all that comes after them, and behind it [unused](unused)
    /// keys up to a multiple of four children: a key has four children or none.
    keys: Vec<u128>,
    /// Keys in the heap.
    len: usize,
    /// Number of the last event; the first has 1.
    numbered: u64,
}

/// Comes behind every key; of four in a row no two have the same time.
fn unused(slot: usize) -> u128 {
    u128::MAX - ((slot as u128 & 3) << 64)
}

impl EventQueue {
    /// Queues an event of `source` at `time`, behind those at the same time.
    #[inline(never)]
    pub fn push(&mut self, time: Time, source: usize) -> Armed {
        self.push_soon(time, source)
    }

    /// The same, without a call.
    #[inline(always)]
    pub fn push_soon(&mut self, time: Time, source: usize) -> Armed {
        self.numbered += 1;
        let event = Event(self.numbered << SOURCE_BITS | source as u64);
        self.insert(time, event);
        Armed { time, event }
    }

    /// Queues what comes behind all others at the same time, also those that
    /// are not queued yet.
    pub fn push_last(&mut self, time: Time, source: usize) {
        self.insert(time, Event(u64::MAX << SOURCE_BITS | source as u64));
    }

    #[inline(always)]
    fn insert(&mut self, time: Time, event: Event) {
        let key = u128::from(time.as_nanos()) << 64 | u128::from(event.0);
        if self.len > 0 && key > self.keys[0] {
            return self.ascend(key);
        }
        if self.near_len == NEAR_MAX {
            return self.insert_into_full(key);
        }
        let mut place = self.near_len & (NEAR_MAX - 1);
        self.near_len += 1;
        while place > 0 && self.near[place - 1] < key {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = key;
    }

    /// The latest of the list and `key` goes into the heap.
    #[cold]
    fn insert_into_full(&mut self, key: u128) {
        let latest = self.near[0];
        if key > latest {
            return self.ascend(key);
        }
        self.ascend(latest);
        let mut place = 0;
        while place + 1 < NEAR_MAX && self.near[place + 1] > key {
            self.near[place] = self.near[place + 1];
            place += 1;
        }
        self.near[place] = key;
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        if self.near_len == 0 {
            self.refill();
        }
        self.near_len = self.near_len.checked_sub(1)?;
        let key = self.near[self.near_len & (NEAR_MAX - 1)];
        Some((Time::from_nanos((key >> 64) as u64), Event(key as u64)))
    }

    /// Takes the earliest keys of the heap into the list.
    #[inline(never)]
    fn refill(&mut self) {
        let count = self.len.min(REFILL);
        for place in (0..count).rev() {
            self.near[place] = self.take_root();
        }
        self.near_len = count;
    }

    /// The earliest key of the heap, which is not empty; the last one takes its
    /// place.
    #[inline]
    fn take_root(&mut self) -> u128 {
        self.len -= 1;
        let last = std::mem::replace(&mut self.keys[self.len], unused(self.len));
        if self.len == 0 {
            return last;
        }
        let root = self.keys[0];
        self.descend(last);
        root
    }

    /// Appends `key` to the heap and moves it up to its place.
    #[inline(never)]
    fn ascend(&mut self, key: u128) {
        if self.len == self.keys.len() {
            let room = if self.len == 0 { 1 } else { 4 };
            self.keys.extend((self.len..self.len + room).map(unused));
        }
        let mut slot = self.len;
        self.len += 1;
        while slot > 0 {
            let parent = (slot - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[slot] = self.keys[parent];
            slot = parent;
        }
        self.keys[slot] = key;
    }

    /// Puts `key` into the root and moves it down to its place.
    #[inline(always)]
    fn descend(&mut self, key: u128) {
        let keys = &mut self.keys[..];
        let mut slot = 0;
        while 4 * slot + 1 < self.len {
            let first = 4 * slot + 1;
            let Some(children) = keys[first..].first_chunk() else { break };
            let (least, child) = least_of_four(children);
            if child >= key {
                break;
            }
            keys[slot] = child;
            slot = first + least;
        }
        keys[slot] = key;
    }
}

/// Position and value of the least: a tournament without branches, since which
/// child is the least cannot be predicted. Times seldom tie, and only then do
/// the numbers count.
#[inline(always)]
fn least_of_four(keys: &[u128; 4]) -> (usize, u128) {
    let [a, b, c, d] = keys.map(|key| (key >> 64) as u64);
    let (left, at_left) = if b < a { (b, 1) } else { (a, 0) };
    let (right, at_right) = if d < c { (d, 3) } else { (c, 2) };
    let least = if a == b || c == d || left == right {
        least_by_number(keys)
    } else if right < left {
        at_right
    } else {
        at_left
    };
    (least, keys[least & 3])
}

#[cold]
#[inline(never)]
fn least_by_number(keys: &[u128; 4]) -> usize {
    let [a, b, c, d] = *keys;
    let left = if b < a { (b, 1) } else { (a, 0) };
    let right = if d < c { (d, 3) } else { (c, 2) };
    if right.0 < left.0 { right.1 } else { left.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// The standard library's heap is the oracle.
        #[test]
        fn agrees_with_a_binary_heap(
            operations in prop::collection::vec((0u8..5, 0u64..1000, 0usize..50), 0..400)
        ) {
            let mut queue = EventQueue::default();
            let mut oracle = BinaryHeap::new();
            for (number, (kind, time, source)) in operations.into_iter().enumerate() {
                let time = Time::from_nanos(time);
                match kind {
                    0..=2 => {
                        queue.push(time, source);
                        oracle.push(Reverse((time, number, source)));
                    }
                    3 => {
                        queue.push_last(time, source);
                        oracle.push(Reverse((time, usize::MAX, source)));
                    }
                    _ => {
                        let expected = oracle.pop().map(|Reverse((time, _, source))| (time, source));
                        let found = queue.pop().map(|(time, event)| (time, event.source()));
                        prop_assert_eq!(found, expected);
                    }
                }
            }
            while let Some(Reverse((time, _, source))) = oracle.pop() {
                let found = queue.pop().map(|(time, event)| (time, event.source()));
                prop_assert_eq!(found, Some((time, source)));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }

    /// A timer that was armed anew, even for the same time, does not take the
    /// event of its earlier life for its own.
    #[test]
    fn an_old_event_is_not_the_one_waited_for() {
        let mut queue = EventQueue::default();
        let at = Time::from_millis(3);
        queue.push(at, 7);
        let mut armed = queue.push(at, 7);
        let old = queue.pop().expect("the first is queued").1;
        let new = queue.pop().expect("the second is queued").1;
        assert!(!armed.take(old));
        assert!(armed.take(new));
        assert!(!armed.take(new));
        let mut nothing = Armed::NOTHING;
        assert!(!nothing.take(old));
    }
}
