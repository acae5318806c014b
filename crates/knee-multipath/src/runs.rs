//! Numbers in ascending order, kept as runs of neighbours: few, where most
//! are taken out from the front, from the back or next to one another.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers that grows at its end.
#[derive(Clone, Debug, Default)]
pub struct Runs(VecDeque<Range<u64>>);

impl Runs {
    /// Adds a number above all others.
    #[inline]
    pub fn push(&mut self, number: u64) {
        match self.0.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.0.push_back(number..number + 1),
        }
    }

    /// Takes a number out, if it is there.
    #[inline]
    pub fn remove(&mut self, number: u64) {
        let at = match self.0.front() {
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

    /// The runs, ascending, none touching another.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }
}
