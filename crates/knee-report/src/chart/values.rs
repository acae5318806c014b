//! Converts columns to the values of a curve over part of the axis.

use super::{Chart, Source};

/// Largest number of points of a rate over the whole frame.
const RATE_POINTS: f64 = 700.0;
/// Number of averaging windows of a rate side by side in the frame.
const RATE_WINDOWS: f64 = 150.0;

/// The embedded columns, by their path.
pub(crate) trait Columns {
    /// Returns the numbers of a column, such as `flows.0.rtt_ns`; `None` if the flow has no such
    /// value.
    fn column(&self, place: &str) -> Option<&[u64]>;

    /// Returns the flow that `*` in a path refers to.
    fn picked(&self) -> usize;

    /// Returns the classes of the spans of [`Chart::shade`], by the number in their column.
    fn tints(&self) -> Vec<&'static str>;
}

/// Values over the horizontal axis, both in the units of the axes; `None` is a gap.
pub(super) type Points = Vec<(f64, Option<f64>)>;

impl Chart {
    /// Returns the lines of a curve between two places of the horizontal axis: one line, or for a
    /// band its lower edge, median and upper edge.
    pub(super) fn lines(&self, of: &dyn Columns, source: &Source, view: [f64; 2]) -> Vec<Points> {
        let ends = |x: &[u64]| {
            let scaled = |row: usize| x[row] as f64 / self.x.divisor;
            let first = at_or_below(x.len(), view[0], scaled).unwrap_or(0);
            let last = at_or_below(x.len(), view[1], scaled).map_or(0, |row| row + 2);
            first..last.min(x.len())
        };
        let gauge = |x: &str, y: &str, zero: bool| -> Points {
            let (Some(x), Some(y)) = (of.column(x), of.column(y)) else { return Vec::new() };
            let value = |value: u64| (zero || value > 0).then(|| value as f64 / self.y.divisor);
            ends(x).map(|row| (x[row] as f64 / self.x.divisor, value(y[row]))).collect()
        };
        match source {
            Source::Gauge { x, y, zero } => vec![gauge(x, y, *zero)],
            Source::Band { x, y, zero } => y.iter().map(|y| gauge(x, y, *zero)).collect(),
            Source::Rate { of: counters } => {
                let pairs = counters.iter();
                let pairs = pairs.filter_map(|[x, y]| Some((of.column(x)?, of.column(y)?)));
                let pairs: Vec<_> = pairs.filter(|(x, _)| !x.is_empty()).collect();
                vec![self.rates(&pairs, view)]
            }
        }
    }

    /// Returns the growth of a counter over a window around each point. The window narrows when
    /// zooming in, down to the sampling interval.
    fn rates(&self, counters: &[(&[u64], &[u64])], view: [f64; 2]) -> Points {
        let interval = self.interval_ns as f64;
        let [low, high] = self.x.whole;
        // Slightly more than is visible, so that curves reach the edge.
        let more = (view[1] - view[0]) * 0.02;
        let from = (view[0] - more).max(low) * self.x.divisor;
        let to = (view[1] + more).min(high) * self.x.divisor;
        let points = (((to - from) / interval).ceil() + 1.0).clamp(2.0, RATE_POINTS);
        let step = (to - from) / (points - 1.0);
        let half = interval.max(step).max((to - from) / RATE_WINDOWS) / 2.0;
        let rate = |(time, counter): &(&[u64], &[u64]), at: f64| {
            let begin = time[0] as f64 - interval;
            let end = time[time.len() - 1] as f64;
            let (first, last) = ((at - half).max(begin), (at + half).min(end));
            let grown = || counter_at(time, counter, last) - counter_at(time, counter, first);
            let within = at >= begin && at <= end && last > first;
            within.then(|| 8e9 * grown() / (last - first))
        };
        let sum = |at: f64| {
            let known = counters.iter().filter_map(|pair| rate(pair, at));
            known.reduce(|sum, rate| sum + rate).map(|sum| sum / self.y.divisor)
        };
        let place = |point: usize| from + point as f64 * step;
        (0..points as usize)
            .map(|point| (place(point) / self.x.divisor, sum(place(point))))
            .collect()
    }

    /// Returns the largest value of a curve, in the axis' unit.
    pub(crate) fn largest(&self, of: &dyn Columns, source: &Source) -> f64 {
        let lines = self.lines(of, source, self.x.whole);
        lines.iter().flatten().filter_map(|(_, y)| *y).fold(0.0, f64::max)
    }

    /// Returns the smallest and the largest value of the curves drawn, up to the end of the view.
    pub(super) fn extent(&self, lines: &[Vec<Points>], view: [f64; 2]) -> Option<(f64, f64)> {
        let seen = lines.iter().flatten().flatten().filter(|(x, _)| *x <= view[1]);
        let values = seen.filter_map(|(_, y)| *y);
        values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
    }
}

/// Returns the index of the last of `rows` ascending values that is at most `limit`.
fn at_or_below(rows: usize, limit: f64, value: impl Fn(usize) -> f64) -> Option<usize> {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = low + (high - low) / 2;
        if value(middle) <= limit {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1)
}

/// Returns a counter at any time, interpolated between two samples.
fn counter_at(time: &[u64], counter: &[u64], at: f64) -> f64 {
    let after = time.partition_point(|own| *own as f64 <= at);
    if after == 0 || after == time.len() {
        return counter[after.saturating_sub(1)] as f64;
    }
    let (t0, t1) = (time[after - 1] as f64, time[after] as f64);
    let (c0, c1) = (counter[after - 1] as f64, counter[after] as f64);
    c0 + (at - t0) / (t1 - t0) * (c1 - c0)
}
