//! Draws of sizes.

use knee_random::{below, log_normal, pareto};
use rand_chacha::ChaCha8Rng;

/// A distribution of sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(u64),
    /// Log-normal.
    LogNormal {
        /// The median.
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// None is larger.
        max: u64,
    },
    /// Pareto, bounded.
    Pareto {
        /// The smallest.
        min: u64,
        /// The exponent (1.1 to 1.5 for files on the web).
        shape: f64,
        /// The largest.
        max: u64,
    },
    /// Drawn from observed sizes, evenly.
    Empirical(Vec<u64>),
}

impl Sizes {
    /// The next size in bytes, at least one.
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> u64 {
        let bytes = match *self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::LogNormal { median, sigma, max } => {
                // What would be larger counts as the largest: the share of
                // large transfers stays that of the distribution.
                whole(log_normal(rng, median as f64, sigma)).min(max)
            }
            Sizes::Pareto { min, shape, max } => {
                whole(pareto(rng, min as f64, shape, max as f64)).min(max)
            }
            Sizes::Empirical(ref sizes) => sizes[below(rng, sizes.len() as u64) as usize],
        };
        bytes.max(1)
    }
}

/// The nearest whole number of bytes; as a cast saturates, none is too large.
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}
