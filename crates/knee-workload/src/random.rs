//! Draws from an application's random stream.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::f64::consts::TAU;

/// Uniform in `[0, 1)`, a multiple of 2^-53.
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Uniform in `0..count`.
pub(crate) fn below(rng: &mut ChaCha8Rng, count: usize) -> usize {
    ((u128::from(rng.next_u64()) * count as u128) >> 64) as usize
}

/// Exponential with mean one, by inversion.
pub(crate) fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    // One less a number below one is never zero, so the logarithm is finite.
    -(1.0 - unit(rng)).ln()
}

/// Standard normal (Box and Muller 1958). The second of the pair is not kept,
/// so that a draw depends on nothing but the stream's position.
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * (TAU * unit(rng)).cos()
}
