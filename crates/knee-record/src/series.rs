//! Time series in bounded memory: all rows of a run go to disk, and as many as measures and plots
//! need stay in memory.

use crate::{ClassSample, FlowSample, LinkSample};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Rows of one flow, path or link that stay in memory: a minute at one sample per millisecond fits.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// A row with a time.
pub trait Timed: Copy + Debug {
    /// Time since the start of the run, nanoseconds.
    fn time_ns(&self) -> u64;

    /// Returns the series that the row belongs to: a flow and its path, or a link.
    fn of(&self) -> (u32, u16);
}

impl Timed for FlowSample {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn of(&self) -> (u32, u16) {
        (self.flow, self.path)
    }
}

impl Timed for ClassSample {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn of(&self) -> (u32, u16) {
        (self.link, self.class)
    }
}

impl Timed for LinkSample {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn of(&self) -> (u32, u16) {
        (self.link, 0)
    }
}

/// Rows of a time series, ascending in time. When one flow, path or link has too many rows, every
/// other row of it is dropped, now and from then on; its last row always stays. Counters lose
/// nothing, because they count from the start. Which rows of a series stay depends only on that
/// series, not on the others, and not on whether the run is read from disk.
#[derive(Clone, Debug)]
pub struct Series<R> {
    rows: Vec<R>,
    parts: BTreeMap<(u32, u16), Part<R>>,
    /// Whether some part has too many rows.
    is_full: bool,
    /// Time of the last row.
    now_ns: u64,
    rows_max: usize,
}

/// The rows of one flow, path or link.
#[derive(Clone, Debug)]
struct Part<R> {
    /// Number of rows so far.
    count: u64,
    /// One row in `stride` is kept.
    stride: u64,
    /// Number of rows kept.
    kept: usize,
    /// The last row, unless it was kept.
    last: Option<R>,
}

impl<R: Timed> Default for Series<R> {
    fn default() -> Series<R> {
        Series::of_at_most(ROWS_MAX)
    }
}

impl<R: Timed> Series<R> {
    fn of_at_most(rows_max: usize) -> Series<R> {
        Series { rows: Vec::new(), parts: BTreeMap::new(), is_full: false, now_ns: 0, rows_max }
    }

    /// Adds a row.
    pub fn push(&mut self, row: R) {
        if self.is_full && row.time_ns() != self.now_ns {
            // All at once, because parts that began together are full together.
            self.thin();
        }
        self.now_ns = row.time_ns();
        let new = || Part { count: 0, stride: 1, kept: 0, last: None };
        let part = self.parts.entry(row.of()).or_insert_with(new);
        let stays = part.count.is_multiple_of(part.stride);
        part.count += 1;
        part.last = (!stays).then_some(row);
        if stays {
            self.rows.push(row);
            part.kept += 1;
            self.is_full |= part.kept >= self.rows_max;
        }
    }

    /// Returns all rows that were kept.
    pub fn into_rows(mut self) -> Vec<R> {
        if self.is_full {
            self.thin();
        }
        let kept = self.rows.len();
        self.rows.extend(self.parts.values().filter_map(|part| part.last));
        if self.rows.len() > kept {
            self.rows.sort_by_key(Timed::time_ns);
        }
        self.rows
    }

    /// Drops every second row of each part that has too many.
    fn thin(&mut self) {
        let (parts, rows_max) = (&mut self.parts, self.rows_max);
        let full = parts.iter().filter(|(_, part)| part.kept >= rows_max);
        let mut seen: BTreeMap<(u32, u16), (usize, usize)> =
            full.map(|(of, part)| (*of, (0, part.kept))).collect();
        self.rows.retain(|row| {
            let Some((seen, all)) = seen.get_mut(&row.of()) else { return true };
            *seen += 1;
            let stays = !seen.is_multiple_of(2);
            if !stays && let Some(part) = parts.get_mut(&row.of()) {
                part.kept -= 1;
                if seen == all && part.last.is_none() {
                    part.last = Some(*row);
                }
            }
            stays
        });
        for of in seen.keys() {
            if let Some(part) = parts.get_mut(of) {
                part.stride *= 2;
            }
        }
        self.is_full = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds a series with one row per instant for each flow, from its start to before its end.
    fn series(rows_max: usize, flows: &[(u64, u64)]) -> Vec<FlowSample> {
        let mut series = Series::of_at_most(rows_max);
        for time_ns in 0..flows.iter().map(|(_, end)| *end).max().unwrap_or(0) {
            for (flow, (start, end)) in flows.iter().enumerate() {
                if (*start..*end).contains(&time_ns) {
                    let flow = flow as u32;
                    series.push(FlowSample { flow, time_ns, ..FlowSample::default() });
                }
            }
        }
        series.into_rows()
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
