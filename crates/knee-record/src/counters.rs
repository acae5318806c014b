//! Time series between their samples: counters at any time, and how long each sample counts.

use crate::timed::{Field, Timed};
use crate::track::Track;
use crate::view::Span;
use crate::{FlowRecord, FlowSample};
use knee_units::statistics::{WeightedIntegers, minima};

/// Returns the rows that cover part of a span, each with the seconds that it covers: the time since
/// the previous row, or since the start of the span.
pub(crate) fn weighted<R: Timed>(rows: &Track<R>, span: Span) -> impl Iterator<Item = (R, f64)> {
    let mut previous = span.begin;
    // One row before the span may come first.
    let rows = rows.since(span.begin + 1).skip_while(move |row| row.time_ns() <= span.begin);
    rows.map_while(move |row| {
        if previous >= span.end {
            return None;
        }
        let until = row.time_ns().min(span.end);
        let since = until - previous;
        previous = until;
        Some((row, since as f64 / 1e9))
    })
}

/// The values of a field that cover part of a span.
pub(crate) struct Covering {
    span: Span,
    /// Times of the rows, after the begin of the span.
    times: Vec<u64>,
    values: Vec<u64>,
}

impl Covering {
    /// Reads the values of a field that cover part of a span: those of the rows of [`weighted`].
    pub(crate) fn new<R: Timed>(rows: &Track<R>, span: Span, field: Field<R>) -> Covering {
        let from = rows.last_before(span.begin + 1);
        let (mut times, mut values) = (rows.times(from), rows.column(field, from));
        let before = times.partition_point(|time| *time <= span.begin);
        let ends = times.partition_point(|time| *time < span.end);
        let covering = before..(ends + 1).min(times.len());
        times.truncate(covering.end);
        times.drain(..before);
        values.truncate(covering.end);
        values.drain(..before);
        Covering { span, times, values }
    }

    /// Whether there is a value but zero.
    pub(crate) fn has_values(&self) -> bool {
        self.values.iter().any(|value| *value > 0)
    }

    /// Adds the values to others, weighted by the seconds that each covers. Zero is no value.
    pub(crate) fn add_to(&self, weighted: &mut WeightedIntegers) {
        weighted.add_over_time(self.span.begin, self.span.end, &self.times, &self.values);
    }

    /// Calls `take` with each value but zero, the seconds that it covers, and how often both follow
    /// one another.
    pub(crate) fn runs(&self, mut take: impl FnMut(u64, f64, u32)) {
        let mut values = WeightedIntegers::default();
        self.add_to(&mut values);
        values.runs().for_each(|(value, seconds, count)| take(value, seconds, count));
    }

    /// Returns the smallest value in each of `windows` windows of `width` nanoseconds from the begin
    /// of the span on; of zeros only if `zero` says so.
    pub(crate) fn minima(&self, width: u64, windows: usize, zero: bool) -> Vec<Option<u64>> {
        let span = (self.span.begin, self.span.end);
        minima(span, width, windows, &self.times, &self.values, zero)
    }
}

/// Returns a counter at a time, interpolated linearly between the flow's start (zero), its samples
/// and its end, where it is `total`.
pub(crate) fn counter_at(
    samples: &Track<FlowSample>,
    flow: &FlowRecord,
    time: u64,
    counter: Field<FlowSample>,
    total: u64,
) -> f64 {
    if time >= flow.end_ns {
        return total as f64;
    }
    let (before, after) = samples.points_around(time, counter);
    between(flow, before, after, time, total)
}

/// Interpolates a counter linearly between the points around a time. Before the first point it was
/// zero at the flow's start; at the flow's end it is `total`.
fn between(
    flow: &FlowRecord,
    before: Option<(u64, u64)>,
    after: Option<(u64, u64)>,
    time: u64,
    total: u64,
) -> f64 {
    let after = after.filter(|(after_ns, _)| *after_ns < flow.end_ns);
    interpolate(before.unwrap_or((flow.start_ns, 0)), after.unwrap_or((flow.end_ns, total)), time)
}

/// The payload that a flow has delivered in order, for reading it at many times: its samples need
/// not be unpacked again for each.
pub(crate) struct Delivered<'a> {
    flow: &'a FlowRecord,
    /// Times and bytes of the samples.
    points: Vec<(u64, u64)>,
}

impl<'a> Delivered<'a> {
    /// Takes the times and bytes of the flow's samples.
    pub(crate) fn new(flow: &'a FlowRecord, points: Vec<(u64, u64)>) -> Delivered<'a> {
        Delivered { flow, points }
    }

    /// Returns the bytes delivered within a span, as [`FlowView::delivered_in`] does.
    pub(crate) fn within(&self, span: Span) -> f64 {
        self.at(span.end) - self.at(span.begin)
    }

    fn at(&self, time: u64) -> f64 {
        let total = self.flow.delivered_bytes;
        if time >= self.flow.end_ns {
            return total as f64;
        }
        let next = self.points.partition_point(|(point_ns, _)| *point_ns < time);
        let before = next.checked_sub(1).map(|at| self.points[at]);
        between(self.flow, before, self.points.get(next).copied(), time, total)
    }
}

/// Returns the value at a time on the line through two points.
pub(crate) fn interpolate(before: (u64, u64), after: (u64, u64), time: u64) -> f64 {
    if time <= before.0 || after.0 <= before.0 {
        return before.1 as f64;
    }
    let part = (time - before.0) as f64 / (after.0 - before.0) as f64;
    before.1 as f64 + part * (after.1 as f64 - before.1 as f64)
}
