//! Service at recorded opportunities, with Mahimahi's semantics.

use crate::Trace;
use knee_units::{NANOS_PER_SECOND, Time};
use std::sync::Arc;

/// Bytes that may leave at one opportunity.
pub(crate) const OPPORTUNITY_BYTES: u32 = 1500;
pub(crate) const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// An opportunity at T serves packets that were ready before T. What is left of
/// it serves the packets behind them, and is lost if there are none. Internal
/// times count from the start of the trace, those of callers from its offset.
#[derive(Clone)]
pub(crate) struct TraceServer {
    trace: Arc<Trace>,
    /// Time of the opportunity last used, and its remaining bytes.
    current: u64,
    left: u32,
    next: Cursor,
}

/// An opportunity: its repetition and its index there.
#[derive(Clone, Copy)]
struct Cursor {
    base: u64,
    index: usize,
}

impl TraceServer {
    pub fn new(trace: Arc<Trace>) -> TraceServer {
        TraceServer { trace, current: 0, left: 0, next: Cursor { base: 0, index: 0 } }
    }

    /// Returns the departure of a packet: when its last byte is served.
    #[inline(never)]
    pub fn serve(&mut self, ready: Time, size: u32) -> Time {
        let ready = self.in_trace(ready);
        if self.current <= ready {
            self.left = 0;
        }
        let mut wanted = size;
        while wanted > self.left {
            wanted -= self.left;
            self.next = self.first_after(ready);
            self.current = self.time(self.next);
            self.left = OPPORTUNITY_BYTES;
            self.next = self.following(self.next);
        }
        self.left -= wanted;
        self.outside(self.current.max(ready))
    }

    pub fn start(&self, ready: Time) -> Time {
        let ready = self.in_trace(ready);
        if self.left > 0 && self.current > ready {
            return self.outside(self.current);
        }
        self.outside(self.time(self.first_after(ready)))
    }

    fn in_trace(&self, time: Time) -> u64 {
        time.saturating_add(self.trace.offset).as_nanos()
    }

    fn outside(&self, time: u64) -> Time {
        Time::from_nanos(time).saturating_sub(self.trace.offset)
    }

    /// See [`Server::end`](super::Server::end).
    pub fn end(&self) -> (Time, i128) {
        // Unused opportunities at the same time.
        let later = std::iter::successors(Some(self.next), |at| Some(self.following(*at)));
        let more = later.take_while(|at| self.time(*at) <= self.current).count() as u64;
        let bytes = u64::from(self.left) + more * u64::from(OPPORTUNITY_BYTES);
        (self.outside(self.current), i128::from(bytes * 8 * NANOS_PER_SECOND))
    }

    pub fn clear(&mut self) {
        (self.current, self.left, self.next) = (0, 0, Cursor { base: 0, index: 0 });
    }

    fn time(&self, at: Cursor) -> u64 {
        at.base + u64::from(self.trace.opportunities_ms[at.index]) * NANOS_PER_MILLISECOND
    }

    fn following(&self, at: Cursor) -> Cursor {
        if at.index + 1 < self.trace.opportunities_ms.len() {
            return Cursor { base: at.base, index: at.index + 1 };
        }
        Cursor { base: at.base + period(&self.trace), index: 0 }
    }

    /// Returns the first unused opportunity after `ready`.
    fn first_after(&self, ready: u64) -> Cursor {
        if self.time(self.next) > ready {
            return self.next;
        }
        let period = period(&self.trace);
        let (base, offset_ms) = (ready / period * period, ready % period / NANOS_PER_MILLISECOND);
        let passed = |ms: &u32| u64::from(*ms) <= offset_ms;
        Cursor { base, index: self.trace.opportunities_ms.partition_point(passed) }
    }
}

/// Returns the period after which the trace repeats, nanoseconds.
pub(crate) fn period(trace: &Trace) -> u64 {
    let last = trace.opportunities_ms.last().copied().unwrap_or(0);
    u64::from(last) * NANOS_PER_MILLISECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(opportunities_ms: &[u32]) -> TraceServer {
        server_from(opportunities_ms, Time::ZERO)
    }

    fn server_from(opportunities_ms: &[u32], offset: Time) -> TraceServer {
        let (name, opportunities_ms) = ("test".into(), opportunities_ms.into());
        TraceServer::new(Arc::new(Trace { name, opportunities_ms, offset }))
    }

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn a_packet_leaves_with_its_last_byte() {
        let mut server = server(&[2, 5, 5, 9]);
        let departures = [1000, 1000, 1000, 3000].map(|size| server.serve(ms(0), size));
        // 1000 at 2; 500 left there and 500 at 5; 1000 at 5; then 1500 at 5,
        // 1500 at 9.
        assert_eq!(departures, [ms(2), ms(5), ms(5), ms(9)]);
    }

    #[test]
    fn what_nobody_waits_for_is_lost() {
        let mut server = server(&[2, 5, 5, 9]);
        assert_eq!(server.serve(ms(0), 100), ms(2));
        assert_eq!(server.serve(ms(2), 1500), ms(5), "the rest of 2 is gone");
        assert_eq!(server.serve(ms(3), 1500), ms(5));
        assert_eq!(server.serve(ms(9), 1500), ms(11), "9 has passed, the next period begins");
    }

    #[test]
    fn it_repeats_with_the_period_of_its_last_timestamp() {
        // Opportunities: 0 3 | 3 6 | 6 9 …: two at each multiple of three.
        let mut server = server(&[0, 3]);
        let departures: Vec<_> = (0..6).map(|_| server.serve(ms(0), 1500)).collect();
        assert_eq!(departures, [3, 3, 6, 6, 9, 9].map(ms));
        assert_eq!(server.start(ms(3_000_000)), ms(3_000_003));
        assert_eq!(server.start(Time::from_nanos(3_000_000_000_000 - 1)), ms(3_000_000));
    }

    /// 2 5 5 9 | 11 14 14 18 …, from 4 ms: 1 1 5 | 7 10 10 14 …
    #[test]
    fn it_begins_at_its_offset() {
        let mut server = server_from(&[2, 5, 5, 9], ms(4));
        assert_eq!(server.start(ms(0)), ms(1));
        let departures: Vec<_> = (0..7).map(|_| server.serve(ms(0), 1500)).collect();
        assert_eq!(departures, [1, 1, 5, 7, 10, 10, 14].map(ms));
        server.clear();
        assert_eq!(server.serve(ms(5), 1500), ms(7), "at 5 ms it is too late for that of 5 ms");
    }
}
