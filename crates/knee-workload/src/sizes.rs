//! Random sizes.

use knee_units::Packed;
use knee_units::random::{below, log_normal, pareto};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::SQRT_2;
use std::sync::Arc;

/// A distribution of sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u64),
    /// Log-normal.
    LogNormal {
        /// The median.
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Maximum.
        max: u64,
    },
    /// Pareto, bounded.
    Pareto {
        /// Minimum.
        min: u64,
        /// The exponent (1.1 to 1.5 for files on the web).
        shape: f64,
        /// Maximum.
        max: u64,
    },
    /// Drawn uniformly from observed sizes.
    Empirical(Arc<Packed>),
}

impl Sizes {
    /// Returns the mean of the sizes drawn, bytes.
    pub fn mean(&self) -> f64 {
        match *self {
            Sizes::Fixed(bytes) => bytes.max(1) as f64,
            // Without spread, all are of one size.
            Sizes::LogNormal { median, sigma: 0.0, max } => median.min(max) as f64,
            Sizes::LogNormal { median, sigma, max } => {
                let (median, max) = (median as f64, max as f64);
                // Larger draws count as the maximum: E min(X, max).
                let at = (max / median).ln() / sigma;
                median * (sigma * sigma / 2.0).exp() * normal_below(at - sigma)
                    + max * (1.0 - normal_below(at))
            }
            Sizes::Pareto { min, shape, max } => pareto_mean(min as f64, shape, max as f64),
            Sizes::Empirical(ref sizes) => {
                let sum: f64 = sizes.iter().map(|bytes| bytes.max(1) as f64).sum();
                sum / sizes.len().max(1) as f64
            }
        }
    }

    /// Returns the next size in bytes, at least one.
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> u64 {
        let bytes = match *self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::LogNormal { median, sigma, max } => {
                // Larger draws count as the maximum, so the share of large transfers is that of the
                // distribution.
                whole(log_normal(rng, median as f64, sigma)).min(max)
            }
            Sizes::Pareto { min, shape, max } => {
                whole(pareto(rng, min as f64, shape, max as f64)).min(max)
            }
            Sizes::Empirical(ref sizes) => {
                let line = below(rng, sizes.len() as u64) as usize;
                sizes.get(line).unwrap_or_default()
            }
        };
        bytes.max(1)
    }
}

/// Returns the mean of a bounded Pareto distribution.
fn pareto_mean(min: f64, shape: f64, max: f64) -> f64 {
    let span = (max / min).ln();
    let whole = 1.0 - (-shape * span).exp();
    if whole <= 0.0 {
        return min;
    }
    // The integral of x^-shape from min to max, over min^(1 - shape).
    let integral = match 1.0 - shape {
        power if power.abs() < 1e-9 => span,
        power => (power * span).exp_m1() / power,
    };
    shape * min * integral / whole
}

/// Returns the probability that a standard normal number is below `x`.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// Rounds to whole bytes; the cast saturates.
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    /// Returns the mean of a million draws and its standard error.
    fn drawn(sizes: &Sizes) -> (f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let draws: Vec<f64> = (0..1_000_000).map(|_| sizes.draw(&mut rng) as f64).collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / count;
        (mean, (variance / count).sqrt())
    }

    #[test]
    fn the_mean_is_that_of_the_draws() {
        let log_normal = |sigma, max| Sizes::LogNormal { median: 30_000, sigma, max };
        let pareto = |shape, max| Sizes::Pareto { min: 4_000, shape, max };
        let observed: Packed = [10, 1_000, 1_000_000].into_iter().collect();
        let all = [
            Sizes::Fixed(1_448),
            log_normal(0.0, 30_000),
            log_normal(0.0, 40_000),
            log_normal(1.0, 300_000),
            log_normal(2.2, 100_000_000),
            log_normal(2.2, 40_000),
            log_normal(0.5, 20_000),
            pareto(1.2, 100_000_000),
            pareto(1.0, 10_000_000),
            pareto(0.5, 1_000_000),
            pareto(3.0, 4_000),
            Sizes::Empirical(observed.into()),
        ];
        for sizes in all {
            let ((drawn, error), mean) = (drawn(&sizes), sizes.mean());
            assert!((mean - drawn).abs() <= 4.0 * error + 0.5, "{sizes:?}: {mean}, drawn {drawn}");
        }
    }
}
