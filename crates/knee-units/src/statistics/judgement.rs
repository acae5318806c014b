//! The result of a comparison in one word.

use crate::statistics::{LEVEL, Paired, PairedScale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The larger one.
    More,
    /// The smaller one.
    Less,
}

/// How one alternative compares with another. Every command, page and file of Knee uses these
/// words, and no others.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Significantly better, and by more than the margin below which a difference counts as none.
    Better,
    /// Significantly worse, and by more than that margin.
    Worse,
    /// The whole interval lies within the margin.
    Alike,
    /// None of the three is shown: more repeats may decide.
    Undecided,
    /// The runs or blocks are too short, or too few, to compare anything.
    TooShort,
    /// A link is offered more than it carries, so that there is no steady state to compare.
    Overloaded,
    /// A side has no value.
    CouldNotBeTried,
}

impl Judgement {
    /// Returns the word as it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::Alike => "alike",
            Judgement::Undecided => "undecided",
            Judgement::TooShort => "too short",
            Judgement::Overloaded => "overloaded",
            Judgement::CouldNotBeTried => "could not be tried",
        }
    }

    /// Returns whether a difference is shown.
    pub fn differs(self) -> bool {
        matches!(self, Judgement::Better | Judgement::Worse)
    }

    /// Returns how the second side compares with the first.
    #[must_use]
    pub fn reversed(self) -> Judgement {
        match self {
            Judgement::Better => Judgement::Worse,
            Judgement::Worse => Judgement::Better,
            other => other,
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Paired {
    /// Judges the first side. Relative differences below `margin` (0.01: 1 %) count as none:
    ///
    /// * *alike*: no pair differs, or the whole interval lies within the margin;
    /// * *better*, *worse*: the difference is significant, and its estimate is beyond the margin;
    /// * *undecided*: everything else, such as a single pair.
    ///
    /// The margin applies to the ratio, in both directions (1 / 1.01 to 1.01), or to the difference
    /// over the mean of all values. Where only the order is known, any significant difference
    /// counts. Uses the corrected probability if there is one; the interval agrees with it.
    pub fn judge(&self, better: Better, margin: f64) -> Judgement {
        let Some(p) = self.p_corrected.or(self.p_value) else { return Judgement::Undecided };
        let margin = self.on_scale(margin);
        let within = |end: Option<f64>| end.is_some_and(|end| end.abs() <= margin);
        let beyond = |size: f64| size.abs() > margin;
        if self.is_same() || within(self.relative(self.low)) && within(self.relative(self.high)) {
            return Judgement::Alike;
        }
        match p < LEVEL && self.relative(self.estimate).is_none_or(beyond) {
            false => Judgement::Undecided,
            true if self.first_is_more() == (better == Better::More) => Judgement::Better,
            true => Judgement::Worse,
        }
    }

    /// Returns the size of the difference: the logarithm of the ratio, or the difference over the
    /// mean of all values, without the sign. `None` if only the order is known.
    pub fn size(&self) -> Option<f64> {
        self.relative(self.estimate).map(f64::abs)
    }

    /// Returns a value of `estimate`'s kind as a relative difference: the logarithm of a ratio, or a
    /// difference over the mean of all values.
    pub(crate) fn relative(&self, value: Option<f64>) -> Option<f64> {
        match self.scale {
            PairedScale::Ratio => value.map(f64::ln),
            PairedScale::Difference => Some(value? / self.mean.filter(|mean| *mean != 0.0)?.abs()),
            PairedScale::Order => None,
        }
    }

    /// Returns a relative difference on the scale of [`Paired::relative`].
    pub(crate) fn on_scale(&self, difference: f64) -> f64 {
        match self.scale {
            PairedScale::Ratio => difference.ln_1p(),
            _ => difference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::holm;

    fn judged(pairs: &[(f64, f64)], margin: f64) -> Judgement {
        Paired::new(pairs).unwrap().judge(Better::Less, margin)
    }

    /// Ratios of 2 within 1 %: t of two degrees of freedom is 4.303, so that the interval is
    /// 2 ± 2.5 %. Ratios of 0.5, 1 and 2 have an interval from 0.18 to 5.6.
    #[test]
    fn a_difference_is_significant_and_beyond_the_margin() {
        assert_eq!(judged(&[(2.0, 1.0), (1.98, 1.0), (2.02, 1.0)], 0.1), Judgement::Worse);
        assert_eq!(judged(&[(1.0, 2.0), (1.0, 1.98), (1.0, 2.02)], 0.1), Judgement::Better);
        assert_eq!(judged(&[(0.5, 1.0), (1.0, 1.0), (2.0, 1.0)], 0.1), Judgement::Undecided);
        assert_eq!(judged(&[(3.0, 2.0)], 0.1), Judgement::Undecided, "one pair");
    }

    /// Ratios of 1.05 within 0.1 % are alike by a margin of 10 %, different by one of 1 %. With a
    /// margin of 5 %, the interval crosses it.
    #[test]
    fn alike_means_that_the_interval_lies_within_the_margin() {
        let pairs = [(1.05, 1.0), (1.051, 1.0), (1.0491, 1.0)];
        assert_eq!(judged(&pairs, 0.10), Judgement::Alike);
        assert_eq!(judged(&pairs, 0.01), Judgement::Worse);
        assert_eq!(judged(&pairs, 0.0501), Judgement::Undecided);
        assert_eq!(judged(&[(3.0, 3.0), (4.0, 4.0)], 0.01), Judgement::Alike);
        assert_eq!(judged(&[(3.0, 3.0)], 0.01), Judgement::Undecided, "one pair");
    }

    /// A value is zero: differences count relative to the mean of all values, here 50.
    #[test]
    fn differences_are_relative_to_the_mean() {
        let pairs = [(0.0, 0.0), (75.2, 75.0), (75.0, 75.1)];
        assert_eq!(judged(&pairs, 0.01), Judgement::Alike);
        assert_eq!(judged(&pairs, 0.001), Judgement::Undecided);
        let more = [(0.0, 1.0), (0.0, 1.1), (0.0, 0.9)];
        assert_eq!(judged(&more, 0.01), Judgement::Better);
    }

    #[test]
    fn never_is_judged_by_the_order() {
        let never = f64::INFINITY;
        assert_eq!(judged(&[(never, 1.0); 6], 0.01), Judgement::Worse);
        assert_eq!(judged(&[(never, 1.0); 5], 0.01), Judgement::Undecided);
        assert_eq!(judged(&[(never, never); 5], 0.01), Judgement::Alike);
    }

    /// Words and intervals agree after the correction for several comparisons as well: a
    /// difference is significant if and only if its interval excludes equality.
    #[test]
    fn corrected_words_agree_with_their_intervals() {
        let noise = [0.3_f64, -0.9, 0.5, 1.1, -0.4, -0.6];
        let pairs = |ratio: f64| noise.map(|noise| (ratio * (0.01 * noise).exp(), 1.0));
        let ratios = [1.0, 1.005, 1.008, 1.009, 1.01, 1.011, 1.02, 1.03];
        let mut all = ratios.map(|ratio| Paired::new(&pairs(ratio)).unwrap());
        let uncorrected = all.iter().filter(|one| one.p_value.unwrap() < LEVEL).count();
        holm(all.iter_mut());
        let mut significant = 0;
        for one in all {
            let excludes = one.low.unwrap() > 1.0 || one.high.unwrap() < 1.0;
            assert_eq!(excludes, one.differs(), "{one:?}");
            significant += usize::from(excludes);
        }
        assert!(0 < significant && significant < uncorrected, "{significant} of {uncorrected}");
    }

    #[test]
    fn the_other_direction_has_the_opposite_word() {
        let compared = Paired::new(&[(2.0, 1.0), (1.98, 1.0), (2.02, 1.0)]).unwrap();
        let word = compared.judge(Better::More, 0.01);
        assert_eq!(compared.reversed().judge(Better::More, 0.01), word.reversed());
        assert_eq!(compared.judge(Better::Less, 0.01), word.reversed());
    }
}
