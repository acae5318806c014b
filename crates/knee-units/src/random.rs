//! Draws from the random stream of a link, an application or a check: each uses
//! the number of words given in its docs, on every host.
//!
//! What this module never does: create a stream, or keep state between two draws.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::f64::consts::TAU;

/// Returns a number uniform in `[0, 1)`, a multiple of 2^-53; uses one word of 64 bits.
#[inline]
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Returns true with `probability`; uses one word of 64 bits, or none if the
/// outcome is certain.
#[inline]
pub fn chance(rng: &mut ChaCha8Rng, probability: f64) -> bool {
    if probability <= 0.0 || probability >= 1.0 {
        return probability >= 1.0;
    }
    unit(rng) < probability
}

/// Returns a number uniform in `0..count`, zero if that is empty: the upper
/// half of a product (Lemire 2019, without rejection, so that each draw uses
/// one word of 64 bits; the bias is below `count` / 2^64).
pub fn below(rng: &mut ChaCha8Rng, count: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(count)) >> 64) as u64
}

/// Returns a number uniform in `0..=largest`, drawn in the same way as by [`below`].
pub fn up_to(rng: &mut ChaCha8Rng, largest: u64) -> u64 {
    let count = u128::from(largest) + 1;
    ((u128::from(rng.next_u64()) * count) >> 64) as u64
}

/// Returns an exponential number with mean one, by inversion; uses one word of 64 bits.
pub fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    // One less a number below one is never zero, so the logarithm is finite.
    -(1.0 - unit(rng)).ln()
}

/// Returns a standard normal number (Box and Muller 1958); uses two words of 64
/// bits. The second of the pair is not kept, so that a draw depends only on the
/// stream's position.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * (TAU * unit(rng)).cos()
}

/// Returns a log-normal number: `sigma` is the standard deviation of the
/// natural logarithm; uses two words of 64 bits.
pub fn log_normal(rng: &mut ChaCha8Rng, median: f64, sigma: f64) -> f64 {
    median * (sigma * normal(rng)).exp()
}

/// Returns a bounded Pareto number, by inversion of
/// `F(x) = (1 - (min/x)^shape) / (1 - (min/max)^shape)`; uses one word of 64 bits.
pub fn pareto(rng: &mut ChaCha8Rng, min: f64, shape: f64, max: f64) -> f64 {
    let beyond = unit(rng) * (1.0 - (min / max).powf(shape));
    min / (1.0 - beyond).powf(1.0 / shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    /// Returns the share of 100 000 draws that is at most `limit`.
    fn share(limit: f64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        (0..100_000).filter(|_| draw(&mut rng) <= limit).count() as f64 / 1e5
    }

    /// Four standard deviations of a share of 100 000 draws are at most 0.0064.
    fn assert_share(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.0064, "{found} for {wanted}");
    }

    /// Shares below some limits, compared with the distribution functions.
    #[test]
    fn draws_follow_their_distributions() {
        assert_share(share(0.3, unit), 0.3);
        assert_share(share(1.0, exponential), 1.0 - (-1.0_f64).exp());
        // Phi(1) from tables.
        assert_share(share(1.0, normal), 0.8413);
        assert_share(share(5.0, |rng| log_normal(rng, 5.0, 2.0)), 0.5);
        assert_share(share(5.0 * 2.0_f64.exp(), |rng| log_normal(rng, 5.0, 2.0)), 0.8413);
        let bounded = (1.0 - 0.25) / (1.0 - 0.0001);
        assert_share(share(2.0, |rng| pareto(rng, 1.0, 2.0, 100.0)), bounded);
        assert_share(share(0.5, |rng| f64::from(u8::from(!chance(rng, 0.2)))), 0.2);
    }

    /// Every number occurs, none outside the range.
    #[test]
    fn whole_numbers_keep_to_their_range() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut seen = [0; 4];
        for _ in 0..1000 {
            seen[below(&mut rng, 3) as usize] += 1;
            seen[up_to(&mut rng, 2) as usize] += 1;
        }
        assert!(seen[..3].iter().all(|count| *count > 500) && seen[3] == 0, "{seen:?}");
        assert_eq!(below(&mut rng, 0), 0);
        // Half of the draws are above the middle, even with the full range.
        let high = (0..1000).filter(|_| up_to(&mut rng, u64::MAX) > u64::MAX / 2).count();
        assert!((430..570).contains(&high), "{high}");
    }
}
