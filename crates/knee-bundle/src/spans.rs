//! Sets of mostly consecutive numbers.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers, as ascending spans that do not touch.
#[derive(Clone, Debug, Default)]
pub struct Spans(VecDeque<Range<u64>>);

impl Spans {
    /// Adds a span, and returns how many of its numbers are new.
    pub fn insert(&mut self, added: Range<u64>) -> u64 {
        if added.is_empty() {
            return 0;
        }
        // Mostly it follows the last span.
        if let Some(last) = self.0.back_mut()
            && last.end == added.start
        {
            last.end = added.end;
            return added.end - added.start;
        }
        let first = self.0.partition_point(|span| span.end < added.start);
        let len = added.end - added.start;
        let touches = |span: &Range<u64>| span.start <= added.end;
        let Some(span) = self.0.get_mut(first).filter(|span| touches(span)) else {
            self.0.insert(first, added);
            return len;
        };
        let mut known = overlap(span, &added);
        span.start = span.start.min(added.start);
        let mut end = span.end.max(added.end);
        // Mostly it touches no other.
        let mut behind = first + 1;
        while let Some(span) = self.0.get(behind).filter(|span| touches(span)) {
            known += overlap(span, &added);
            end = end.max(span.end);
            behind += 1;
        }
        self.0[first].end = end;
        if behind > first + 1 {
            self.0.drain(first + 1..behind);
        }
        len - known
    }

    /// Returns whether a number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|span| span.end <= number);
        self.0.get(at).is_some_and(|span| span.start <= number)
    }

    /// Returns whether all numbers of a span are in the set.
    pub fn contains_all(&self, wanted: Range<u64>) -> bool {
        let at = self.0.partition_point(|span| span.end <= wanted.start);
        let span = self.0.get(at);
        wanted.is_empty()
            || span.is_some_and(|span| span.start <= wanted.start && wanted.end <= span.end)
    }

    /// Removes all numbers below `number`.
    pub fn remove_below(&mut self, number: u64) {
        while let Some(first) = self.0.front_mut() {
            if first.end > number {
                first.start = first.start.max(number);
                break;
            }
            self.0.pop_front();
        }
    }

    /// Removes the lowest span.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.0.pop_front()
    }

    /// Returns the end of the span that begins at zero, or zero if there is none.
    pub fn prefix(&self) -> u64 {
        self.0.front().filter(|span| span.start == 0).map_or(0, |span| span.end)
    }

    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the spans, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.0.iter()
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The oracle is the standard library's set.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0..200_u64, 0..20_u64, 0..8_u8), 1..80)) {
            let (mut spans, mut oracle) = (Spans::default(), BTreeSet::new());
            for (start, len, kind) in steps {
                if kind == 0 {
                    spans.remove_below(start);
                    oracle = oracle.split_off(&start);
                } else {
                    let new = (start..start + len).filter(|number| oracle.insert(*number)).count();
                    prop_assert_eq!(spans.insert(start..start + len), new as u64);
                }
                let there: Vec<u64> = spans.iter().cloned().flatten().collect();
                prop_assert!(there.iter().eq(oracle.iter()));
                prop_assert_eq!(spans.contains(start), oracle.contains(&start));
                let all = (start..start + len).all(|number| oracle.contains(&number));
                prop_assert_eq!(spans.contains_all(start..start + len), all);
                let apart = spans.iter().zip(spans.iter().skip(1)).all(|(a, b)| a.end < b.start);
                prop_assert!(apart, "{:?}", spans);
            }
        }
    }
}
