//! Keys of the near future, by due time: a timing wheel (Varghese and Lauck,
//! SOSP 1987), whose slots are not sorted.

use crate::queue::time_of;
use knee_transport::prefetch;
use knee_units::Time;

/// Duration of a slot, 2^16 ns, 66 us: a few events of a 1 Gbit/s link.
const SLOT_SHIFT: u32 = 16;
/// Number of slots: 268 ms, longer than a delayed ACK, the pacing interval of a
/// slow flow, and most retransmission timers.
const SLOTS: usize = 4096;
/// Slots whose entries are loaded in advance.
const WALK_SLOTS: u64 = 4;
/// Index that means no entry.
const NONE: u32 = u32::MAX;

/// A key, and the next entry in its slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    next: u32,
}

/// Keys in the near future.
#[derive(Debug)]
pub struct Wheel {
    /// First entry of each slot.
    heads: Box<[u32; SLOTS]>,
    /// Bitmap of the non-empty slots, and of its non-zero words.
    occupied: [u64; SLOTS / 64],
    words: u64,
    entries: Vec<Entry>,
    /// First unused entry.
    free: u32,
    /// The first valid slot, by number since time zero; the `SLOTS` slots from
    /// here have a place.
    base: u64,
    /// Where [`prefetch`](Wheel::prefetch) is: a slot, and an entry in it.
    walked: u64,
    walked_to: u32,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel {
            heads: Box::new([NONE; SLOTS]),
            occupied: [0; SLOTS / 64],
            words: 0,
            entries: Vec::new(),
            free: NONE,
            base: 0,
            walked: 0,
            walked_to: NONE,
        }
    }
}

/// Returns the slot of a key, by number since time zero.
#[inline]
fn slot(key: u128) -> u64 {
    time_of(key).as_nanos() >> SLOT_SHIFT
}

/// Returns when a slot begins.
#[inline]
pub fn start_of(slot: u64) -> Time {
    Time::from_nanos(slot << SLOT_SHIFT)
}

impl Wheel {
    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Advances the wheel to `bound`: no key before it may be present.
    #[inline]
    pub fn advance(&mut self, bound: Time) {
        let slot = bound.as_nanos() >> SLOT_SHIFT;
        // It only moves backwards when empty, since keys would lose their unique place.
        if slot > self.base || self.is_empty() {
            self.base = slot;
        }
    }

    /// Inserts a key, unless it is too far ahead, or behind. Returns whether it did.
    #[inline]
    pub fn insert(&mut self, key: u128) -> bool {
        let slot = slot(key);
        if slot.wrapping_sub(self.base) >= SLOTS as u64 {
            return false;
        }
        let place = slot as usize % SLOTS;
        let entry = Entry { key, next: self.heads[place] };
        self.heads[place] = self.store(entry);
        self.occupied[place / 64] |= 1 << (place % 64);
        self.words |= 1 << (place / 64);
        true
    }

    #[inline]
    fn store(&mut self, entry: Entry) -> u32 {
        let index = self.free;
        match self.entries.get_mut(index as usize) {
            Some(place) => {
                self.free = place.next;
                *place = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Returns the first non-empty slot.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        let start = self.base as usize % SLOTS;
        let ahead = self.first_from(start)?.wrapping_sub(start) % SLOTS;
        Some(self.base + ahead as u64)
    }

    /// Moves the keys of a slot to the end of `to`, unsorted.
    #[inline]
    pub fn take(&mut self, slot: u64, to: &mut Vec<u128>) {
        let place = slot as usize % SLOTS;
        self.occupied[place / 64] &= !(1 << (place % 64));
        if self.occupied[place / 64] == 0 {
            self.words &= !(1 << (place / 64));
        }
        let mut index = std::mem::replace(&mut self.heads[place], NONE);
        while let Some(entry) = self.entries.get_mut(index as usize) {
            to.push(entry.key);
            let next = std::mem::replace(&mut entry.next, self.free);
            self.free = index;
            index = next;
        }
    }

    /// Begins to load one more entry of the near future into the cache, which
    /// [`take`](Wheel::take) would otherwise wait for one after another.
    #[inline]
    pub fn prefetch(&mut self) {
        if let Some(entry) = self.entries.get(self.walked_to as usize) {
            self.walked_to = entry.next;
        } else if self.walked < self.base + WALK_SLOTS {
            self.walked = self.walked.max(self.base) + 1;
            self.walked_to = self.heads[self.walked as usize % SLOTS];
        }
        if let Some(entry) = self.entries.get(self.walked_to as usize) {
            prefetch(entry);
        }
    }

    /// Returns the first non-empty place from `start`, around the wheel.
    #[inline]
    fn first_from(&self, start: usize) -> Option<usize> {
        let word = start / 64;
        let rest = self.occupied[word] >> (start % 64);
        if rest != 0 {
            return Some(start + rest.trailing_zeros() as usize);
        }
        if self.words == 0 {
            return None;
        }
        let later = self.words & (u64::MAX << word << 1);
        let words = if later == 0 { self.words } else { later };
        let word = words.trailing_zeros() as usize;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }
}
