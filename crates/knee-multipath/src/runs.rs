//! Ascending numbers, stored as runs of consecutive ones: there are few runs if
//! most numbers are removed from the front, from the back or next to each other.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers that grows at its end.
#[derive(Clone, Debug, Default)]
pub struct Runs(VecDeque<Range<u64>>);

impl Runs {
    /// Adds a number larger than all others.
    #[inline]
    pub fn push(&mut self, number: u64) {
        match self.0.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.0.push_back(number..number + 1),
        }
    }

    /// Removes a number, if it is present.
    #[inline]
    pub fn remove(&mut self, number: u64) {
        let at = match self.0.front_mut() {
            Some(first) if first.start == number => {
                first.start += 1;
                if first.is_empty() {
                    self.0.pop_front();
                }
                return;
            }
            Some(first) if number < first.end => 0,
            _ => self.0.partition_point(|run| run.end <= number),
        };
        let Some(run) = self.0.get_mut(at).filter(|run| run.start <= number) else { return };
        let after = number + 1..run.end;
        if run.start == number {
            *run = after;
            if self.0[at].is_empty() {
                self.0.remove(at);
            }
            return;
        }
        run.end = number;
        if !after.is_empty() {
            self.0.insert(at + 1, after);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn first(&self) -> Option<u64> {
        self.0.front().map(|run| run.start)
    }

    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.0.back().map(|run| run.end - 1)
    }

    /// Returns the runs, ascending, not touching each other.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }
}
