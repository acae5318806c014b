//! Measures of a link's circuit breaker (RFC 8084): when it tripped, and how
//! close it came.

use super::{NotMeasurable, because};
use crate::view::{LinkView, RunView, Span, Window};
use knee_link::CircuitBreaker;

impl LinkView<'_> {
    /// From the beginning of the window to the moment at which the circuit breaker
    /// tripped for the first time, seconds; infinite: it did not.
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

    /// The largest loss that each of as many intervals in a row reached as trip the
    /// circuit breaker, `0..=1`; of those within the window, up to its first trip.
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

    /// When the circuit breaker tripped for the first time, nanoseconds, if it did so
    /// by `end`.
    fn first_trip(&self, breaker: &CircuitBreaker, end: u64) -> Option<u64> {
        let count = breaker.intervals as usize;
        let losses = self.losses(breaker, 0, end);
        let trips = |losses: &[f64]| losses.iter().all(|loss| *loss > breaker.loss);
        let first = losses.windows(count).position(trips)?;
        Some((first + count) as u64 * breaker.interval.as_nanos())
    }

    /// The part of the packets that went missing in each interval until `end`, from the
    /// one of number `first` on, as long as the circuit breaker never tripped. A packet
    /// may go missing an interval after it entered, so that there may be more than all.
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
