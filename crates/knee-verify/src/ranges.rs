//! Received numbers: all below one, and ranges above it.

use std::collections::BTreeMap;

/// A set of numbers that fills up from zero.
#[derive(Default)]
pub struct Ranges {
    next: u64,
    /// Half-open ranges above `next`, disjoint, none touching another.
    ahead: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Returns the number below which the set is complete.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether the set has numbers above a missing one.
    pub fn has_gaps(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Adds `from..until`.
    pub fn add(&mut self, from: u64, until: u64) {
        let (mut from, mut until) = (from.max(self.next), until);
        if from >= until {
            return;
        }
        if let Some((&start, &end)) = self.ahead.range(..from).next_back()
            && end >= from
        {
            (from, until) = (start, until.max(end));
        }
        while let Some((&start, &end)) = self.ahead.range(from..=until).next() {
            self.ahead.remove(&start);
            until = until.max(end);
        }
        if from == self.next {
            self.next = until;
        } else {
            self.ahead.insert(from, until);
        }
    }

    /// Returns whether the set has all of `from..until`.
    pub fn holds(&self, from: u64, until: u64) -> bool {
        let from = from.max(self.next);
        until <= from || self.ahead.range(..=from).next_back().is_some_and(|(_, &end)| end >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_fill_up() {
        let mut ranges = Ranges::default();
        for (from, until) in [(4, 6), (8, 9), (6, 7), (3, 5)] {
            ranges.add(from, until);
        }
        assert_eq!(ranges.next(), 0);
        assert!(ranges.holds(3, 7) && !ranges.holds(3, 8) && !ranges.holds(2, 4));
        ranges.add(0, 3);
        assert_eq!(ranges.next(), 7);
        ranges.add(5, 20);
        assert_eq!((ranges.next(), ranges.holds(0, 20), ranges.holds(19, 21)), (20, true, false));
    }

    /// Compared with a plain list of flags, over all kinds of overlaps.
    #[test]
    fn agrees_with_a_list_of_flags() {
        let mut state = 1_u64;
        for _ in 0..200 {
            let (mut ranges, mut flags) = (Ranges::default(), [false; 40]);
            for _ in 0..25 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (from, length) = ((state >> 40) % 32, (state >> 50) % 8);
                ranges.add(from, from + length);
                flags[from as usize..(from + length) as usize].fill(true);
                let next = flags.iter().position(|flag| !flag).unwrap_or(40);
                assert_eq!(ranges.next(), next as u64);
                for (from, until) in [(0, 5), (3, 9), (10, 30), (31, 32)] {
                    let all = flags[from as usize..until as usize].iter().all(|flag| *flag);
                    assert_eq!(ranges.holds(from, until), all);
                }
            }
        }
    }
}
