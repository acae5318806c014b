//! Reduces a time series to fewer points without losing a peak.
//!
//! Rows are divided into buckets of equal count. Of each bucket two rows remain, with the times of
//! its first and its last row. A counter keeps its values there, so that rates over whole buckets
//! stay exact; a gauge keeps its smallest and its largest value in the order in which they
//! occurred.

/// Which rows of a time series are kept.
#[derive(Clone, Copy, Debug)]
pub struct Thinning {
    rows: usize,
    bucket: usize,
}

impl Thinning {
    /// Reduces `rows` rows to `rows_max` or fewer; keeps all if they fit.
    pub fn new(rows: usize, rows_max: usize) -> Thinning {
        let bucket = if rows <= rows_max { 1 } else { rows.div_ceil((rows_max / 2).max(1)) };
        Thinning { rows, bucket }
    }

    /// Returns the number of rows per bucket; 1 if none is left out.
    pub fn bucket(&self) -> usize {
        self.bucket
    }

    /// Reduces a column that never decreases, or the times.
    pub fn counter(&self, values: &[u64]) -> Vec<u64> {
        self.each(|first, last, out| {
            out.push(values[first]);
            if last > first {
                out.push(values[last]);
            }
        })
    }

    /// Reduces a column that goes up and down. Zero means that there is no value, and is kept only
    /// if a bucket has nothing else.
    pub fn gauge(&self, values: &[u64]) -> Vec<u64> {
        self.each(|first, last, out| {
            // The first of the smallest, and the last of the largest.
            let (mut low, mut high) = (first, first);
            for row in first..=last {
                let value = values[row];
                if value > 0 {
                    if values[low] == 0 || value < values[low] {
                        low = row;
                    }
                    if value >= values[high] {
                        high = row;
                    }
                }
            }
            out.push(values[low.min(high)]);
            if last > first {
                out.push(values[low.max(high)]);
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
        assert_eq!(thinning.gauge(&values), values);
        assert_eq!(thinning.counter(&values), values);
    }

    #[test]
    fn a_single_peak_and_a_single_dip_survive() {
        let value = |row: usize| match row {
            777 => 99,
            4321 => 1,
            _ => 50,
        };
        let thinning = Thinning::new(100_000, 600);
        let kept = thinning.gauge(&(0..100_000).map(value).collect::<Vec<_>>());
        assert!(kept.len() <= 600, "{}", kept.len());
        assert_eq!(kept.iter().filter(|&&value| value == 99).count(), 1);
        assert_eq!(kept.iter().filter(|&&value| value == 1).count(), 1);
        assert_eq!(thinning.counter(&(0..100_000).collect::<Vec<_>>()).len(), kept.len());
    }

    #[test]
    fn a_counter_keeps_its_first_and_its_last_value() {
        let kept = Thinning::new(10_001, 100).counter(&(0..10_001).collect::<Vec<_>>());
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 10_000));
        assert!(kept.is_sorted());
    }
}
