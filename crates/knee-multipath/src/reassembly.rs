//! Restores the order of data from all paths, as it arrives.

use knee_units::Time;
use std::collections::VecDeque;

/// A range of data that waits for the data before it.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Sum over its bytes of their arrival times, in byte nanoseconds.
    arrivals: u128,
}

/// Result of an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reassembled {
    /// Bytes handed to the application, in order.
    pub delivered: u64,
    /// Bytes of the arrival that were already present.
    pub duplicate: u64,
}

/// The connection's data at the receiving end.
#[derive(Clone, Debug)]
pub struct Reassembly {
    /// Next byte expected.
    next: u64,
    /// Ranges beyond `next`, ascending, not touching each other.
    ranges: VecDeque<Range>,
    /// Start of the first range, or [`NONE`].
    first_start: u64,
    waiting: u64,
    waiting_peak: u64,
    duplicate: u64,
    blocked: u128,
}

/// Start of a range that does not exist.
const NONE: u64 = u64::MAX;

impl Default for Reassembly {
    fn default() -> Reassembly {
        Reassembly {
            next: 0,
            ranges: VecDeque::new(),
            first_start: NONE,
            waiting: 0,
            waiting_peak: 0,
            duplicate: 0,
            blocked: 0,
        }
    }
}

impl Reassembly {
    /// Processes data that arrived.
    #[inline]
    pub fn insert(&mut self, now: Time, offset: u64, len: u64) -> Reassembled {
        let end = offset + len;
        if offset == self.next && end <= self.first_start {
            self.next = end;
            let released = if end == self.first_start { self.deliver(now) } else { 0 };
            return Reassembled { delivered: len + released, duplicate: 0 };
        }
        // Most other data continues what waits last.
        if let Some(last) = self.ranges.back_mut()
            && last.end == offset
        {
            last.end = end;
            last.arrivals += u128::from(len) * u128::from(now.as_nanos());
            self.waiting += len;
            self.waiting_peak = self.waiting_peak.max(self.waiting);
            return Reassembled::default();
        }
        self.insert_any(now, offset, len)
    }

    #[inline(never)]
    fn insert_any(&mut self, now: Time, offset: u64, len: u64) -> Reassembled {
        let new = self.merge(now, offset.max(self.next), offset + len);
        self.first_start = self.ranges.front().map_or(NONE, |first| first.start);
        let duplicate = len - new;
        self.duplicate += duplicate;
        self.waiting += new;
        let delivered = if self.first_start == self.next { self.deliver(now) } else { 0 };
        self.waiting_peak = self.waiting_peak.max(self.waiting);
        Reassembled { delivered, duplicate }
    }

    /// Adds `start..end` to the ranges; returns how many of its bytes are new.
    fn merge(&mut self, now: Time, start: u64, end: u64) -> u64 {
        if end <= start {
            return 0;
        }
        let arrivals = |bytes: u64| u128::from(bytes) * u128::from(now.as_nanos());
        // Most data arrives after everything present.
        match self.ranges.back_mut() {
            Some(last) if last.end >= start => {}
            _ => {
                self.ranges.push_back(Range { start, end, arrivals: arrivals(end - start) });
                return end - start;
            }
        }
        // The ranges from `first` up to `last` touch the new one.
        let first = self.ranges.partition_point(|range| range.end < start);
        let last = self.ranges.partition_point(|range| range.start <= end);
        let mut merged = Range { start, end, arrivals: 0 };
        let mut known = 0;
        for range in self.ranges.range(first..last) {
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            merged.arrivals += range.arrivals;
            known += range.end.min(end).saturating_sub(range.start.max(start));
        }
        let new = end - start - known;
        merged.arrivals += arrivals(new);
        if last > first {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        } else {
            self.ranges.insert(first, merged);
        }
        new
    }

    /// Delivers the first range, which begins at `next`.
    fn deliver(&mut self, now: Time) -> u64 {
        let Some(first) = self.ranges.pop_front() else { return 0 };
        self.first_start = self.ranges.front().map_or(NONE, |first| first.start);
        let delivered = first.end - first.start;
        self.next = first.end;
        self.waiting -= delivered;
        self.blocked += u128::from(delivered) * u128::from(now.as_nanos()) - first.arrivals;
        delivered
    }

    /// Returns the next byte expected: everything before it was delivered.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the bytes that wait for the data before them.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns the number of ranges that wait, each behind a gap.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the largest number of bytes that ever waited.
    pub fn waiting_peak(&self) -> u64 {
        self.waiting_peak
    }

    /// Returns the bytes that arrived more than once.
    pub fn duplicate(&self) -> u64 {
        self.duplicate
    }

    /// Returns the time that each delivered byte waited for the data before it
    /// (head-of-line blocking), summed over bytes, byte nanoseconds.
    pub fn blocked(&self) -> u128 {
        self.blocked
    }
}
