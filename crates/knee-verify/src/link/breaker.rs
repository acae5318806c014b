//! What a link's circuit breaker (RFC 8084) must have done.

use crate::parse;

/// Reads both meters, interval by interval.
pub struct Breaker {
    head: parse::Breaker,
    /// Start of the interval under way; all after it, its end included, is of it.
    start: u64,
    entered: u64,
    missing: u64,
    /// The last intervals were congested, so many in a row.
    in_a_row: u64,
    /// Until when, this moment included, nothing gets in.
    shut_until: Option<u64>,
}

impl Breaker {
    pub fn new(head: parse::Breaker) -> Breaker {
        Breaker { head, start: 0, entered: 0, missing: 0, in_a_row: 0, shut_until: None }
    }

    /// A packet is offered; whether it must not get in.
    pub fn offers(&mut self, time: u64) -> bool {
        self.catch_up(time);
        self.entered += 1;
        self.shut_until.is_some()
    }

    /// A packet is dropped or lost.
    pub fn misses(&mut self, time: u64) {
        self.catch_up(time);
        self.missing += 1;
    }

    fn catch_up(&mut self, time: u64) {
        loop {
            let end = match self.shut_until {
                Some(until) => until,
                None => self.start.saturating_add(self.head.interval),
            };
            if time <= end {
                return;
            }
            if self.shut_until.take().is_some() {
                self.in_a_row = 0;
            } else {
                let allowed = self.head.loss * self.entered as f64;
                let congested = self.entered > 0 && self.missing as f64 > allowed;
                self.in_a_row = if congested { self.in_a_row + 1 } else { 0 };
            }
            (self.start, self.entered, self.missing) = (end, 0, 0);
            if self.in_a_row >= self.head.intervals {
                let shut = self.head.reset.map_or(u64::MAX, |reset| end.saturating_add(reset));
                self.shut_until = Some(shut);
            }
        }
    }
}
