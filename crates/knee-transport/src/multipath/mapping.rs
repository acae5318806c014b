//! Which data of the connection the segments of a subflow carry.

use crate::before;
use knee_multipath::Ring;
use std::cell::Cell;
use std::ops::Range;

/// Segments of a subflow that carry consecutive packets of the connection, all of one
/// length: a data sequence mapping (RFC 8684, section 3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Number of the first packet within the connection.
    pub chunk: u64,
    /// Its first byte within the connection.
    pub offset: u64,
    /// Number of the segment that carries it, which wraps.
    pub segment: u32,
    /// Number of segments.
    pub count: u32,
    /// Bytes of each.
    pub len: u16,
}

impl Mapping {
    /// Returns the byte of the connection after the first `count` segments.
    #[inline]
    fn end(&self, count: u32) -> u64 {
        self.offset + u64::from(count) * u64::from(self.len)
    }

    #[inline(always)]
    fn covers(&self, segment: u32) -> bool {
        segment.wrapping_sub(self.segment) < self.count
    }

    /// Returns the first byte within the connection and the length of a segment; `None`
    /// if it has another mapping.
    #[inline(always)]
    pub fn data(&self, segment: u32) -> Option<(u64, u16)> {
        let behind = segment.wrapping_sub(self.segment);
        let offset = self.offset + u64::from(behind) * u64::from(self.len);
        self.covers(segment).then_some((offset, self.len))
    }
}

/// The mappings of a subflow's segments, at least of the unacknowledged ones.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    ring: Ring<Mapping>,
    /// The first segment whose acknowledgement was not reported.
    first: u32,
    /// Where the mapping after the one found last is in the ring.
    likely: Cell<u64>,
}

impl Mappings {
    /// Appends the mapping of the next segments. `first` is the first unacknowledged
    /// segment; the connection's data before byte `released` is acknowledged.
    #[inline(always)]
    pub fn push(&mut self, mapping: Mapping, first: u32, released: u64) {
        if self.ring.room() == 0 {
            self.discard(first, released);
        }
        self.ring.push(mapping);
    }

    /// Removes mappings that need not be reported, so that the ring need not grow.
    #[inline(never)]
    fn discard(&mut self, first: u32, released: u64) {
        self.ring.pop_while(|mapping| {
            let after = mapping.segment.wrapping_add(mapping.count);
            let over = !before(first, after) && mapping.end(mapping.count) <= released;
            self.first = if over { after } else { self.first };
            over
        });
    }

    /// Reports the packets of segments before `first`, as ranges that end at a byte of
    /// the connection, and removes them.
    #[inline]
    pub fn acknowledge(&mut self, first: u32, mut report: impl FnMut(Range<u64>, u64)) {
        while self.first != first
            && let Some(mapping) = self.ring.get(self.ring.first())
        {
            let from = self.first.wrapping_sub(mapping.segment);
            let to = first.wrapping_sub(mapping.segment).min(mapping.count);
            let chunks = mapping.chunk + u64::from(from)..mapping.chunk + u64::from(to);
            let end = mapping.end(to);
            self.first = mapping.segment.wrapping_add(to);
            if to == mapping.count {
                self.ring.pop();
            }
            report(chunks, end);
        }
    }

    /// Returns the mapping of an unacknowledged segment: usually the one after the
    /// mapping that was found last.
    #[inline]
    pub fn find(&self, segment: u32) -> Option<&Mapping> {
        let likely = self.likely.get();
        match self.ring.get(likely) {
            Some(mapping) if mapping.covers(segment) => {
                self.likely.set(likely + 1);
                Some(mapping)
            }
            _ => self.search(segment),
        }
    }

    #[inline(never)]
    fn search(&self, segment: u32) -> Option<&Mapping> {
        let start = self.ring.get(self.ring.first())?.segment;
        let behind = |segment: u32| segment.wrapping_sub(start);
        let (mut low, mut high) = (self.ring.first(), self.ring.next());
        while low < high {
            let middle = low.midpoint(high);
            let mapping = self.ring.get(middle)?;
            if behind(mapping.segment.wrapping_add(mapping.count)) <= behind(segment) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.likely.set(low + 1);
        self.ring.get(low).filter(|mapping| mapping.covers(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// A list of all segments is the oracle: their number, packet, first byte and length.
        #[test]
        fn segments_have_their_data(
            start in any::<u32>(),
            steps in proptest::collection::vec((1u32..5, 0u16..30, 0u32..9, any::<u32>()), 1..200),
        ) {
            let mut mappings = Mappings { first: start, ..Mappings::default() };
            let mut segments: VecDeque<(u32, u64, u64, u16)> = VecDeque::new();
            let (mut segment, mut chunk, mut offset) = (start, 0, 0);
            let (mut released, mut reported) = (0, Vec::new());
            let mut expected = Vec::new();
            for (count, len, acked, any) in steps {
                let len = len + 1;
                let first = segments.front().map_or(segment, |it| it.0);
                mappings.push(Mapping { chunk, offset, segment, count, len }, first, released);
                for _ in 0..count {
                    segments.push_back((segment, chunk, offset, len));
                    segment = segment.wrapping_add(1);
                    (chunk, offset) = (chunk + 1, offset + u64::from(len));
                }
                // The other path's packets come between.
                chunk += u64::from(any % 3);
                offset += u64::from(any % 3) * 7;
                for _ in 0..acked {
                    let Some((_, chunk, offset, len)) = segments.pop_front() else { break };
                    expected.push((chunk, offset + u64::from(len)));
                }
                let first = segments.front().map_or(segment, |it| it.0);
                if any % 4 == 0 {
                    released = expected.last().map_or(released, |it| it.1.max(released));
                }
                if any % 7 == 0 {
                    mappings.acknowledge(first, |chunks, end| reported.push((chunks, end)));
                }
                if let Some(at) = (any as usize).checked_rem(segments.len()) {
                    let (segment, _, offset, len) = segments[at];
                    let found = mappings.find(segment).and_then(|it| it.data(segment));
                    prop_assert_eq!(found, Some((offset, len)));
                }
                prop_assert_eq!(mappings.find(segment), None);
            }
            let first = segments.front().map_or(segment, |it| it.0);
            mappings.acknowledge(first, |chunks, end| reported.push((chunks, end)));
            // Only what the peer has acknowledged may be missing.
            let chunks: Vec<u64> = reported.iter().flat_map(|(chunks, _)| chunks.clone()).collect();
            let missing = expected.iter().filter(|(chunk, _)| !chunks.contains(chunk));
            prop_assert!(missing.clone().all(|(_, end)| *end <= released), "{missing:?}");
            prop_assert!(chunks.iter().all(|it| expected.iter().any(|(chunk, _)| chunk == it)));
            prop_assert!(chunks.is_sorted_by(|a, b| a < b), "one is reported twice");
        }
    }
}
