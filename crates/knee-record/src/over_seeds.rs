//! Outcomes of a claim over several seeds.

use crate::claims::{ClaimOutcome, Outcome, decided};
use crate::print::Unit;
use knee_scenario::Claim;
use knee_units::statistics::{Interval, Paired};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results of several seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverSeeds {
    /// Value of each seed, in the claim's unit; null if the event did not
    /// occur.
    pub values: Vec<Option<f64>>,
    /// Lower end of the 95 % interval of their mean; null if the event did not
    /// occur with one of them.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// Combines the outcomes of a claim over several seeds, at least one: by the interval of the mean of
/// its values; for ratios, which are taken seed by seed, by that of the geometric mean. It is not
/// tested if one of them is not.
///
/// # Panics
/// There is no outcome.
pub fn over_seeds(claim: &Claim, mut outcomes: Vec<ClaimOutcome>) -> ClaimOutcome {
    match outcomes.len() {
        1 => outcomes.swap_remove(0),
        _ => together(claim, outcomes),
    }
}

fn together(claim: &Claim, mut outcomes: Vec<ClaimOutcome>) -> ClaimOutcome {
    let untested = |one: &ClaimOutcome| one.outcome == Outcome::NotTestedHere;
    if let Some(at) = outcomes.iter().position(untested) {
        return outcomes.swap_remove(at);
    }
    let values: Vec<Option<f64>> = outcomes.iter().map(|one| one.measured).collect();
    let known: Option<Vec<f64>> = values.iter().copied().collect();
    let count = outcomes.len();
    let alike = outcomes.iter().all(|one| one.outcome == outcomes[0].outcome);
    let mut all = ClaimOutcome { interval: None, ..outcomes.swap_remove(0) };
    let mean = known.and_then(|known| mean(&known, all.unit == Unit::Ratio));
    if let Some((mean, low, high)) = mean {
        all.measured = Some(mean);
        all.outcome = decided((claim.at_least, claim.at_most), (low, high));
        let [mean, low, high] = [mean, low, high].map(|value| all.unit.show(value));
        all.measured_text = format!("{mean} (95 %: {low} to {high}; {count} seeds)");
    } else {
        let never = values.iter().filter(|value| value.is_none()).count();
        all.measured = None;
        all.measured_text = format!("never in {never} of {count} seeds");
        all.outcome = if alike { all.outcome } else { Outcome::Uncertain };
    }
    all.agrees = all.outcome == all.recorded;
    let ends = mean.map(|(_, low, high)| (low, high)).unzip();
    all.seeds = Some(OverSeeds { values, low: ends.0, high: ends.1 });
    all
}

/// Returns the mean of several values with its 95 % interval; for positive ratios, the geometric
/// mean.
fn mean(values: &[f64], ratios: bool) -> Option<(f64, f64, f64)> {
    if ratios && values.iter().all(|value| *value > 0.0) {
        let against_one: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        let paired = Paired::new(&against_one)?;
        return Some((paired.estimate?, paired.low?, paired.high?));
    }
    let interval = Interval::new(values)?;
    Some((interval.mean, interval.low?, interval.high?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 4: the geometric mean is 2 and s of the logarithms is ln 2, so the ends of the
    /// interval are 2 times and 2 divided by 2^(4.3027 / sqrt 3).
    #[test]
    fn ratios_have_a_geometric_mean() {
        let (middle, low, high) = mean(&[1.0, 2.0, 4.0], true).unwrap();
        let factor = 2f64.powf(4.3027 / 3f64.sqrt());
        assert!((middle - 2.0).abs() < 1e-9, "{middle}");
        assert!((low * factor - 2.0).abs() < 1e-3, "{low}");
        assert!((high / factor - 2.0).abs() < 1e-3, "{high}");
    }

    #[test]
    fn other_values_have_an_arithmetic_one() {
        let (middle, low, high) = mean(&[1.0, 2.0, 6.0], false).unwrap();
        assert_eq!(middle, 3.0);
        assert!(low < 3.0 && 3.0 < high, "{low} {high}");
        assert_eq!(mean(&[1.0], false), None, "one seed has no interval");
    }
}
