//! Statistics of a number over repeats.

use crate::statistics::LEVEL;
use crate::statistics::student::quantile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of a number over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Runs with a value.
    pub runs: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median; for an even number of runs, the mean of the middle two.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Lower end of the 95 % confidence interval of the mean; null below two
    /// runs. Not below zero unless a value is negative.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Interval {
    /// Computes the mean `m` and its interval, from the standard error `e = s / sqrt(n)` and the
    /// 0.975 quantile t of Student's distribution with n - 1 degrees of freedom: for positive
    /// values on the log scale, `m exp(± t e / m)`, otherwise `m ± t e`. Returns `None` if there
    /// are no values.
    pub fn new(values: &[f64]) -> Option<Interval> {
        Interval::with_ends(values, ends)
    }

    /// Like [`Interval::new`], for values between 0 and 1, such as shares and Jain's index: the
    /// interval is within these bounds. It is that of the logit, `ln(m / (1 - m)) ± t e / (m (1 -
    /// m))`, which was chosen by simulation: it covers the truth in 93 to 97 % of cases, and is much
    /// narrower for a few runs near a bound than scales that come closer to 95 %, such as the inverse
    /// cube root. Values outside the bounds are treated as by [`Interval::new`].
    pub fn of_parts(values: &[f64]) -> Option<Interval> {
        let bounded = values.iter().all(|value| (0.0..=1.0).contains(value));
        Interval::with_ends(values, if bounded { ends_within } else { ends })
    }

    fn with_ends(values: &[f64], ends: fn(f64, f64, f64) -> (f64, f64)) -> Option<Interval> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let (mean, deviation) = mean_and_deviation(&sorted);
        let ends = (count > 1).then(|| {
            let half = quantile(LEVEL, count - 1) * deviation / (count as f64).sqrt();
            ends(mean, half, min)
        });
        Some(Interval {
            runs: count,
            mean,
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            min,
            max,
            low: ends.map(|ends| ends.0),
            high: ends.map(|ends| ends.1),
        })
    }
}

fn ends(mean: f64, half: f64, min: f64) -> (f64, f64) {
    if min > 0.0 {
        let factor = (half / mean).exp();
        return (mean / factor, (mean * factor).min(f64::MAX));
    }
    let floor = if min < 0.0 { f64::NEG_INFINITY } else { 0.0 };
    ((mean - half).max(floor), mean + half)
}

/// Returns the ends of an interval between 0 and 1.
fn ends_within(mean: f64, half: f64, _min: f64) -> (f64, f64) {
    if mean <= 0.0 || mean >= 1.0 {
        return (mean, mean);
    }
    let far = half / (mean * (1.0 - mean));
    let odds = mean / (1.0 - mean);
    let back = |odds: f64| odds / (1.0 + odds);
    // Rounding must not move the ends of equal values.
    match far < 1e-12 {
        true => (mean, mean),
        false => (back(odds * (-far).exp()), 1.0 - back((-far).exp() / odds)),
    }
}

/// Returns the mean and the sample standard deviation (divisor n - 1; zero for a single value).
pub(super) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// Returns the interval of a share of which `count` of `all` were counted, `deviations` standard
/// deviations to either side (E. B. Wilson, 1927): within 0 and 1, and right also for none and for
/// all.
///
/// # Panics
///
/// If `all` is zero.
pub fn wilson(count: u64, all: u64, deviations: f64) -> [f64; 2] {
    assert!(all > 0, "nothing was counted");
    let (all, squared) = (all as f64, deviations * deviations);
    let share = count as f64 / all;
    let middle = share + squared / (2.0 * all);
    let half = deviations * (share * (1.0 - share) / all + squared / (4.0 * all * all)).sqrt();
    [-half, half].map(|half| ((middle + half) / (1.0 + squared / all)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2, 4, 6: the mean is 4 and s = 2, so the half width is 4.3027 * 2 / sqrt(3); on the log
    /// scale, it is divided by the mean.
    #[test]
    fn interval_of_three() {
        let half = 4.3027 * 2.0 / 3.0_f64.sqrt();
        let interval = Interval::new(&[6.0, 2.0, 4.0]).unwrap();
        assert_eq!((interval.mean, interval.median), (4.0, 4.0));
        let factor = (half / 4.0).exp();
        assert!((interval.low.unwrap() * factor / 4.0 - 1.0).abs() < 1e-4);
        assert!((interval.high.unwrap() / factor / 4.0 - 1.0).abs() < 1e-4);
        let around_zero = Interval::new(&[2.0, -2.0, 0.0]).unwrap();
        assert!((around_zero.low.unwrap() + half).abs() < 1e-3);
        assert!((around_zero.high.unwrap() - half).abs() < 1e-3);
    }

    /// Non-negative values have a non-negative interval.
    #[test]
    fn an_interval_does_not_cross_zero() {
        for values in [[0.01, 1.0], [0.0, 1.0], [0.0, 0.0], [3.0, 3.0]] {
            let interval = Interval::new(&values).unwrap();
            let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
            assert!(0.0 <= low && low <= interval.mean && interval.mean <= high, "{values:?}");
            assert!(high.is_finite(), "{values:?}");
        }
    }

    #[test]
    fn one_run_has_no_interval() {
        let interval = Interval::new(&[3.0]).unwrap();
        assert_eq!((interval.median, interval.low, interval.high), (3.0, None, None));
        assert_eq!(Interval::new(&[]), None);
    }

    #[test]
    fn median_of_an_even_number() {
        assert_eq!(Interval::new(&[1.0, 9.0, 2.0, 4.0]).unwrap().median, 3.0);
    }

    /// Table I of R. G. Newcombe, "Two-sided confidence intervals for the single proportion" (1998),
    /// method 3, at 95 %.
    #[test]
    fn intervals_of_shares() {
        for (count, all, expected) in [
            (81, 263, [0.2553, 0.3662]),
            (15, 148, [0.0624, 0.1605]),
            (0, 20, [0.0, 0.1611]),
            (1, 29, [0.0061, 0.1718]),
        ] {
            let found = wilson(count, all, 1.959_964);
            let is_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 6e-5);
            assert!(is_close, "{count} of {all}: {found:?}");
        }
    }
}
