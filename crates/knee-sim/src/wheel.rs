//! Keys of the near future, by when they are due: a timing wheel (Varghese and
//! Lauck, SOSP 1987), whose slots are not in order.

use knee_units::Time;

/// A slot takes 2^14 ns, 16 us: a few events of a 1 Gbit/s link.
const SLOT_SHIFT: u32 = 14;
/// Slots: 67 ms, longer than a delayed ACK and what a slow flow is paced by.
const SLOTS: usize = 4096;
/// In place of an entry.
const NONE: u32 = u32::MAX;

/// A key, and the entry that follows it in its slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    next: u32,
}

/// Keys that lie ahead, but not far.
#[derive(Debug)]
pub struct Wheel {
    /// First entry of each slot.
    heads: Box<[u32; SLOTS]>,
    /// Bits of the slots that are not empty, and of the words that are not zero.
    occupied: [u64; SLOTS / 64],
    words: u64,
    entries: Vec<Entry>,
    /// First entry that is not in use.
    free: u32,
    /// The first slot that counts, by number since time zero; so many from here
    /// on have a place.
    base: u64,
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
        }
    }
}

/// The slot of a key, by number since time zero.
#[inline]
fn slot(key: u128) -> u64 {
    (key >> 64) as u64 >> SLOT_SHIFT
}

/// When a slot begins.
#[inline]
pub fn start_of(slot: u64) -> Time {
    Time::from_nanos(slot << SLOT_SHIFT)
}

impl Wheel {
    /// There is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// No key that comes before `bound` is there.
    #[inline]
    pub fn advance(&mut self, bound: Time) {
        let slot = bound.as_nanos() >> SLOT_SHIFT;
        // Backwards only without a key, which would have no place of its own.
        if slot > self.base || self.is_empty() {
            self.base = slot;
        }
    }

    /// Takes a key in, unless it lies too far ahead, or behind.
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

    /// The first slot that has keys.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        let start = self.base as usize % SLOTS;
        let ahead = self.first_from(start)?.wrapping_sub(start) % SLOTS;
        Some(self.base + ahead as u64)
    }

    /// Moves the keys of a slot to the end of `to`, in no order.
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

    /// The first place from `start` on, around the wheel, that is not empty.
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
