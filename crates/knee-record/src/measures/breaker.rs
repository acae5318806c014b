//! Measures of a link's circuit breaker (RFC 8084): when it tripped, and how
//! close it came to tripping. They are computed from the link's samples: exact if
//! the sampling interval divides the breaker's interval, interpolated otherwise.

use super::{NotMeasurable, because};
use crate::view::{LinkView, RunView, Span, Window};
use knee_link::CircuitBreaker;

impl LinkView<'_> {
    /// Time from the start of the window until the circuit breaker first trips,
    /// seconds; infinite if it does not.
    pub(crate) fn breaker_trip(
        &self,
        run: &RunView<'_>,
        window: Window,
    ) -> Result<f64, NotMeasurable> {
        let breaker = self.breaker(run)?;
        let end = self.samples.last().map_or(0, |row| row.time_ns);
        let from = window.from.map_or(0, |from| from.as_nanos());
        match self.first_trip(breaker, end) {
            Some(trip) => Ok(trip.saturating_sub(from) as f64 / 1e9),
            None if run.records.interrupted => because("the run was interrupted before it tripped"),
            None => Ok(f64::INFINITY),
        }
    }

    /// Largest loss that every interval of a tripping sequence reached, `0..=1`: of
    /// the sequences within the window, up to the first trip.
    pub(crate) fn breaker_loss(
        &self,
        run: &RunView<'_>,
        window: Window,
    ) -> Result<f64, NotMeasurable> {
        let breaker = self.breaker(run)?;
        let last = self.samples.last().map_or(0, |row| row.time_ns);
        let until = window.until.map_or(last, |until| until.as_nanos().min(last));
        let from = window.from.map_or(0, |from| from.as_nanos());
        let end = self.first_trip(breaker, until).unwrap_or(until);
        let losses = self.losses(breaker, from.div_ceil(breaker.interval.as_nanos()), end);
        let least = |losses: &[f64]| losses.iter().copied().fold(f64::INFINITY, f64::min);
        match losses.windows(breaker.intervals as usize).map(least).reduce(f64::max) {
            Some(most) => Ok(most),
            None => because(format!(
                "no {} intervals of {} lie within the window, before it tripped",
                breaker.intervals, breaker.interval
            )),
        }
    }

    fn breaker<'r>(&self, run: &'r RunView<'_>) -> Result<&'r CircuitBreaker, NotMeasurable> {
        let link = run.links.iter().position(|link| std::ptr::eq(link, self));
        match link.and_then(|link| run.records.rates.breaker(link)) {
            Some(breaker) => Ok(breaker),
            None => because(format!("link {} has no circuit breaker", self.name)),
        }
    }

    /// Returns the time of the first trip, nanoseconds, if it is not after `end`.
    fn first_trip(&self, breaker: &CircuitBreaker, end: u64) -> Option<u64> {
        let count = breaker.intervals as usize;
        let losses = self.losses(breaker, 0, end);
        let trips = |losses: &[f64]| losses.iter().all(|loss| *loss > breaker.loss);
        let first = losses.windows(count).position(trips)?;
        Some((first + count) as u64 * breaker.interval.as_nanos())
    }

    /// Returns the loss of each interval from number `first` until `end`, valid until
    /// the first trip. A packet may be lost one interval after it entered, so the ratio
    /// is limited to one.
    fn losses(&self, breaker: &CircuitBreaker, first: u64, end: u64) -> Vec<f64> {
        let interval = breaker.interval.as_nanos();
        let loss = |number: u64| {
            let span = Span { begin: number * interval, end: (number + 1) * interval };
            let entered = self.counted_in(span, |row| row.entered_packets);
            let missing = self.counted_in(span, |row| row.dropped_packets + row.lost_packets);
            if entered > 0.0 { (missing / entered).min(1.0) } else { 0.0 }
        };
        (first..end / interval).map(loss).collect()
    }
}
