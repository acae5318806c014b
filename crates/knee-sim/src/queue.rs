//! The event queue: a short sorted list, then a timing wheel and a heap, of packed keys.
//!
//! A key holds in its upper 64 bits the [instant](instant): the time, and whether the
//! event is the last of its time; then the number of the event within the run, then
//! its source. Events at the same time are processed in the order in which they were
//! queued, so unrelated events in the run do not change the order of those that share
//! a link or a connection. No two events have the same number, so a waiting timer
//! cannot mistake another event for its own.

use crate::heap::Heap;
use crate::wheel::{self, Wheel};
use knee_units::Time;

/// Bits of a key for the source; the 44 remaining bits for the number are
/// enough for a week of computing, at twenty million events per second.
const SOURCE_BITS: u32 = 20;
/// Largest number of sources: links, and timers of flows.
pub const SOURCES_MAX: usize = 1 << SOURCE_BITS;

/// An event of the run, unique: its number and its source.
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
    /// No event is pending: no event matches.
    pub const NOTHING: Armed = Armed { time: Time::MAX, event: Event(0) };

    /// Whether this is the pending event; if so, none is pending afterwards.
    #[inline]
    pub fn take(&mut self, event: Event) -> bool {
        let found = self.event == event;
        if found {
            *self = Armed::NOTHING;
        }
        found
    }
}

/// Largest number of keys in the sorted list.
const NEAR_MAX: usize = 128;
/// Largest number of keys in the list if there are no others; a run with few flows queues fewer.
const ALONE_MAX: usize = 32;
/// Smallest and largest number of keys that a refill adds to the list.
const REFILL_MIN: usize = 32;
const REFILL_MAX: usize = NEAR_MAX / 2;

/// A priority queue of events.
///
/// Most events are due soon: the next packet of a link precedes almost all timers.
/// The earliest keys are therefore in a short sorted list, into which such a key is
/// inserted with few comparisons. Later keys wait unsorted in the slots of a wheel
/// until few are left in the list, and much later ones in a heap: there are few of
/// those, since the event of a postponed timer stays where it is.
#[derive(Debug)]
pub struct EventQueue {
    /// The earliest keys, in descending order.
    near: [u128; NEAR_MAX],
    near_len: usize,
    /// Number of keys in the list at which it is refilled.
    refill_at: usize,
    /// Current limit on the number of keys in the list.
    near_room: usize,
    /// Keys at or after this time do not go into the list.
    bound: Time,
    wheel: Wheel,
    heap: Heap,
    /// Keys about to be moved into the list.
    due: Vec<u128>,
    /// Number of the last event; the first is 1.
    numbered: u64,
}

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue {
            near: [0; NEAR_MAX],
            near_len: 0,
            refill_at: 0,
            near_room: ALONE_MAX,
            bound: Time::MAX,
            wheel: Wheel::default(),
            heap: Heap::default(),
            due: Vec::with_capacity(NEAR_MAX),
            numbered: 0,
        }
    }
}

/// Bits of a key below the time.
const TIME_SHIFT: u32 = 65;
/// Later events count as due at this time, in 146 years: no run lasts that long.
const LATEST: Time = Time::from_nanos(1 << 62);

/// Returns the key of an event.
#[inline(always)]
fn key(time: Time, event: Event, is_last: bool) -> u128 {
    let instant = time.min(LATEST).as_nanos() << 1 | u64::from(is_last);
    u128::from(instant) << 64 | u128::from(event.0)
}

/// Returns when the event of a key is due.
#[inline]
pub fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> TIME_SHIFT) as u64)
}

/// Returns the upper half of a key. A queued event comes before a new one with
/// the same instant, since its number is lower.
#[inline]
pub fn instant(key: u128) -> u64 {
    (key >> 64) as u64
}

impl EventQueue {
    /// Queues an event of `source` at `time`, after those at the same time.
    #[inline(never)]
    pub fn push(&mut self, time: Time, source: usize) -> Armed {
        if time < self.bound {
            return self.push_soon(time, source);
        }
        let event = self.number(source);
        self.put_later(key(time, event, false));
        Armed { time, event }
    }

    /// Does the same, inlined.
    #[inline(always)]
    pub fn push_soon(&mut self, time: Time, source: usize) -> Armed {
        let event = self.number(source);
        self.insert(time, event, false);
        Armed { time, event }
    }

    /// Returns a new event of `source`.
    #[inline(always)]
    fn number(&mut self, source: usize) -> Event {
        self.numbered += 1;
        Event(self.numbered << SOURCE_BITS | source as u64)
    }

    /// Queues an event after all others at the same time, including those
    /// queued later. At most one such event may be queued at a time.
    pub fn push_last(&mut self, time: Time, source: usize) {
        self.insert(time, Event(u64::MAX << SOURCE_BITS | source as u64), true);
    }

    #[inline(always)]
    fn insert(&mut self, time: Time, event: Event, is_last: bool) {
        let key = key(time, event, is_last);
        let new = instant(key);
        if time >= self.bound {
            return self.insert_later(key);
        }
        if self.near_len >= self.near_room {
            return self.insert_into_full(key);
        }
        let mut place = self.near_len & (NEAR_MAX - 1);
        self.near_len += 1;
        // Two by two, since the later of them is the one to compare with.
        while place > 1 && instant(self.near[place - 2]) <= new {
            self.near[place] = self.near[place - 1];
            self.near[place - 1] = self.near[place - 2];
            place -= 2;
        }
        if place > 0 && instant(self.near[place - 1]) <= new {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = key;
    }

    #[inline(never)]
    fn insert_later(&mut self, key: u128) {
        self.put_later(key);
    }

    #[inline(always)]
    fn put_later(&mut self, key: u128) {
        if !self.wheel.insert(key) {
            self.heap.push(key);
        }
    }

    /// Inserts into a full list: the latest key leaves it.
    #[cold]
    fn insert_into_full(&mut self, key: u128) {
        let latest = self.near[0].max(key);
        self.set_bound(time_of(latest));
        self.insert_later(latest);
        if latest == key {
            return;
        }
        let mut place = 0;
        while place + 1 < self.near_len && self.near[place + 1] > key {
            self.near[place] = self.near[place + 1];
            place += 1;
        }
        self.near[place] = key;
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        if self.near_len <= self.refill_at {
            self.refill();
        }
        self.near_len = self.near_len.checked_sub(1)?;
        let key = self.near[self.near_len & (NEAR_MAX - 1)];
        Some((time_of(key), Event(key as u64)))
    }

    /// From now on, the sources of that many events are known in advance.
    pub fn know_ahead(&mut self, events: usize) {
        debug_assert!(events <= NEAR_MAX - REFILL_MAX, "the list has no room");
        self.refill_at = events;
    }

    /// Begins to load what the next refills need into the cache.
    #[inline]
    pub fn prefetch(&mut self) {
        self.wheel.prefetch();
    }

    /// Returns the source of the event `behind` places after the next, if it is in the list.
    #[inline]
    pub fn upcoming(&self, behind: usize) -> Option<usize> {
        let place = self.near_len.checked_sub(behind + 1)?;
        Some(Event(self.near[place & (NEAR_MAX - 1)] as u64).source())
    }

    /// Moves the earliest keys of the wheel and the heap into the list.
    #[inline(never)]
    fn refill(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        let mut bound = Time::ZERO;
        while due.len() < REFILL_MIN && bound < Time::MAX {
            let earlier = due.len();
            bound = self.take_next(&mut due);
            // Each part is later than those before: only its few keys need sorting.
            due[earlier..].sort_unstable();
        }
        if due.len() > REFILL_MAX {
            bound = time_of(due[REFILL_MAX]);
            due.drain(REFILL_MAX..).for_each(|key| self.heap.push(key));
        }
        self.set_bound(bound);
        // They are later than those that are left.
        self.near.copy_within(..self.near_len, due.len());
        self.near_len += due.len();
        for (place, key) in self.near.iter_mut().zip(due.iter().rev()) {
            *place = *key;
        }
        due.clear();
        self.due = due;
    }

    /// Moves to `due` the heap's keys before the first non-empty slot of the wheel,
    /// or else that slot and the heap's keys in its span. Returns a lower bound of
    /// the times of all other keys; [`Time::MAX`] if there are none.
    #[inline]
    fn take_next(&mut self, due: &mut Vec<u128>) -> Time {
        let slot = self.wheel.first();
        let start = slot.map_or(Time::MAX, wheel::start_of);
        if self.heap.first() < start {
            while self.heap.first() < start && due.len() < REFILL_MAX {
                due.extend(self.heap.pop());
            }
            return self.heap.first().min(start);
        }
        let Some(slot) = slot else { return Time::MAX };
        self.wheel.take(slot, due);
        let end = wheel::start_of(slot + 1);
        while self.heap.first() < end {
            due.extend(self.heap.pop());
        }
        if self.wheel.is_empty() && self.heap.first() == Time::MAX { Time::MAX } else { end }
    }

    /// Records that all keys before `bound` are in the list.
    fn set_bound(&mut self, bound: Time) {
        self.bound = bound;
        self.wheel.advance(bound);
        self.near_room = if bound == Time::MAX { ALONE_MAX } else { NEAR_MAX };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// The standard library's heap is the oracle. Times are close together
        /// or years apart. What is known in advance is what comes.
        #[test]
        fn agrees_with_a_binary_heap(
            ahead in 0usize..=NEAR_MAX - REFILL_MAX,
            operations in prop::collection::vec(
                (0u8..5, 0u64..1000, 0u32..6, 0usize..50), 0..400
            )
        ) {
            let mut queue = EventQueue::default();
            queue.know_ahead(ahead);
            let mut oracle = BinaryHeap::new();
            let mut last_is_queued = false;
            for (number, (kind, time, scale, source)) in operations.into_iter().enumerate() {
                let time = Time::from_nanos(time << (8 * scale));
                match kind {
                    0..=2 => {
                        queue.push(time, source);
                        oracle.push(Reverse((time, number, source)));
                    }
                    3 if last_is_queued => {}
                    3 => {
                        last_is_queued = true;
                        queue.push_last(time, source);
                        oracle.push(Reverse((time, usize::MAX, source)));
                    }
                    _ => {
                        let expected = oracle.pop();
                        let is_last = |next: &Reverse<(_, usize, _)>| next.0.1 == usize::MAX;
                        last_is_queued &= !expected.as_ref().is_some_and(is_last);
                        let expected = expected.map(|Reverse((time, _, source))| (time, source));
                        let found = queue.pop().map(|(time, event)| (time, event.source()));
                        prop_assert_eq!(found, expected);
                    }
                }
            }
            let mut known = Vec::new();
            while let Some(Reverse((time, _, source))) = oracle.pop() {
                let found = queue.pop().map(|(time, event)| (time, event.source()));
                prop_assert_eq!(found, Some((time, source)));
                prop_assert_eq!(known.first().unwrap_or(&source), &source);
                queue.prefetch();
                known = (0..NEAR_MAX).map_while(|behind| queue.upcoming(behind)).collect();
                prop_assert!(known.len() >= ahead.min(oracle.len() + 1).saturating_sub(1));
                prop_assert_eq!(queue.upcoming(known.len()), None);
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }

    /// A timer that was re-armed, even for the same time, does not accept its
    /// earlier event.
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
