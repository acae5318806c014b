//! A queue whose entries are accessed by number.

/// Consecutive entries, numbered from zero, the first of which can be removed.
///
/// A ring whose size is a power of two: an entry's number modulo the size is
/// its place, so that access needs neither a search nor a division.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    places: Box<[T]>,
    /// Number of the first entry.
    first: u64,
    /// Number of the next entry.
    next: u64,
}

/// Initial number of places in a ring; it doubles when full.
const RING_MIN: u64 = 16;

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { places: Box::default(), first: 0, next: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// Returns the number of the first entry, or of the next one if there is none.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number that the next entry will have.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Returns how many entries can be appended before it grows.
    #[inline]
    pub fn room(&self) -> u64 {
        self.places.len() as u64 - (self.next - self.first)
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.room() == 0 {
            self.grow(entry);
        }
        let place = self.place(self.next);
        self.places[place] = entry;
        self.next += 1;
    }

    /// Appends `count` entries, made from their position behind the first of them.
    #[inline]
    pub fn push_run(&mut self, count: u32, entry: impl Fn(u64) -> T) {
        while self.room() < u64::from(count) {
            self.grow(entry(0));
        }
        let first = self.next;
        self.next += u64::from(count);
        let mask = self.places.len().wrapping_sub(1);
        let places = &mut self.places[..];
        for behind in 0..u64::from(count) {
            places[(first + behind) as usize & mask] = entry(behind);
        }
    }

    /// Removes the first entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let entry = *self.get(self.first)?;
        self.first += 1;
        Some(entry)
    }

    /// Counts `count` entries as appended and removed. Valid only if there is none.
    #[inline]
    pub fn pass(&mut self, count: u32) {
        debug_assert!(self.is_empty());
        self.next += u64::from(count);
        self.first = self.next;
    }

    /// Removes the first entries for which `is_over` holds, until one for which it
    /// does not.
    #[inline]
    pub fn pop_while(&mut self, mut is_over: impl FnMut(&T) -> bool) {
        while self.first != self.next && is_over(&self.places[self.place(self.first)]) {
            self.first += 1;
        }
    }

    /// Returns the entry with this number; `None` if it is gone, or does not exist yet.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        if !self.holds(number) {
            return None;
        }
        self.places.get(self.place(number))
    }

    /// Returns a mutable reference to the entry with this number.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if !self.holds(number) {
            return None;
        }
        let place = self.place(number);
        self.places.get_mut(place)
    }

    #[inline]
    fn holds(&self, number: u64) -> bool {
        number.wrapping_sub(self.first) < self.next - self.first
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let size = (self.places.len() as u64 * 2).max(RING_MIN) as usize;
        let mut places = vec![filler; size].into_boxed_slice();
        for number in self.first..self.next {
            places[number as usize & (size - 1)] = self.places[self.place(number)];
        }
        self.places = places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// The standard library's queue is the oracle.
        #[test]
        fn agrees_with_a_queue(pushes in prop::collection::vec(0u8..8, 1..200)) {
            let mut ring = Ring::default();
            let mut oracle = VecDeque::new();
            for (step, pushes) in pushes.into_iter().enumerate() {
                for push in 0..pushes {
                    ring.push((step, push));
                    oracle.push_back((step, push));
                }
                for _ in 0..3 {
                    prop_assert_eq!(ring.pop(), oracle.pop_front());
                }
                prop_assert_eq!(ring.next() - ring.first(), oracle.len() as u64);
                prop_assert_eq!(ring.is_empty(), oracle.is_empty());
                for (at, entry) in oracle.iter().enumerate() {
                    prop_assert_eq!(ring.get(ring.first() + at as u64), Some(entry));
                }
                prop_assert_eq!(ring.get(ring.next()), None);
                prop_assert_eq!(ring.get(ring.first().wrapping_sub(1)), None);
            }
        }
    }
}
