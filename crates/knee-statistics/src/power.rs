//! The number of repeats that a comparison needs.

use crate::student::quantile;

/// Relative difference for which repeats are advised.
pub const WORTH_SEEING: f64 = 0.05;
/// Largest number of repeats advised.
const REPEATS_MAX: u64 = 10_000;
/// Probability of finding such a difference.
const POWER: f64 = 0.8;

/// Advises how many repeats find a relative difference of [`WORTH_SEEING`] in 80 % of cases, by a
/// test of a given level.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Numbers of repeats, ascending, each with the largest spread of pairs for which it suffices.
    spreads: Vec<(u64, f64)>,
}

impl Advice {
    /// Creates advice for tests of this `level`. Beyond twenty, the number of repeats grows in
    /// steps of a twentieth.
    pub fn new(level: f64) -> Advice {
        let next = |repeats: &u64| Some(repeats + (repeats / 20).max(1));
        let numbers = std::iter::successors(Some(2), next);
        let spread = |repeats: u64| {
            let freedom = (repeats - 1) as usize;
            let both = quantile(level, freedom) + quantile(2.0 * (1.0 - POWER), freedom);
            (1.0 + WORTH_SEEING).ln() * (repeats as f64).sqrt() / both
        };
        let numbers = numbers.take_while(|repeats| *repeats <= REPEATS_MAX);
        Advice { spreads: numbers.map(|repeats| (repeats, spread(repeats))).collect() }
    }

    /// Returns the repeats needed if `pairs` pairs of runs have the spread `spread`, the standard
    /// deviation of the logarithm of their ratio. `None` if nothing is known of the spread, or if
    /// more than 10,000 are needed.
    ///
    /// The spread of a few pairs is itself uncertain, so the upper end of its one-sided 80 %
    /// interval is used (Browne, "On the use of a pilot sample for sample size determination",
    /// Statistics in Medicine 14, 1995).
    pub fn repeats(&self, spread: f64, pairs: usize) -> Option<u64> {
        let freedom = pairs.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
        let spread = spread * (freedom / chi_squared_lower_fifth(freedom)).sqrt();
        let enough = self.spreads.iter().find(|(_, most)| spread <= *most);
        enough.map(|(repeats, _)| *repeats)
    }
}

/// Returns the 0.2 quantile of the chi-squared distribution by Wilson and Hilferty's cube. It is
/// too low by a seventh with one degree of freedom, which errs towards more repeats, and within a
/// hundredth from three on.
fn chi_squared_lower_fifth(freedom: f64) -> f64 {
    let ninth = 2.0 / (9.0 * freedom);
    freedom * (1.0 - ninth - 0.841_621 * ninth.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_squared_is_that_of_the_tables() {
        for (freedom, value) in [(3.0, 1.0052), (4.0, 1.6488), (9.0, 5.3801), (30.0, 23.364)] {
            let found = chi_squared_lower_fifth(freedom);
            assert!((found / value - 1.0).abs() < 0.012, "{freedom}: {found}, not {value}");
        }
    }

    /// With a spread that is practically known, the number is that of the normal distribution,
    /// `((1.960 + 0.842) s / ln 1.05)^2`, plus two, rounded up to the next step.
    #[test]
    fn a_known_spread_needs_the_number_of_the_textbooks() {
        let advice = Advice::new(0.05);
        for (spread, normal) in [(0.05, 9), (0.10, 33), (0.20, 132), (0.40, 528)] {
            let found = advice.repeats(spread, 1_000_001).unwrap();
            assert!((normal..=normal * 21 / 20 + 3).contains(&found), "{spread}: {found}");
        }
        assert_eq!(advice.repeats(0.0, 3), Some(2));
    }

    #[test]
    fn few_pairs_and_strict_levels_ask_for_more() {
        let needed = |pairs, level| Advice::new(level).repeats(0.05, pairs).unwrap();
        assert!(needed(3, 0.05) > needed(10, 0.05));
        assert!(needed(10, 0.001) > needed(10, 0.05));
        assert_eq!(Advice::new(0.05).repeats(0.05, 1), None);
        assert_eq!(Advice::new(0.05).repeats(50.0, 5), None);
    }
}
