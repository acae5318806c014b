//! Pacing as done by Linux's TCP itself (`tcp_update_skb_after_send`): after a
//! burst of at most the send quantum, nothing is sent until the burst's time at
//! the pacing rate has passed.
//!
//! As in Linux, the first ten segments are not paced, and the pacer counts
//! payload; controllers give their rate in the same unit. (The `fq` queueing
//! discipline would count headers too.)

use knee_units::{NANOS_PER_SECOND, Rate, Time};

/// Segments sent unpaced at the start.
const UNPACED_SEGMENTS: u64 = 10;

/// State of the pacer.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// Earliest time of the next burst.
    next: Time,
    /// Segments of the current burst, and how many remain; valid only at `burst_at`.
    burst: u32,
    burst_left: u32,
    burst_at: Time,
    /// Lateness of the current burst; up to half of the burst's time is forgiven.
    credit: u64,
    rate: Option<Rate>,
    /// Nanoseconds that a full segment takes at `rate`.
    full_segment_ns: u64,
    full_segment: u32,
}

impl Pacer {
    /// Creates a pacer for segments of `mss` bytes.
    pub fn new(mss: u32) -> Pacer {
        Pacer { full_segment: mss, ..Pacer::default() }
    }

    /// Sets the rate; `None` to stop pacing.
    #[inline]
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        if rate != self.rate {
            self.rate = rate;
            self.full_segment_ns = self.time_for(u64::from(self.full_segment));
        }
    }

    #[inline]
    fn time_for(&self, bytes: u64) -> u64 {
        match self.rate {
            Some(rate) => bytes * 8 * NANOS_PER_SECOND / rate.as_bits_per_second().max(1),
            None => 0,
        }
    }

    /// Whether a segment may be sent; begins a new burst of `quantum` segments
    /// if one is due.
    #[inline]
    pub fn admit(&mut self, now: Time, quantum: u32) -> bool {
        if self.in_burst(now) {
            return true;
        }
        let due = self.is_due(now);
        if due {
            self.begin_burst(now, quantum);
        }
        due
    }

    /// Whether another burst is due.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Begins a burst of `quantum` segments, at least one; it must be
    /// [due](Self::is_due).
    #[inline]
    pub fn begin_burst(&mut self, now: Time, quantum: u32) {
        self.begin(now, now, quantum);
    }

    /// Begins a burst of a sender whose own timer was late: it counts as sent at `from`, at most
    /// `now`, so that the next one is due the sooner.
    pub fn begin_burst_from(&mut self, now: Time, from: Time, quantum: u32) {
        self.begin(now, from.max(self.next), quantum);
    }

    #[inline]
    fn begin(&mut self, now: Time, from: Time, quantum: u32) {
        self.burst = quantum.max(1);
        self.burst_left = self.burst;
        self.burst_at = now;
        self.credit = (from - self.next).as_nanos();
        self.next = from;
    }

    /// Whether a burst has begun now and has segments left.
    #[inline]
    pub fn in_burst(&self, now: Time) -> bool {
        self.burst_left > 0 && self.burst_at == now
    }

    /// Ends the current burst: what is sent now begins another.
    #[cold]
    pub fn end_burst(&mut self) {
        self.burst_left = 0;
    }

    /// Returns the segments left in the burst that has begun now.
    #[inline]
    pub fn left(&self, now: Time) -> u32 {
        if self.burst_at == now { self.burst_left } else { 0 }
    }

    /// Whether the last of the `count` segments about to be charged ends a
    /// burst of several, because the burst is full or nothing `follows` it.
    #[inline]
    pub fn ends_burst(&self, count: u32, follows: bool) -> bool {
        let left = self.burst_left.wrapping_sub(count - 1);
        self.burst > 1 && (left == 1 || (!follows && left < self.burst))
    }

    /// Returns when the last burst began, or when the next one may if that is
    /// later (`tcp_wstamp_ns`).
    #[inline]
    pub fn last(&self) -> Time {
        self.burst_at.max(self.next)
    }

    /// Charges a segment that was sent.
    #[inline]
    pub fn on_sent(&mut self, bytes: u16, segments_before: u64) {
        self.burst_left = self.burst_left.saturating_sub(1);
        if self.rate.is_none() || segments_before < UNPACED_SEGMENTS {
            return;
        }
        let time = if u32::from(bytes) == self.full_segment {
            self.full_segment_ns
        } else {
            self.time_for(u64::from(bytes))
        };
        let forgiven = self.credit.min(time / 2);
        self.credit -= forgiven;
        self.next += Time::from_nanos(time - forgiven);
    }

    /// Charges `count` full segments that were sent together.
    #[inline]
    pub fn on_burst_sent(&mut self, count: u32, segments_before: u64) {
        if segments_before < UNPACED_SEGMENTS {
            let len = self.full_segment as u16;
            (0..u64::from(count)).for_each(|sent| self.on_sent(len, segments_before + sent));
            return;
        }
        self.burst_left = self.burst_left.saturating_sub(count);
        if self.rate.is_some() {
            // Each segment is forgiven up to half of its time, while credit lasts.
            let (count, time) = (u64::from(count), self.full_segment_ns);
            let forgiven = self.credit.min(count * (time / 2));
            self.credit -= forgiven;
            self.next += Time::from_nanos(count * time - forgiven);
        }
    }

    /// Returns the earliest time of the next burst.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Returns the segments of the current burst.
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// Returns the current rate; `None` if not paced.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}
