//! The meters of a circuit breaker (RFC 8084, section 3.1) and what they trip.

use crate::config::CircuitBreaker;
use crate::link::Counters;
use knee_units::Time;

pub(crate) struct Breaker {
    settings: CircuitBreaker,
    /// When the interval ends that is under way, or the time for which it is
    /// tripped; it includes this moment.
    until: Time,
    tripped: bool,
    /// Both meters when the interval began.
    begin: Meters,
    /// Congested intervals in a row, up to the last.
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

    /// Nothing gets in.
    pub fn is_tripped(&self) -> bool {
        self.tripped
    }

    /// End of what is under way, if that lies before `now`.
    pub fn ended(&self, now: Time) -> Option<Time> {
        (self.until < now).then_some(self.until)
    }

    /// Ends the interval, or the time for which it is tripped, with the counters
    /// as they were then.
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
