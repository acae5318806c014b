//! Fewer rows for the page, without losing a peak.
//!
//! Rows are taken in buckets of equal count. A bucket leaves two rows: the
//! times of its first and its last one; a counter keeps its values there
//! (rates over whole buckets stay exact), a gauge its smallest and its
//! largest value in the order in which they came.

/// How many rows of a series the page holds, and which.
pub(crate) struct Thinning {
    rows: usize,
    bucket: usize,
}

impl Thinning {
    /// A thinning of `rows` rows to `rows_max` or fewer; identity when they
    /// fit.
    pub(crate) fn new(rows: usize, rows_max: usize) -> Thinning {
        let bucket = if rows <= rows_max { 1 } else { rows.div_ceil((rows_max / 2).max(1)) };
        Thinning { rows, bucket }
    }

    /// Rows that one bucket covers; 1: nothing is left out.
    pub(crate) fn bucket(&self) -> usize {
        self.bucket
    }

    /// A column that never decreases, or the times.
    pub(crate) fn counter(&self, value: impl Fn(usize) -> u64) -> Vec<u64> {
        self.each(|first, last, out| {
            out.push(value(first));
            if last > first {
                out.push(value(last));
            }
        })
    }

    /// A column that goes up and down. Zero stands for "none" and is kept
    /// only where a bucket has nothing else.
    pub(crate) fn gauge(&self, value: impl Fn(usize) -> u64) -> Vec<u64> {
        self.each(|first, last, out| {
            let known = || (first..=last).filter(|&row| value(row) > 0);
            let low = known().min_by_key(|&row| value(row)).unwrap_or(first);
            let high = known().max_by_key(|&row| value(row)).unwrap_or(first);
            out.push(value(low.min(high)));
            if last > first {
                out.push(value(low.max(high)));
            }
        })
    }

    fn each(&self, visit: impl Fn(usize, usize, &mut Vec<u64>)) -> Vec<u64> {
        let mut out = Vec::new();
        for first in (0..self.rows).step_by(self.bucket) {
            let last = (first + self.bucket).min(self.rows) - 1;
            visit(first, last, &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone() {
        let values = [3, 1, 4, 1, 5];
        let thinning = Thinning::new(5, 5);
        assert_eq!(thinning.gauge(|row| values[row]), values);
        assert_eq!(thinning.counter(|row| values[row]), values);
    }

    #[test]
    fn a_single_peak_and_a_single_dip_survive() {
        let value = |row: usize| match row {
            777 => 99,
            4321 => 1,
            _ => 50,
        };
        let thinning = Thinning::new(100_000, 600);
        let kept = thinning.gauge(value);
        assert!(kept.len() <= 600, "{}", kept.len());
        assert_eq!(kept.iter().filter(|&&value| value == 99).count(), 1);
        assert_eq!(kept.iter().filter(|&&value| value == 1).count(), 1);
        assert_eq!(thinning.counter(|row| row as u64).len(), kept.len());
    }

    #[test]
    fn a_counter_keeps_its_first_and_its_last_value() {
        let kept = Thinning::new(10_001, 100).counter(|row| row as u64);
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 10_000));
        assert!(kept.is_sorted());
    }
}
