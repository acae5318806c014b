//! From columns to the values of a curve over a part of the axis.

use super::{Chart, Source};

/// Points of a rate, over the whole frame.
const RATE_POINTS: f64 = 700.0;
/// Windows that a rate is the mean over, side by side in the frame.
const RATE_WINDOWS: f64 = 150.0;

/// Columns by their place: what the page embeds.
pub(crate) trait Columns {
    /// The numbers of a column, such as `flows.0.rtt_ns`; none: the flow has no
    /// such value.
    fn column(&self, place: &str) -> Option<&[u64]>;

    /// Which flow `*` stands for in a place.
    fn picked(&self) -> usize;

    /// The classes of the spans of [`Chart::shade`], by the number in their
    /// column.
    fn tints(&self) -> Vec<&'static str>;
}

/// Values over the axis along the foot, both in the units of the axes; a gap
/// where there is none.
pub(super) type Points = Vec<(f64, Option<f64>)>;

impl Chart {
    /// The lines of a curve between two places of the axis along the foot: one,
    /// or of a band its lower edge, median and upper edge.
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

    /// A counter's growth over a window around each point, which narrows as one
    /// zooms in, down to the distance of two samples.
    fn rates(&self, counters: &[(&[u64], &[u64])], view: [f64; 2]) -> Points {
        let interval = self.interval_ns as f64;
        let [low, high] = self.x.whole;
        // A little more than is seen, so that curves run to the edge.
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

    /// The largest value of a curve, in the units of the axis.
    pub(crate) fn largest(&self, of: &dyn Columns, source: &Source) -> f64 {
        let lines = self.lines(of, source, self.x.whole);
        lines.iter().flatten().filter_map(|(_, y)| *y).fold(0.0, f64::max)
    }

    /// Smallest and largest value of the curves that are drawn over the whole
    /// axis.
    pub(super) fn extent(&self, lines: &[Vec<Points>], view: [f64; 2]) -> Option<(f64, f64)> {
        let seen = lines.iter().flatten().flatten().filter(|(x, _)| *x <= view[1]);
        let values = seen.filter_map(|(_, y)| *y);
        values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
    }
}

/// Index of the last of `rows` ascending values that is at most `limit`.
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

/// A counter at any time, in proportion between two samples.
fn counter_at(time: &[u64], counter: &[u64], at: f64) -> f64 {
    let after = time.partition_point(|own| *own as f64 <= at);
    if after == 0 || after == time.len() {
        return counter[after.saturating_sub(1)] as f64;
    }
    let (t0, t1) = (time[after - 1] as f64, time[after] as f64);
    let (c0, c1) = (counter[after - 1] as f64, counter[after] as f64);
    c0 + (at - t0) / (t1 - t0) * (c1 - c0)
}
