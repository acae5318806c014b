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

impl Range {
    /// A range that does not exist.
    const NONE: Range = Range { start: u64::MAX, end: u64::MAX, arrivals: 0 };

    fn exists(&self) -> bool {
        self.start < u64::MAX
    }
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
    /// The last of the ranges beyond `next`, which most data out of order continues, or
    /// [`Range::NONE`]. Ranges do not touch each other.
    last: Range,
    /// The ranges before it, ascending.
    earlier: VecDeque<Range>,
    /// Start of the first of all ranges, or that of [`Range::NONE`].
    first_start: u64,
    waiting: u64,
    waiting_peak: u64,
    duplicate: u64,
    blocked: u128,
}

impl Default for Reassembly {
    fn default() -> Reassembly {
        Reassembly {
            next: 0,
            last: Range::NONE,
            earlier: VecDeque::new(),
            first_start: Range::NONE.start,
            waiting: 0,
            waiting_peak: 0,
            duplicate: 0,
            blocked: 0,
        }
    }
}

/// Returns the sum of the arrival times of `bytes` bytes that arrive now, in byte nanoseconds.
#[inline]
fn arrivals(now: Time, bytes: u64) -> u128 {
    u128::from(bytes) * u128::from(now.as_nanos())
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
        if offset == self.last.end {
            self.last.end = end;
            self.last.arrivals += arrivals(now, len);
            self.waiting += len;
            self.waiting_peak = self.waiting_peak.max(self.waiting);
            return Reassembled::default();
        }
        self.insert_any(now, offset, len)
    }

    #[inline(never)]
    fn insert_any(&mut self, now: Time, offset: u64, len: u64) -> Reassembled {
        let (start, end) = (offset.max(self.next), offset + len);
        let is_after_all = if self.last.exists() { start > self.last.end } else { start < end };
        let new = if is_after_all {
            self.append(Range { start, end, arrivals: arrivals(now, end - start) });
            end - start
        } else {
            self.merge(now, start, end)
        };
        self.duplicate += len - new;
        self.waiting += new;
        let delivered = if self.first_start == self.next { self.deliver(now) } else { 0 };
        self.waiting_peak = self.waiting_peak.max(self.waiting);
        Reassembled { delivered, duplicate: len - new }
    }

    /// Appends a range after all others.
    fn append(&mut self, range: Range) {
        if self.last.exists() {
            self.earlier.push_back(self.last);
        } else {
            self.first_start = range.start;
        }
        self.last = range;
    }

    /// Adds `start..end`, which does not begin after all ranges, to them; returns how many of
    /// its bytes are new.
    fn merge(&mut self, now: Time, start: u64, end: u64) -> u64 {
        if end <= start {
            return 0;
        }
        let mut ranges = std::mem::take(&mut self.earlier);
        ranges.push_back(self.last);
        // The ranges from `first` up to `last` touch the new one.
        let first = ranges.partition_point(|range| range.end < start);
        let last = ranges.partition_point(|range| range.start <= end);
        let mut merged = Range { start, end, arrivals: 0 };
        let mut known = 0;
        for range in ranges.range(first..last) {
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
            merged.arrivals += range.arrivals;
            known += range.end.min(end).saturating_sub(range.start.max(start));
        }
        let new = end - start - known;
        merged.arrivals += arrivals(now, new);
        if last > first {
            ranges[first] = merged;
            ranges.drain(first + 1..last);
        } else {
            ranges.insert(first, merged);
        }
        self.first_start = ranges[0].start;
        self.last = ranges.pop_back().unwrap_or(Range::NONE);
        self.earlier = ranges;
        new
    }

    /// Delivers the first range, which begins at `next`.
    fn deliver(&mut self, now: Time) -> u64 {
        let first = match self.earlier.pop_front() {
            Some(first) => first,
            None => std::mem::replace(&mut self.last, Range::NONE),
        };
        self.first_start = self.earlier.front().unwrap_or(&self.last).start;
        let delivered = first.end - first.start;
        self.next = first.end;
        self.waiting -= delivered;
        self.blocked += arrivals(now, delivered) - first.arrivals;
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
        self.earlier.len() + usize::from(self.last.exists())
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
