//! Time series in bounded memory: a run of any length keeps its rows on disk,
//! and in memory as many as measures and plots need.

use crate::{FlowSample, LinkSample};
use std::fmt::Debug;

/// Rows of a series that stay in memory, about. A minute of ten flows at one
/// sample a millisecond fits.
pub(crate) const ROWS_MAX: usize = 1 << 19;

/// A row with its place in time.
pub trait Timed: Copy + Debug {
    /// Time since the start of the run, nanoseconds.
    fn time_ns(&self) -> u64;
}

impl Timed for FlowSample {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }
}

impl Timed for LinkSample {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }
}

/// Rows of a time series, ascending in time. When there are too many, those of
/// every second instant are forgotten, and of those to come as many; the rows
/// of the last instant always stay. Counters lose nothing by it, for they
/// count from the start. What stays depends on the rows alone, so that a run
/// read from disk has the rows that it was measured by.
#[derive(Clone, Debug)]
pub struct Series<R> {
    rows: Vec<R>,
    /// Those of the instant under way, unless they are among `rows`.
    passing: Vec<R>,
    /// When that is.
    now_ns: Option<u64>,
    /// Its number, from zero.
    instant: u64,
    /// Instants of which one stays.
    stride: u64,
    rows_max: usize,
}

impl<R: Timed> Default for Series<R> {
    fn default() -> Series<R> {
        Series::of_at_most(ROWS_MAX)
    }
}

impl<R: Timed> Series<R> {
    fn of_at_most(rows_max: usize) -> Series<R> {
        Series {
            rows: Vec::new(),
            passing: Vec::new(),
            now_ns: None,
            instant: 0,
            stride: 1,
            rows_max,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: R) {
        match self.now_ns {
            None => {}
            Some(now) if now == row.time_ns() => {}
            Some(_) => self.next_instant(),
        }
        self.now_ns = Some(row.time_ns());
        let stays = self.instant.is_multiple_of(self.stride);
        if stays { &mut self.rows } else { &mut self.passing }.push(row);
    }

    /// All rows that stayed.
    pub fn into_rows(mut self) -> Vec<R> {
        self.rows.append(&mut self.passing);
        self.rows
    }

    fn next_instant(&mut self) {
        self.instant += 1;
        self.passing.clear();
        if self.rows.len() >= self.rows_max {
            self.thin();
        }
    }

    /// Forgets the rows of every second instant.
    fn thin(&mut self) {
        let (mut last, mut stays) = (None, false);
        self.rows.retain(|row| {
            if last != Some(row.time_ns()) {
                last = Some(row.time_ns());
                stays = !stays;
            }
            stays
        });
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(rows_max: usize, instants: u64, flows: u32) -> Vec<FlowSample> {
        let mut series = Series::of_at_most(rows_max);
        for time_ns in 0..instants {
            (0..flows).for_each(|flow| {
                series.push(FlowSample { flow, time_ns, ..FlowSample::default() });
            });
        }
        series.into_rows()
    }

    /// 2^k instants apart, from the first, and the last.
    #[test]
    fn what_stays_is_even() {
        let times: Vec<u64> = series(8, 21, 1).iter().map(|row| row.time_ns).collect();
        assert_eq!(times, [0, 4, 8, 12, 16, 20]);
        let times: Vec<u64> = series(8, 20, 1).iter().map(|row| row.time_ns).collect();
        assert_eq!(times, [0, 4, 8, 12, 16, 19]);
    }

    proptest! {
        /// However long it is: never more than the bound and two instants,
        /// more than a quarter of the bound, whole instants, even distances.
        #[test]
        fn series_of_any_length(rows_max in 8..64usize, instants in 1..2000u64, flows in 1..4u32) {
            let rows = series(rows_max, instants, flows);
            let all = instants as usize * flows as usize;
            prop_assert!(rows.len() <= rows_max + 2 * flows as usize);
            prop_assert!(rows.len() >= all.min(rows_max / 2 - flows as usize));
            let times: Vec<u64> = rows.iter().step_by(flows as usize).map(|row| row.time_ns).collect();
            prop_assert_eq!(times.len() * flows as usize, rows.len());
            prop_assert_eq!((times[0], times[times.len() - 1]), (0, instants - 1));
            let steps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
            if let Some((last, before)) = steps.split_last() {
                prop_assert!(before.iter().all(|step| *step == before[0] && step.is_power_of_two()));
                prop_assert!(before.first().is_none_or(|step| last <= step));
            }
        }
    }
}
