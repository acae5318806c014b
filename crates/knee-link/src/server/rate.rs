//! Exact service at a rate that is constant or changes in steps.
//!
//! The end of the work accepted so far is stored as whole nanoseconds and a
//! remainder in units of 1/rate ns, so nothing is lost to rounding: over a busy
//! period of any length the departures are less than 1 ns later than the ideal
//! fluid, and never earlier.

use knee_units::{NANOS_PER_SECOND, Rate, Time};

/// Work per byte, in bit/s x ns.
const WORK_PER_BYTE: u64 = 8 * NANOS_PER_SECOND;

#[derive(Clone)]
pub(crate) struct RateServer {
    /// End of all work accepted, whole nanoseconds.
    end: u64,
    /// Remainder on top of it, in units of 1/rate nanoseconds, below rate.
    rest: u64,
    /// Rate in force at `end`, bit/s.
    rate: u64,
    /// Work that ends before this does not cross a step; 0 at rate zero, so
    /// that the general path is used.
    plain_until: u64,
    /// The last packet size, with its service time at `rate`: most packets have
    /// the size of the previous one, which saves the division.
    size: u32,
    size_time: u64,
    size_rest: u64,
    /// Index of the current step.
    step: usize,
    steps: Box<[(Time, Rate)]>,
}

impl RateServer {
    pub fn new(steps: &[(Time, Rate)]) -> RateServer {
        let mut server = RateServer {
            end: 0,
            rest: 0,
            rate: 0,
            plain_until: 0,
            size: 0,
            size_time: 0,
            size_rest: 0,
            step: 0,
            steps: steps.into(),
        };
        server.enter_step(0);
        server
    }

    /// Returns the departure of a packet, rounded up to the nanosecond.
    #[inline]
    pub fn serve(&mut self, ready: Time, size: u32) -> Time {
        let ready = ready.as_nanos();
        if self.rounded_end() <= ready {
            self.end = ready;
            self.rest = 0;
        }
        self.serve_next(size)
    }

    /// Returns the departure of a packet that is ready when the work accepted so far ends,
    /// or earlier.
    #[inline(always)]
    pub fn serve_next(&mut self, size: u32) -> Time {
        if size != self.size {
            self.divide(size);
        }
        let rest = self.rest + self.size_rest;
        let carry = rest >= self.rate;
        let end = self.end.saturating_add(self.size_time + u64::from(carry));
        if end >= self.plain_until {
            return self.serve_across_steps(size);
        }
        self.end = end;
        self.rest = if carry { rest - self.rate } else { rest };
        // Below `plain_until`, so there is no overflow.
        Time::from_nanos(end + u64::from(self.rest > 0))
    }

    pub fn start(&self, ready: Time) -> Time {
        let start = self.rounded_end().max(ready.as_nanos());
        if start < self.plain_until {
            return Time::from_nanos(start);
        }
        let after = self.steps[self.step..].partition_point(|(from, _)| from.as_nanos() <= start);
        let current = self.step + after.saturating_sub(1);
        if self.steps[current].1 != Rate::ZERO {
            return Time::from_nanos(start);
        }
        let next = self.steps[current..].iter().find(|(_, rate)| *rate != Rate::ZERO);
        next.map_or(Time::MAX, |(from, _)| *from)
    }

    /// See [`Server::end`](super::Server::end).
    pub fn end(&self) -> (Time, i128) {
        (Time::from_nanos(self.end), -i128::from(self.rest))
    }

    pub fn clear(&mut self, at: Time) {
        if self.rounded_end() > at.as_nanos() {
            self.enter_step(0);
            self.end = at.as_nanos();
            self.rest = 0;
        }
    }

    #[inline]
    fn rounded_end(&self) -> u64 {
        self.end.saturating_add(u64::from(self.rest > 0))
    }

    #[inline(never)]
    fn divide(&mut self, size: u32) {
        if self.rate == 0 {
            return;
        }
        let work = u64::from(size) * WORK_PER_BYTE;
        self.size = size;
        self.size_time = work / self.rate;
        self.size_rest = work % self.rate;
    }

    fn enter_step(&mut self, step: usize) {
        self.step = step;
        self.rate = self.steps[step].1.as_bits_per_second();
        self.plain_until = if self.rate == 0 { 0 } else { self.step_end() };
        (self.size, self.size_time, self.size_rest) = (0, 0, 0);
    }

    fn step_end(&self) -> u64 {
        self.steps.get(self.step + 1).map_or(u64::MAX, |(from, _)| from.as_nanos())
    }

    /// Serves a packet step by step.
    #[cold]
    #[inline(never)]
    fn serve_across_steps(&mut self, size: u32) -> Time {
        let mut work = u64::from(size) * WORK_PER_BYTE;
        loop {
            let step_end = self.step_end();
            if self.end < step_end && self.rate > 0 {
                let total = self.rest + work;
                let (time, rest) = (total / self.rate, total % self.rate);
                let left = step_end - self.end;
                if time < left || (time == left && rest == 0) {
                    self.end += time;
                    self.rest = rest;
                    return Time::from_nanos(self.rounded_end());
                }
                // time >= left, so the product is at most `total`.
                work -= left * self.rate - self.rest;
            }
            if step_end == u64::MAX {
                self.end = u64::MAX;
                self.rest = 0;
                return Time::MAX;
            }
            self.end = self.end.max(step_end);
            self.rest = 0;
            self.enter_step(self.step + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits)
    }

    /// The n-th departure of a busy period is the ideal one, rounded up.
    #[test]
    fn a_long_busy_period_loses_nothing() {
        for bits in [3, 7_000_003, 10_000_000, 999_999_937, 100_000_000_007] {
            let mut server = RateServer::new(&[(Time::ZERO, rate(bits))]);
            let mut work: u128 = 0;
            for n in 0..20_000_u32 {
                let size = 40 + n * 7919 % 1461;
                work += u128::from(size) * 8_000_000_000;
                let departure = server.serve(Time::ZERO, size);
                let ideal = work.div_ceil(u128::from(bits));
                if ideal > u128::from(u64::MAX) {
                    break;
                }
                assert_eq!(u128::from(departure.as_nanos()), ideal, "{bits} bit/s, packet {n}");
            }
        }
    }

    #[test]
    fn steps_are_integrated_exactly() {
        let s = Time::from_secs;
        let steps = [(s(0), rate(8_000)), (s(1), rate(0)), (s(3), rate(16_000)), (s(4), rate(0))];
        let mut server = RateServer::new(&steps);
        assert_eq!(server.serve(s(0), 600), Time::from_millis(600));
        // 400 bytes before the outage, 200 at 2000 byte/s after it.
        assert_eq!(server.serve(s(0), 600), Time::from_millis(3_100));
        assert_eq!(server.start(s(2)), Time::from_millis(3_100));
        assert_eq!(server.serve(s(0), 1_800), s(4));
        assert_eq!(server.start(s(2)), Time::MAX);
        assert_eq!(server.serve(s(4), 1), Time::MAX);
        server.clear(Time::from_millis(500));
        assert_eq!(server.serve(s(2), 1_000), Time::from_millis(3_500));
    }

    #[test]
    fn service_starts_when_the_rate_is_back() {
        let steps = [(Time::ZERO, rate(0)), (Time::from_secs(5), rate(1_000))];
        let server = RateServer::new(&steps);
        assert_eq!(server.start(Time::from_secs(1)), Time::from_secs(5));
        assert_eq!(server.start(Time::from_secs(7)), Time::from_secs(7));
    }
}
