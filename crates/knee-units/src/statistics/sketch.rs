//! A compact distribution that can be merged: counts in buckets of equal relative width.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;
use std::fmt::Write;

/// Number of buckets from a value to twice that value.
const PER_DOUBLING: f64 = 16.0;

/// Counts of positive values in buckets of equal relative width: bucket `k` holds values from
/// 2^(k/16) to below 2^((k+1)/16). A percentile is at most 2.2 % off for any distribution, and the
/// sketch of two sets of values is the sum of their sketches (DDSketch: Masson, Rim and Lee, VLDB
/// 2019, section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Bucket number and count, ascending.
    buckets: Vec<(i16, u64)>,
    count: u64,
}

impl Sketch {
    /// Largest relative error of a percentile: (γ − 1) / (γ + 1), γ = 2^(1/16).
    pub const ERROR: f64 = 0.0217;

    /// Adds a value; values that are not positive and finite do not count.
    pub fn add(&mut self, value: f64) {
        self.add_many(value, 1);
    }

    /// Adds a value that occurred `times` times.
    pub fn add_many(&mut self, value: f64, times: u64) {
        if value > 0.0 && value.is_finite() && times > 0 {
            let bucket = (value.log2() * PER_DOUBLING).floor() as i16;
            match self.buckets.binary_search_by_key(&bucket, |(number, _)| *number) {
                Ok(at) => self.buckets[at].1 += times,
                Err(at) => self.buckets.insert(at, (bucket, times)),
            }
            self.count += times;
        }
    }

    /// Adds the values of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        let own = std::mem::take(&mut self.buckets);
        self.buckets = Vec::with_capacity(own.len().max(other.buckets.len()));
        let (mut own, mut others) = (own.into_iter().peekable(), other.buckets.iter().peekable());
        while let (Some((number, count)), Some((other, more))) = (own.peek(), others.peek()) {
            let (next, order) = match number.cmp(other) {
                Ordering::Less => ((*number, *count), Ordering::Less),
                Ordering::Equal => ((*number, count + more), Ordering::Equal),
                Ordering::Greater => ((*other, *more), Ordering::Greater),
            };
            self.buckets.push(next);
            if order.is_le() {
                own.next();
            }
            if order.is_ge() {
                others.next();
            }
        }
        self.buckets.extend(own.chain(others.copied()));
        self.count += other.count;
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the nearest-rank percentile, within [`Sketch::ERROR`]; `None` if there are no
    /// values. `fraction` is in `0.0..=1.0`.
    pub fn percentile(&self, fraction: f64) -> Option<f64> {
        let rank = ((fraction * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        self.buckets.iter().find_map(|(bucket, count)| {
            below += count;
            (below >= rank).then(|| middle(*bucket))
        })
    }

    /// Returns the percentile as if the values of each bucket were spread evenly over its
    /// logarithms; `None` if there are no values. Two sketches of values that vary smoothly are
    /// then comparable more closely than by the width of a bucket, which limits the error to 4.4 %
    /// for any values. `fraction` is in `0.0..=1.0`.
    pub fn interpolated(&self, fraction: f64) -> Option<f64> {
        let rank = fraction * self.count as f64;
        let mut below = 0.0;
        self.buckets.iter().find_map(|(bucket, count)| {
            let within = (rank - below) / *count as f64;
            below += *count as f64;
            let place = f64::from(*bucket) + within.max(0.0);
            (below >= rank).then(|| (place / PER_DOUBLING).exp2())
        })
    }

    /// Returns the number of values by power of two: the entry `n` counts values from 2^(n-1) to
    /// below 2^n.
    pub fn by_powers_of_two(&self) -> BTreeMap<i32, u64> {
        let mut counts = BTreeMap::new();
        for (bucket, count) in &self.buckets {
            let power = i32::from(*bucket).div_euclid(PER_DOUBLING as i32) + 1;
            *counts.entry(power).or_default() += count;
        }
        counts
    }

    /// Returns the sum of all values, within [`Sketch::ERROR`].
    pub fn sum(&self) -> f64 {
        self.buckets.iter().map(|(bucket, count)| middle(*bucket) * *count as f64).sum()
    }

    /// Returns the sum of the natural logarithms of all values, each within half a bucket, 0.022.
    pub fn sum_of_logarithms(&self) -> f64 {
        let middle = |bucket: i16| (f64::from(bucket) + 0.5) / PER_DOUBLING * LN_2;
        self.buckets.iter().map(|(bucket, count)| middle(*bucket) * *count as f64).sum()
    }

    /// Returns the buckets as `k:count`, ascending, separated by spaces.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (bucket, count) in &self.buckets {
            let gap = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{gap}{bucket}:{count}");
        }
        text
    }

    /// Parses the output of [`Sketch::text`]; returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Sketch> {
        let mut sketch = Sketch::default();
        for part in text.split(' ').filter(|part| !part.is_empty()) {
            let (bucket, count) = part.split_once(':')?;
            let (bucket, count) = (bucket.parse().ok()?, count.parse::<u64>().ok()?);
            sketch.buckets.push((bucket, count));
            sketch.count = sketch.count.checked_add(count)?;
        }
        sketch.buckets.sort_unstable();
        let is_twice = sketch.buckets.windows(2).any(|two| two[0].0 == two[1].0);
        (!is_twice).then_some(sketch)
    }
}

/// Returns the value with the same relative distance to both ends of a bucket.
fn middle(bucket: i16) -> f64 {
    let low = (f64::from(bucket) / PER_DOUBLING).exp2();
    let high = (f64::from(bucket + 1) / PER_DOUBLING).exp2();
    2.0 * low * high / (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(values: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|value| sketch.add(*value));
        sketch
    }

    #[test]
    fn what_is_not_positive_does_not_count() {
        assert_eq!(sketch(&[0.0, -1.0, f64::NAN, f64::INFINITY]), Sketch::default());
        assert_eq!(Sketch::default().percentile(0.5), None);
        // 1 is the lower end of bucket 0, 2 of bucket 16.
        assert_eq!(sketch(&[2.0, 1.0, 1.0]).text(), "0:2 16:1");
        for text in ["0", "0:", ":1", "0:-1", "0:1,1:1", "0:1 0:1", "99999:1"] {
            assert_eq!(Sketch::parse(text), None, "{text}");
        }
    }

    /// Values of a smooth distribution: 10,000 evenly spaced from 1 to 1,000, whose 95th percentile
    /// is 950. Nearest rank is off by up to 2.2 %, interpolation by far less. (The
    /// last bucket is cut off by the largest value, so the 99th would be off by 1.1 %.)
    #[test]
    fn interpolation_is_finer_than_a_bucket() {
        let values: Vec<f64> = (0..10_000).map(|at| 1.0 + 0.0999 * f64::from(at)).collect();
        let found = sketch(&values);
        for fraction in [0.05, 0.5, 0.9, 0.95] {
            let exact = 1.0 + 999.0 * fraction;
            let off = found.interpolated(fraction).unwrap() / exact - 1.0;
            assert!(off.abs() < 0.003, "{fraction}: {off}");
        }
        let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
        let off = (found.sum_of_logarithms() - logarithms) / 10_000.0;
        assert!(off.abs() < 0.001, "{off}");
        assert_eq!(sketch(&[]).interpolated(0.5), None);
        let one = sketch(&[5.0]);
        for fraction in [0.0, 0.5, 1.0] {
            let off = one.interpolated(fraction).unwrap() / 5.0 - 1.0;
            assert!(off.abs() < 0.0443, "{off}");
        }
    }

    proptest! {
        /// Compared with the sorted values.
        #[test]
        fn percentiles_are_near(
            values in prop::collection::vec(1e-3..1e12f64, 1..200),
            fraction in 0.0..=1.0f64,
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((fraction * values.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            let near = sketch(&values).percentile(fraction).unwrap();
            prop_assert!((near / exact - 1.0).abs() <= Sketch::ERROR, "{near} {exact}");
        }

        /// Compared with the values one by one.
        #[test]
        fn sums_and_powers_are_those_of_the_values(
            values in prop::collection::vec(1e-3..1e12f64, 0..200),
        ) {
            let sketch = sketch(&values);
            let exact: f64 = values.iter().sum();
            prop_assert!((sketch.sum() - exact).abs() <= Sketch::ERROR * exact);
            let mut powers = std::collections::BTreeMap::new();
            for value in &values {
                *powers.entry(value.log2().floor() as i32 + 1).or_insert(0) += 1;
            }
            prop_assert_eq!(sketch.by_powers_of_two(), powers);
        }

        /// A text is read back as it was written.
        #[test]
        fn texts_are_read(values in prop::collection::vec(1e-3..1e12f64, 0..100)) {
            let whole = sketch(&values);
            prop_assert_eq!(Sketch::parse(&whole.text()), Some(whole));
        }

        /// The merged sketches of two halves equal the sketch of the whole.
        #[test]
        fn sketches_merge(values in prop::collection::vec(1e-3..1e12f64, 0..100), at in 0..100usize) {
            let (one, other) = values.split_at(at.min(values.len()));
            let mut merged = sketch(one);
            merged.merge(&sketch(other));
            prop_assert_eq!(merged, sketch(&values));
        }
    }
}
