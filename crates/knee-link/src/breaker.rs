//! A circuit breaker: its two meters and its trigger (RFC 8084, section 3.1).

use crate::config::CircuitBreaker;
use crate::link::Counters;
use knee_units::Time;

pub(crate) struct Breaker {
    settings: CircuitBreaker,
    /// End of the current interval, or of the time for which it stays tripped;
    /// inclusive.
    until: Time,
    tripped: bool,
    /// Both meters at the start of the interval.
    begin: Meters,
    /// Number of consecutive congested intervals so far.
    congested: u32,
}

/// Packets counted since the start of the run.
#[derive(Clone, Copy, Default)]
struct Meters {
    entered: u64,
    missing: u64,
}

impl Breaker {
    pub fn new(settings: CircuitBreaker) -> Breaker {
        let begin = Meters::default();
        Breaker { settings, until: settings.interval, tripped: false, begin, congested: 0 }
    }

    /// Whether it blocks all packets.
    pub fn is_tripped(&self) -> bool {
        self.tripped
    }

    /// Returns the end of the current interval, or of the tripped time, if it is
    /// before `now`.
    pub fn ended(&self, now: Time) -> Option<Time> {
        (self.until < now).then_some(self.until)
    }

    /// Closes the interval, or the tripped time, with the counters at its end.
    pub fn end(&mut self, counters: &Counters) {
        let meters = Meters {
            entered: counters.entered_packets,
            missing: counters.dropped_packets + counters.lost_packets,
        };
        let is_congested = !self.tripped && self.is_congested(meters);
        self.congested = if is_congested { self.congested + 1 } else { 0 };
        self.tripped = self.congested == self.settings.intervals;
        let lasts = match self.tripped {
            true => self.settings.reset_after.unwrap_or(Time::MAX),
            false => self.settings.interval,
        };
        self.until = self.until.saturating_add(lasts);
        self.begin = meters;
    }

    fn is_congested(&self, end: Meters) -> bool {
        let entered = end.entered - self.begin.entered;
        let missing = end.missing - self.begin.missing;
        entered > 0 && missing as f64 > self.settings.loss * entered as f64
    }
}
