//! Keys of the far future: a 4-ary heap.

use crate::queue::{instant, time_of};
use knee_units::Time;

/// A heap of keys, no two of which are equal.
#[derive(Debug, Default)]
pub struct Heap {
    /// The heap, followed by [unused](unused) keys up to a multiple of four
    /// children: a key has four children or none.
    keys: Vec<u128>,
    /// Keys in the heap.
    len: usize,
}

/// Returns a key that follows every real one; no two of four in a row have the same instant.
fn unused(slot: usize) -> u128 {
    u128::MAX - ((slot as u128 & 3) << 64)
}

impl Heap {
    /// Returns when the earliest key is due; [`Time::MAX`] if empty.
    #[inline]
    pub fn first(&self) -> Time {
        if self.len == 0 { Time::MAX } else { time_of(self.keys[0]) }
    }

    /// Removes the earliest key; the last one replaces it.
    #[inline]
    pub fn pop(&mut self) -> Option<u128> {
        self.len = self.len.checked_sub(1)?;
        let last = std::mem::replace(&mut self.keys[self.len], unused(self.len));
        if self.len == 0 {
            return Some(last);
        }
        let root = self.keys[0];
        self.descend(last);
        Some(root)
    }

    /// Appends a key and moves it up to its position.
    #[inline(never)]
    pub fn push(&mut self, key: u128) {
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

    /// Puts `key` into the root and moves it down to its position.
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

/// Returns position and value of the smallest key: a tournament without
/// branches, since the result cannot be predicted. Instants are rarely equal, and
/// only then do the numbers matter.
#[inline(always)]
fn least_of_four(keys: &[u128; 4]) -> (usize, u128) {
    let [a, b, c, d] = keys.map(instant);
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
