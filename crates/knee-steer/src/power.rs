//! Power of an e-process: how small an effect an experiment can see.

use crate::evidence::{LAMBDAS, payoff_ln};

/// 80 % quantile of the normal distribution: an effect is seen with at least this probability.
const POWER_QUANTILE: f64 = 0.8416;
/// Differences are averaged over this many standard deviations to either side, with this many
/// steps for each.
const DEVIATIONS: i32 = 5;
const STEPS: i32 = 6;
/// Halvings of the interval in which the effect is sought.
const HALVINGS: u32 = 40;

/// Returns the smallest effect that evidence of `triples` differences shows with a probability of
/// 0.8 or more, in their unit: it is reached if the e-value is at least `threshold`. The differences
/// vary by `deviation` about the effect, and `scale` is as in [`Evidence::new`](crate::Evidence::new).
/// `None` if not even the largest effect can be shown by so few, since each difference at most
/// doubles the evidence.
///
/// The logarithm of each stake's product is a sum of independent terms, nearly normal; the sum of
/// the 20 % quantiles of the products is compared with the threshold. A simulation finds effects of
/// this size with a probability of 0.81 to 0.89.
pub fn smallest_effect(scale: f64, deviation: f64, triples: usize, threshold: f64) -> Option<f64> {
    if (triples as f64) < threshold.log2() {
        return None;
    }
    let scale = scale.max(f64::MIN_POSITIVE);
    let spread = deviation / scale;
    let is_shown = |effect: f64| quantile(effect, spread, triples) >= threshold;
    // In units of the scale. With more than this, every payoff is two.
    let (mut low, mut high) = (0.0, 64.0 * (1.0 + spread));
    while !is_shown(high) {
        // Only doubling in every triple suffices.
        high *= 2.0;
        if high > 1e6 * (1.0 + spread) {
            return None;
        }
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_shown(middle) { high = middle } else { low = middle }
    }
    Some(high * scale)
}

/// The 20 % quantile of the e-value.
fn quantile(effect: f64, spread: f64, triples: usize) -> f64 {
    let count = triples as f64;
    let of_stake = |lambda: f64| {
        let (mut weights, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for step in -DEVIATIONS * STEPS..=DEVIATIONS * STEPS {
            let deviation = f64::from(step) / f64::from(STEPS);
            let weight = (-0.5 * deviation * deviation).exp();
            let gained = payoff_ln(lambda * (effect + spread * deviation));
            weights += weight;
            mean += weight * gained;
            squares += weight * gained * gained;
        }
        let mean = mean / weights;
        let variance = (squares / weights - mean * mean).max(0.0);
        (count * mean - POWER_QUANTILE * (count * variance).sqrt()).exp()
    };
    LAMBDAS.into_iter().map(of_stake).sum::<f64>() / LAMBDAS.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Evidence;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// Part of simulated experiments in which the evidence reaches the threshold at any time.
    fn found(effect: f64, scale: f64, deviation: f64, triples: usize, threshold: f64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut one = || {
            let mut evidence = Evidence::new(scale);
            (0..triples).any(|_| {
                evidence.push(effect + deviation * knee_units::random::normal(&mut rng));
                evidence.values()[0] >= threshold
            })
        };
        (0..600).filter(|_| one()).count() as f64 / 600.0
    }

    /// Four standard errors of 0.8 over 600 experiments: 0.065. Nearly half of the effect is seldom
    /// seen.
    #[test]
    fn simulated_experiments_show_the_smallest_effect_with_power_four_fifths() {
        for (scale, deviation) in [(1.0, 1.0), (0.1, 0.15), (3.0, 1.0)] {
            for (triples, threshold) in [(8, 40.0), (16, 160.0), (24, 100.0), (96, 400.0)] {
                let Some(effect) = smallest_effect(scale, deviation, triples, threshold) else {
                    assert_eq!((triples, threshold), (8, 400.0));
                    continue;
                };
                let power = |part| found(part * effect, scale, deviation, triples, threshold);
                let [whole, half] = [1.0, 0.4].map(power);
                assert!((0.735..0.95).contains(&whole), "{scale} {triples}: {whole} at {effect}");
                assert!(half < 0.5, "{scale} {triples}: {half} at {effect}");
            }
        }
    }

    #[test]
    fn too_few_triples_show_nothing() {
        assert_eq!(smallest_effect(1.0, 1.0, 6, 100.0), None);
        assert!(smallest_effect(1.0, 0.0, 7, 100.0).is_some());
        assert!(smallest_effect(0.0, 0.0, 24, 100.0).is_some_and(|effect| effect < 1e-9));
    }
}
