//! Compares two kinds of runs in pairs that share a seed, so that the seed's effect on both is not
//! taken for a difference.

use crate::statistics::interval::mean_and_deviation;
use crate::statistics::student::{quantile, two_sided};
use crate::statistics::{LEVEL, ROUNDING, WORTH_NAMING};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PairedScale {
    /// By their ratio, on the log scale: all values are positive.
    Ratio,
    /// By their difference: a value is zero.
    Difference,
    /// By which of the two is larger: an event did not occur.
    Order,
}

/// Comparison of two kinds of runs in pairs of the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Paired {
    /// Number of seeds that both kinds have.
    pub pairs: usize,
    /// Number of pairs in which the first value is larger.
    pub more: usize,
    /// Number of pairs in which it is smaller.
    pub less: usize,
    /// Meaning of `estimate`.
    pub scale: PairedScale,
    /// Geometric mean of the ratios, first over second, or mean of the
    /// differences, first minus second; null if only the order is known.
    pub estimate: Option<f64>,
    /// Lower end of its 95 % interval, or of the wider one that agrees with
    /// `p_corrected`; null below two pairs.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Spread of the pairs: standard deviation of the logarithm of their
    /// ratios, or that of the differences over the mean of all values; null
    /// below two pairs, without spread, and if only the order is known.
    pub spread: Option<f64>,
    /// Mean of all values of both kinds, which differences are relative to; null
    /// if only the order is known.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Probability that chance alone causes such a difference (p-value); null
    /// below two pairs.
    pub p_value: Option<f64>,
    /// The same, corrected for all comparisons made together (Holm); below 0.05
    /// the two kinds differ.
    pub p_corrected: Option<f64>,
}

impl Paired {
    /// Compares `(first, second)` of each seed; infinity means that the event never occurred.
    /// Returns `None` if there are no pairs.
    pub fn new(pairs: &[(f64, f64)]) -> Option<Paired> {
        let values = pairs.iter().flat_map(|(first, second)| [*first, *second]);
        let scale = if values.clone().any(f64::is_infinite) {
            PairedScale::Order
        } else if values.clone().all(|value| value > 0.0) {
            PairedScale::Ratio
        } else {
            PairedScale::Difference
        };
        let larger = |a: f64, b: f64| a > b && !same(a, b);
        let compared = Paired {
            pairs: pairs.len(),
            more: pairs.iter().filter(|(first, second)| larger(*first, *second)).count(),
            less: pairs.iter().filter(|(first, second)| larger(*second, *first)).count(),
            scale,
            estimate: None,
            low: None,
            high: None,
            spread: None,
            mean: None,
            p_value: None,
            p_corrected: None,
        };
        let mean_of_all = values.sum::<f64>() / (2 * pairs.len().max(1)) as f64;
        let mean = (scale != PairedScale::Order).then_some(mean_of_all);
        let compared = Paired { mean, ..compared };
        (!pairs.is_empty()).then(|| match scale {
            PairedScale::Order => compared.by_order(),
            PairedScale::Ratio => {
                let logs = pairs.iter().map(|(first, second)| (first / second).ln());
                compared.by_value(&logs.collect::<Vec<_>>(), 1.0, f64::exp)
            }
            PairedScale::Difference => {
                let differences = pairs.iter().map(|(first, second)| first - second);
                compared.by_value(&differences.collect::<Vec<_>>(), mean_of_all, |value| value)
            }
        })
    }

    /// Tests the differences of the pairs with Student's distribution.
    fn by_value(self, differences: &[f64], size: f64, back: fn(f64) -> f64) -> Paired {
        let (mean, deviation) = mean_and_deviation(differences);
        let estimate = Some(back(mean));
        if self.pairs < 2 {
            return Paired { estimate, ..self };
        }
        let error = deviation / (self.pairs as f64).sqrt();
        let half = quantile(LEVEL, self.pairs - 1) * error;
        let spread = if size == 0.0 { 0.0 } else { deviation / size };
        let spread = Some(spread).filter(|spread| *spread > ROUNDING);
        let p_value = match spread {
            Some(_) => two_sided(mean.abs() / error, self.pairs - 1),
            None if self.is_same() => 1.0,
            None => self.coincidence(),
        };
        Paired {
            estimate,
            low: Some(back(mean - half)),
            high: Some(back(mean + half)),
            spread,
            p_value: Some(p_value),
            ..self
        }
    }

    fn by_order(self) -> Paired {
        Paired { p_value: (self.pairs > 1).then(|| self.sign_test()), ..self }
    }

    /// Returns the probability that differences without any spread, such as those of small counts,
    /// are a coincidence. Two values of one kind differ by one particular amount in at most a
    /// quarter of cases; the probability that all of n pairs differ by it, or all by its opposite,
    /// is at most `2 / 4^n`.
    fn coincidence(&self) -> f64 {
        2.0 * 0.25_f64.powi(self.pairs as i32)
    }

    /// Returns the probability that this many coins fall at least as unevenly.
    fn sign_test(&self) -> f64 {
        let (coins, fewer) = (self.more + self.less, self.more.min(self.less));
        let mut ways = 0.5_f64.powi(coins as i32);
        let mut tail = ways;
        for fallen in 0..fewer {
            ways *= (coins - fallen) as f64 / (fallen + 1) as f64;
            tail += ways;
        }
        (2.0 * tail).min(1.0)
    }

    /// Sets the probability for runs in which nothing is random: any difference is real.
    pub fn without_chance(self) -> Paired {
        let differs = self.more + self.less > 0;
        Paired { p_value: Some(if differs { 0.0 } else { 1.0 }), ..self }
    }

    /// Returns whether no pair differs.
    pub fn is_same(&self) -> bool {
        self.more + self.less == 0
    }

    /// Returns whether the two kinds differ, corrected for all comparisons.
    pub fn differs(&self) -> bool {
        self.p_corrected.is_some_and(|p| p < LEVEL)
    }

    /// Returns whether the whole interval of the ratio is closer to 1 than [`WORTH_NAMING`].
    pub fn is_small(&self) -> bool {
        let small = |ratio: f64| ratio.ln().abs() < WORTH_NAMING;
        match (self.scale, self.estimate, self.low.zip(self.high)) {
            (PairedScale::Ratio, Some(ratio), None) => small(ratio),
            (PairedScale::Ratio, _, Some((low, high))) => small(low) && small(high),
            _ => false,
        }
    }

    /// Returns whether the first value is larger overall.
    pub fn first_is_more(&self) -> bool {
        match (self.scale, self.estimate) {
            (PairedScale::Ratio, Some(ratio)) => ratio > 1.0,
            (PairedScale::Difference, Some(difference)) => difference > 0.0,
            _ => self.more > self.less,
        }
    }

    /// Returns the same comparison in the other direction.
    pub fn reversed(&self) -> Paired {
        let turn = |value: f64| match self.scale {
            PairedScale::Ratio => 1.0 / value,
            _ => -value,
        };
        Paired {
            more: self.less,
            less: self.more,
            estimate: self.estimate.map(turn),
            low: self.high.map(turn),
            high: self.low.map(turn),
            ..*self
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b || a.is_finite() && b.is_finite() && (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

impl Paired {
    /// Multiplies the probability by the `factor` that corrects it for several comparisons, and
    /// widens the interval to match: it excludes equality if and only if the corrected probability
    /// is below 5 %.
    fn correct(&mut self, factor: f64) {
        self.p_corrected = self.p_value.map(|p| (p * factor).min(1.0));
        self.set_level(LEVEL / factor.max(1.0));
    }

    /// Replaces the interval by the one that misses the truth with probability `level`.
    pub(crate) fn set_level(&mut self, level: f64) {
        let (Some(spread), Some(estimate), Some(mean)) = (self.spread, self.estimate, self.mean)
        else {
            return;
        };
        let error = spread / (self.pairs as f64).sqrt();
        let half = quantile(level, self.pairs - 1) * error;
        let ends = match self.scale {
            PairedScale::Ratio => (estimate * (-half).exp(), estimate * half.exp()),
            _ => (estimate - half * mean, estimate + half * mean),
        };
        (self.low, self.high) = (Some(ends.0), Some(ends.1));
    }
}

/// Corrects comparisons that are made together, so that intervals and probabilities agree: n times
/// the probability, and the interval for the n-th part of 5 % (Bonferroni; Dunn, "Multiple
/// comparisons among means", Journal of the American Statistical Association 56, 1961). Comparisons
/// in which nothing differs do not count. Returns the number of comparisons.
pub fn simultaneous<'c>(comparisons: impl IntoIterator<Item = &'c mut Paired>) -> usize {
    let all: Vec<&mut Paired> = comparisons.into_iter().collect();
    let count = all.iter().filter(|compared| !compared.is_same()).count();
    for compared in all {
        compared.correct(count.max(1) as f64);
    }
    count
}

/// Corrects comparisons that are made together (Holm, "A simple sequentially rejective multiple
/// test procedure", Scandinavian Journal of Statistics 6, 1979): the k-th smallest of n p-values is
/// multiplied by `n + 1 - k`, and never below a smaller one. Each interval is widened until it
/// agrees with its probability. Comparisons in which nothing differs do not count. Returns the
/// number of comparisons.
pub fn holm<'c>(comparisons: impl IntoIterator<Item = &'c mut Paired>) -> usize {
    let (same, mut others): (Vec<_>, Vec<_>) =
        comparisons.into_iter().partition(|compared| compared.is_same());
    for compared in same {
        compared.p_corrected = compared.p_value;
    }
    others.retain(|compared| compared.p_value.is_some());
    others.sort_by(|a, b| a.p_value.unwrap_or(1.0).total_cmp(&b.p_value.unwrap_or(1.0)));
    let count = others.len();
    let mut largest: f64 = 0.0;
    for (rank, compared) in others.into_iter().enumerate() {
        let p = compared.p_value.unwrap_or(1.0);
        largest = largest.max(p * (count - rank) as f64);
        compared.correct(if p > 0.0 { largest / p } else { (count - rank) as f64 });
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's own example of pairs (Biometrika 6, 1908): hours of sleep that two drugs added for
    /// ten patients. The difference is 1.58, t = 4.0621.
    #[test]
    fn students_sleep() {
        let first = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let second = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let compared = Paired::new(&pairs).unwrap();
        assert_eq!((compared.more, compared.less, compared.scale), (9, 0, PairedScale::Difference));
        assert!((compared.estimate.unwrap() - 1.58).abs() < 1e-12);
        assert!((compared.p_value.unwrap() - 0.002833).abs() < 1e-6);
        assert!((compared.low.unwrap() - 0.7001).abs() < 1e-4);
        assert!((compared.high.unwrap() - 2.4599).abs() < 1e-4);
    }

    /// The effect of a seed on both sides cancels: the ratio is 0.86 in each pair, although the
    /// values spread over a decade.
    #[test]
    fn what_a_seed_does_to_both_cancels() {
        let pairs = [(0.86, 1.0), (1.73, 2.0), (4.28, 5.0), (8.62, 10.0)];
        let compared = Paired::new(&pairs).unwrap();
        let (low, high) = (compared.low.unwrap(), compared.high.unwrap());
        assert!(0.84 < low && low < 0.86 && 0.86 < high && high < 0.88, "{low} to {high}");
        let turned = compared.reversed();
        assert!((turned.low.unwrap() * high - 1.0).abs() < 1e-12);
        assert_eq!((turned.more, turned.less), (4, 0));
    }

    /// Equal differences are not certain: if values are 3 or 4 by the toss of a coin, three pairs
    /// are all 4 and 3, or all 3 and 4, in one of 32 cases.
    #[test]
    fn equal_differences_may_be_a_coincidence() {
        let three = Paired::new(&[(4.0, 3.0); 3]).unwrap();
        assert_eq!((three.p_value, three.spread), (Some(1.0 / 32.0), None));
        assert_eq!(three.without_chance().p_value, Some(0.0));
        let zeros = Paired::new(&[(0.0, 0.0); 3]).unwrap();
        assert_eq!((zeros.p_value, zeros.is_same()), (Some(1.0), true));
    }

    #[test]
    fn never_is_more_than_any_time() {
        let never = f64::INFINITY;
        let pairs = [(never, 3.0), (never, 4.0), (9.0, 4.0), (never, never), (never, 2.0)];
        let compared = Paired::new(&pairs).unwrap();
        assert_eq!((compared.more, compared.less, compared.estimate), (4, 0, None));
        assert_eq!(compared.p_value, Some(0.125));
        assert!(compared.first_is_more());
    }

    #[test]
    fn one_pair_has_a_ratio_and_no_more() {
        let one = Paired::new(&[(3.0, 2.0)]).unwrap();
        assert_eq!(
            (one.estimate.map(|ratio| (ratio * 1e9).round()), one.p_value),
            (Some(1.5e9), None)
        );
        assert!(Paired::new(&[]).is_none() && !one.differs());
    }

    /// Holm's procedure by hand: 0.01 times four, 0.02 times three, 0.03 times two; a corrected
    /// value must not be below the one before it.
    #[test]
    fn holm_corrects_by_rank() {
        let with = |p: f64| Paired { p_value: Some(p), ..Paired::new(&[(2.0, 1.0); 2]).unwrap() };
        let mut all = [with(0.02), with(0.01), with(0.04), with(0.03)];
        let mut same = Paired::new(&[(1.0, 1.0); 2]).unwrap();
        assert_eq!(holm(all.iter_mut().chain([&mut same])), 4);
        let corrected = all.map(|one| (one.p_corrected.unwrap() * 1e4).round());
        assert_eq!(corrected, [600.0, 400.0, 600.0, 600.0]);
        assert_eq!(same.p_corrected, Some(1.0));
    }
}
