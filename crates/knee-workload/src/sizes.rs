//! Random sizes.

use knee_random::{below, log_normal, pareto};
use knee_units::Packed;
use rand_chacha::ChaCha8Rng;
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

/// Rounds to whole bytes; the cast saturates.
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}
