//! The event queue: a 4-ary heap of packed keys.
//!
//! A key holds the time in its upper 44 bits and the source in its lower 20,
//! so events at the same time come in the order of their sources, whatever
//! the queue's inner order was: results do not depend on the queue's design.

use knee_units::Time;

/// Bits of a key that name the source.
const SOURCE_BITS: u32 = 20;
/// Most sources: links, and timers of flows.
pub const SOURCES_MAX: usize = 1 << SOURCE_BITS;
/// Times from here on cannot be queued: 2^44 ns, about 4.9 hours.
pub const TIME_END: Time = Time::from_nanos(1 << (64 - SOURCE_BITS));

/// A priority queue of (time, source).
#[derive(Debug, Default)]
pub struct EventQueue {
    keys: Vec<u64>,
    /// The root was taken and not yet replaced: the next push fills it, so
    /// that taking an event and scheduling its successor cost one descent.
    hole: bool,
}

impl EventQueue {
    /// Schedules `source` at `time`; a time past [`TIME_END`] is dropped.
    #[inline]
    pub fn push(&mut self, time: Time, source: u32) {
        if time >= TIME_END {
            return;
        }
        let key = time.as_nanos() << SOURCE_BITS | u64::from(source);
        if self.hole {
            self.hole = false;
            self.descend(key);
        } else {
            self.keys.push(key);
            self.ascend(key);
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.descend(last);
            }
        }
        let key = *self.keys.first()?;
        self.hole = true;
        let source = (key & (SOURCES_MAX as u64 - 1)) as u32;
        Some((Time::from_nanos(key >> SOURCE_BITS), source))
    }

    /// Moves the last slot, which holds `key`, up to its place.
    #[inline]
    fn ascend(&mut self, key: u64) {
        let mut slot = self.keys.len() - 1;
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
    #[inline]
    fn descend(&mut self, key: u64) {
        let keys = self.keys.as_mut_slice();
        let mut slot = 0;
        loop {
            let first = 4 * slot + 1;
            if first >= keys.len() {
                break;
            }
            let children = &keys[first..keys.len().min(first + 4)];
            let mut least = 0;
            for child in 1..children.len() {
                if children[child] < children[least] {
                    least = child;
                }
            }
            if children[least] >= key {
                break;
            }
            keys[slot] = children[least];
            slot = first + least;
        }
        keys[slot] = key;
    }
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
            operations in prop::collection::vec((any::<bool>(), 0u64..1000, 0u32..50), 0..400)
        ) {
            let mut queue = EventQueue::default();
            let mut oracle = BinaryHeap::new();
            for (push, time, source) in operations {
                if push {
                    queue.push(Time::from_nanos(time), source);
                    oracle.push(Reverse((Time::from_nanos(time), source)));
                } else {
                    prop_assert_eq!(queue.pop(), oracle.pop().map(|Reverse(event)| event));
                }
            }
            while let Some(Reverse(event)) = oracle.pop() {
                prop_assert_eq!(queue.pop(), Some(event));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
