//! Draws of sizes.

use crate::config::Sizes;
use crate::random::{below, normal, unit};
use rand_chacha::ChaCha8Rng;

impl Sizes {
    /// The next size in bytes, at least one.
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> u64 {
        let bytes = match *self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::LogNormal { median, sigma, max } => {
                // What would be larger counts as the largest: the share of
                // large transfers stays that of the distribution.
                whole(median as f64 * (sigma * normal(rng)).exp()).min(max)
            }
            Sizes::Pareto { min, shape, max } => whole(pareto(unit(rng), min, shape, max)).min(max),
            Sizes::Empirical(ref sizes) => sizes[below(rng, sizes.len())],
        };
        bytes.max(1)
    }
}

/// The nearest whole number of bytes; as a cast saturates, none is too large.
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// Inverse of the bounded Pareto distribution,
/// `F(x) = (1 - (min/x)^shape) / (1 - (min/max)^shape)`.
fn pareto(uniform: f64, min: u64, shape: f64, max: u64) -> f64 {
    let (min, max) = (min as f64, max as f64);
    let beyond = uniform * (1.0 - (min / max).powf(shape));
    min / (1.0 - beyond).powf(1.0 / shape)
}
