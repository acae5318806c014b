//! Time series in bounded memory: all rows of a run go to disk, and as many as measures and plots
//! need stay in memory.

use crate::timed::Timed;
use crate::track::{Rows, Track};

/// Rows of one flow, path or link that stay in memory: a minute at one sample per millisecond fits.
pub(crate) const ROWS_MAX: usize = 1 << 16;
/// Rows added to all flows, paths or links together before those that stay are packed: at most 19 MB
/// as values.
const VALUES_MAX: usize = 1 << 17;

/// Rows of a time series, ascending in time. When one flow, path or link has too many rows, every
/// other row of it is dropped, now and from then on; its last row always stays. Counters lose
/// nothing, because they count from the start. Which rows of a series stay depends only on that
/// series, not on the others, and not on whether the run is read from disk.
#[derive(Clone, Debug)]
pub struct Series<R: Timed> {
    /// By flow and path, or link and class, ascending.
    parts: Vec<((u32, u16), Part<R>)>,
    /// Place of the part of which a row is expected next.
    next: usize,
    rows_max: usize,
    values_max: usize,
    /// Number of rows that were added.
    added: usize,
}

/// The rows of one flow, path or link.
#[derive(Clone, Debug)]
struct Part<R: Timed> {
    /// Number of rows so far.
    count: u64,
    /// One row in `stride` is kept.
    stride: u64,
    kept: Track<R>,
    /// Time of the last row.
    now_ns: u64,
    /// The last row, unless it was kept.
    last: Option<R>,
}

impl<R: Timed> Default for Series<R> {
    fn default() -> Series<R> {
        Series::of_at_most(ROWS_MAX, VALUES_MAX)
    }
}

impl<R: Timed> Series<R> {
    fn of_at_most(rows_max: usize, values_max: usize) -> Series<R> {
        Series { parts: Vec::new(), next: 0, rows_max, values_max, added: 0 }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &R) {
        if self.added == self.values_max {
            self.parts.iter_mut().for_each(|(_, part)| part.kept.pack());
        }
        self.added = self.added.saturating_add(1);
        let rows_max = self.rows_max;
        let part = self.part(row.of());
        if part.kept.len() >= rows_max && row.time_ns() != part.now_ns {
            part.thin();
        }
        part.now_ns = row.time_ns();
        let stays = part.count.is_multiple_of(part.stride);
        part.count += 1;
        if stays {
            part.last = None;
            part.kept.push(row);
        } else {
            part.last = Some(*row);
        }
    }

    /// Returns the rows of one flow, path or link. Rows usually come in the same order again.
    fn part(&mut self, of: (u32, u16)) -> &mut Part<R> {
        if self.parts.get(self.next).is_none_or(|(other, _)| *other != of) {
            let found = self.parts.binary_search_by_key(&of, |(other, _)| *other);
            self.next = found.unwrap_or_else(|place| {
                let is_packed = self.added > self.values_max;
                self.parts.insert(place, (of, Part::new(is_packed)));
                place
            });
        }
        let place = self.next;
        self.next = if place + 1 < self.parts.len() { place + 1 } else { 0 };
        &mut self.parts[place].1
    }

    /// Returns all rows that were kept.
    pub fn into_rows(self) -> Rows<R> {
        let mut rows = Rows::default();
        for (of, mut part) in self.parts {
            if part.kept.len() >= self.rows_max {
                part.thin();
            }
            part.last.iter().for_each(|row| part.kept.push(row));
            rows.insert(of, part.kept);
        }
        rows
    }
}

impl<R: Timed> Part<R> {
    fn new(is_packed: bool) -> Part<R> {
        let mut kept = Track::default();
        if is_packed {
            kept.pack();
        }
        Part { count: 0, stride: 1, kept, now_ns: 0, last: None }
    }

    /// Drops every second row.
    fn thin(&mut self) {
        let all = self.kept.len();
        if self.last.is_none() && all.is_multiple_of(2) {
            self.last = self.kept.last();
        }
        self.kept.thin();
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowSample;
    use proptest::prelude::*;

    /// Builds a series with one row per instant for each flow, from its start to before its end.
    /// It is the same whenever rows are packed.
    fn series(rows_max: usize, flows: &[(u64, u64)]) -> Vec<FlowSample> {
        let [values, packed, mixed] =
            [VALUES_MAX, 0, 10].map(|values_max| series_of(rows_max, values_max, flows));
        assert_eq!(packed, values);
        assert_eq!(mixed, values);
        values
    }

    fn series_of(rows_max: usize, values_max: usize, flows: &[(u64, u64)]) -> Vec<FlowSample> {
        let mut series = Series::of_at_most(rows_max, values_max);
        for time_ns in 0..flows.iter().map(|(_, end)| *end).max().unwrap_or(0) {
            for (flow, (start, end)) in flows.iter().enumerate() {
                if (*start..*end).contains(&time_ns) {
                    let flow = flow as u32;
                    series.push(&FlowSample { flow, time_ns, ..FlowSample::default() });
                }
            }
        }
        series.into_rows().iter().collect()
    }

    fn times(rows: &[FlowSample], flow: u32) -> Vec<u64> {
        rows.iter().filter(|row| row.flow == flow).map(|row| row.time_ns).collect()
    }

    /// The rows kept are 2^k instants apart, starting with the first, plus the last.
    #[test]
    fn what_stays_is_even() {
        assert_eq!(times(&series(8, &[(0, 21)]), 0), [0, 4, 8, 12, 16, 20]);
        assert_eq!(times(&series(8, &[(0, 20)]), 0), [0, 4, 8, 12, 16, 19]);
        assert_eq!(times(&series(8, &[(0, 8)]), 0), [0, 2, 4, 6, 7]);
        assert_eq!(times(&series(8, &[(0, 7)]), 0), [0, 1, 2, 3, 4, 5, 6]);
    }

    proptest! {
        /// A series of any length keeps at most the bound and more than a quarter of it, at even
        /// distances, with the first and the last row, ascending in time, and independent of the
        /// other series.
        #[test]
        fn series_of_any_length(
            half in 4..32usize,
            spans in prop::collection::vec((0..500u64, 1..2000u64), 1..4),
        ) {
            let rows_max = 2 * half;
            let flows: Vec<(u64, u64)> =
                spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let rows = series(rows_max, &flows);
            prop_assert!(rows.is_sorted_by_key(|row| row.time_ns));
            for (flow, (start, end)) in flows.iter().enumerate() {
                let times = times(&rows, flow as u32);
                let alone = series(rows_max, &[(*start, *end)]);
                prop_assert_eq!(&times, &self::times(&alone, 0));
                prop_assert!(times.len() <= rows_max);
                prop_assert!(times.len() >= ((end - start) as usize).min(half));
                prop_assert_eq!((times[0], times[times.len() - 1]), (*start, end - 1));
                let steps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
                if let Some((last, before)) = steps.split_last() {
                    let even = |step: &u64| *step == before[0] && step.is_power_of_two();
                    prop_assert!(before.iter().all(even));
                    prop_assert!(before.first().is_none_or(|step| last <= step));
                }
            }
        }
    }
}
