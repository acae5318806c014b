//! Circuit breakers of links (RFC 8084).

use super::in_range;
use super::loss::probability;
use super::paths::CheckedPath;
use crate::file::{CircuitBreakerFile, INTERVALS_MAX};
use crate::read::{Optional, Whole};
use crate::source::Reading;
use knee_link::CircuitBreaker;
use knee_units::{Fraction, Time};

const INTERVAL_MIN: Time = Time::from_millis(100);
const INTERVAL_MAX: Time = Time::from_secs(3600);
const RESET_MAX: Time = Time::from_secs(14_400);

// RFC 8084, section 4, leaves all numbers to the operator; these are Knee's.

/// Ten RTTs of half a second: a sender answers losses within an RTT, and one whose
/// first retransmissions are lost as well has had its timeouts of 1, 2 and 4 s begin.
const INTERVAL: Time = Time::from_secs(5);
/// Where a tenth is lost, a flow that answers losses as Reno does has a window of
/// `sqrt(3 / (2 p))`, less than four segments, and hardly another use for the path.
const LOSS: f64 = 0.1;
/// One burst of losses, as at a start, lies in two intervals at most; RFC 8084,
/// section 4, has three as its example.
const INTERVALS: u64 = 3;

pub(super) fn check(
    entry: &mut Optional<CircuitBreakerFile>,
    over: &[&CheckedPath],
    reading: &mut Reading<'_>,
) -> Option<CircuitBreaker> {
    let Optional::Given(at) = entry else { return None };
    let file = &mut at.value;
    let is_possible = in_range(&file.interval, "the interval", INTERVAL_MIN, INTERVAL_MAX, reading);
    let (one, most) = (Whole(1), Whole(INTERVALS_MAX));
    in_range(&file.intervals, "the number of intervals", one, most, reading);
    probability(&file.loss, "the loss that trips it", reading);
    let given = file.interval.span().unwrap_or(at.span);
    let interval = file.interval.fill(INTERVAL);
    let intervals = file.intervals.fill(Whole(INTERVALS)).0.clamp(1, INTERVALS_MAX);
    let loss = file.loss.fill(Fraction::new(LOSS));
    let slowest = over.iter().filter_map(|way| Some((way.propagation?, &way.name))).max();
    if let Some((rtt, path)) = slowest.filter(|(rtt, _)| is_possible && interval <= *rtt) {
        let message = format!(
            "an interval of {interval} is not longer than the RTT of path \"{path}\", {rtt}"
        );
        reading.problem(given, message, format!("write more than {rtt}, better ten times that"));
    }
    let shortest = Time::from_nanos(interval.as_nanos().saturating_mul(intervals));
    in_range(&file.reset_after, "the time until it is reset", shortest, RESET_MAX, reading);
    Some(CircuitBreaker {
        interval,
        loss: loss.get(),
        intervals: intervals as u32,
        reset_after: file.reset_after.get().copied(),
    })
}
