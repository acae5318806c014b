//! Draws from a link's random stream.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// True with `probability`; draws nothing when the outcome is certain.
pub(crate) fn chance(rng: &mut ChaCha8Rng, probability: f64) -> bool {
    if probability <= 0.0 || probability >= 1.0 {
        return probability >= 1.0;
    }
    unit(rng) < probability
}

/// Uniform in `[0, 1)`, a multiple of 2^-53.
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Uniform in `0..=largest`.
pub(crate) fn up_to(rng: &mut ChaCha8Rng, largest: u64) -> u64 {
    let range = u128::from(largest) + 1;
    ((u128::from(rng.next_u64()) * range) >> 64) as u64
}
