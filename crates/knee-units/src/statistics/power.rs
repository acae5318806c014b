//! The number of repeats that a comparison needs.

use crate::statistics::student::quantile;
use crate::statistics::{LEVEL, Paired, PairedScale};

/// Largest number of repeats advised.
const REPEATS_MAX: u64 = 10_000;
/// Probability of deciding.
const POWER: f64 = 0.8;

/// Advises how many repeats decide a comparison in 80 % of cases, by a test of a given level.
#[derive(Clone, Debug)]
pub struct Advice {
    level: f64,
    /// Numbers of repeats, ascending, each with the largest spread of pairs, over the size of the
    /// difference, for which it suffices.
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
            (repeats as f64).sqrt() / both
        };
        let numbers = numbers.take_while(|repeats| *repeats <= REPEATS_MAX);
        Advice { level, spreads: numbers.map(|repeats| (repeats, spread(repeats))).collect() }
    }

    /// Creates advice for this many comparisons that are corrected together.
    pub fn together(comparisons: usize) -> Advice {
        Advice::new(LEVEL / comparisons.max(1) as f64)
    }

    /// Returns the repeats that decide a comparison if the difference is as large as it seems: they
    /// show that there is one, or, if it seems smaller than `margin`, that any difference is
    /// smaller. `None` if more than 10,000 are needed, or if that is unknown.
    pub fn to_decide(&self, compared: &Paired, margin: f64) -> Option<u64> {
        if compared.pairs < 2 {
            return None;
        }
        match (compared.scale, compared.spread) {
            (PairedScale::Order, _) => self.unanimous(compared),
            (_, None) => self.first_below(0.25),
            (_, Some(spread)) => {
                let size = compared.relative(compared.estimate)?.abs();
                let margin = compared.on_scale(margin);
                let size = if size > margin { size } else { margin - size };
                self.repeats(spread / size, compared.pairs)
            }
        }
    }

    /// Returns the repeats for a sign test if all pairs point in one direction.
    fn unanimous(&self, compared: &Paired) -> Option<u64> {
        let one_way = compared.more.min(compared.less) == 0 && !compared.is_same();
        one_way.then(|| self.first_below(0.5))?
    }

    /// Returns the repeats after which all pairs agreeing by chance, each with this probability,
    /// is significant.
    fn first_below(&self, chance: f64) -> Option<u64> {
        (2..=REPEATS_MAX).find(|pairs| 2.0 * chance.powf(*pairs as f64) < self.level)
    }

    /// Returns the repeats needed if `pairs` pairs of runs have the spread `spread`, the standard
    /// deviation of their differences over the size of the difference to decide. `None` if nothing
    /// is known of the spread, or if more than 10,000 are needed.
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
            let found = advice.repeats(spread / 1.05_f64.ln(), 1_000_001).unwrap();
            assert!((normal..=normal * 21 / 20 + 3).contains(&found), "{spread}: {found}");
        }
        assert_eq!(advice.repeats(0.0, 3), Some(2));
    }

    #[test]
    fn few_pairs_and_strict_levels_ask_for_more() {
        let needed = |pairs, level| Advice::new(level).repeats(1.0, pairs).unwrap();
        assert!(needed(3, 0.05) > needed(10, 0.05));
        assert!(needed(10, 0.001) > needed(10, 0.05));
        assert_eq!(Advice::new(0.05).repeats(1.0, 1), None);
        assert_eq!(Advice::new(0.05).repeats(1000.0, 5), None);
    }

    /// Five pairs, 10 % apart with a spread of 20 %; and 0.2 % apart with one of 1 %, which are
    /// alike once the interval is within 0.8 %.
    #[test]
    fn repeats_depend_on_the_size_seen() {
        let advice = Advice::new(0.05);
        let noise = [1.0_f64, -1.0, 0.5, -0.5, 0.0];
        let deviation = (2.5_f64 / 4.0).sqrt();
        let pairs = |ratio: f64, spread: f64| {
            let pair = |noise: f64| (ratio * (spread * noise / deviation).exp(), 1.0);
            Paired::new(&noise.map(pair)).unwrap()
        };
        let needed = |ratio: f64, spread: f64| advice.to_decide(&pairs(ratio, spread), 0.01);
        assert_eq!(needed(1.1, 0.2), advice.repeats(0.2 / 1.1_f64.ln(), 5));
        let none = 1.01_f64.ln() - 1.002_f64.ln();
        assert_eq!(needed(1.002, 0.01), advice.repeats(0.01 / none, 5));
        assert!(needed(1.2, 0.2) < needed(1.1, 0.2));
        assert_eq!(needed(1.0099, 0.2), None, "close to the margin nothing decides");
    }

    /// `2 / 2^6` and `2 / 4^3` are the first below 5 %.
    #[test]
    fn orders_and_equal_differences_need_enough_pairs() {
        let advice = Advice::new(0.05);
        let never = Paired::new(&[(f64::INFINITY, 1.0); 3]).unwrap();
        assert_eq!(advice.to_decide(&never, 0.01), Some(6));
        let equal = Paired::new(&[(4.0, 3.0); 2]).unwrap();
        assert_eq!(advice.to_decide(&equal, 0.01), Some(3));
        assert_eq!(advice.to_decide(&Paired::new(&[(4.0, 3.0)]).unwrap(), 0.01), None);
    }
}
