//! Compares two runs number by number.

use crate::Summary;
use crate::repeat::equal_but_for_the_seed;
use knee_units::statistics::{Advice, Better, Judgement, Paired, WORTH_NAMING, holm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of a comparison.
pub const SCHEMA: &str = "knee-comparison/1";

/// Differences between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `knee-comparison/1`.
    pub schema: String,
    /// The run compared against.
    pub before: RunIdentity,
    /// The other run.
    pub after: RunIdentity,
    /// Number of seeds that both share, if there are several: the numbers below
    /// are then means over them, compared in pairs. Zero for one run each.
    #[serde(default)]
    pub pairs: usize,
    /// Count of numbers that differ in some pair, for which the probabilities
    /// are corrected together.
    #[serde(default)]
    pub comparisons: usize,
    /// Numbers that both runs have, in the order of the summary.
    pub differences: Vec<Difference>,
    /// Names of the numbers that only the first has.
    pub only_before: Vec<String>,
    /// Names of the numbers that only the other has.
    pub only_after: Vec<String>,
}

/// Identification of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunIdentity {
    /// Title of the scenario.
    pub name: String,
    /// Ground of the run.
    pub ground: String,
    /// Seed of the run.
    pub seed: u64,
}

/// One number in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its name: `flow.bbr[1].rtt_us.p50`.
    pub measure: String,
    /// Value in the first run.
    pub before: f64,
    /// Value in the other run.
    pub after: f64,
    /// `after - before`.
    pub absolute: f64,
    /// `(after - before) / |before|`; null if that is zero.
    pub relative: Option<f64>,
    /// Comparison of the pairs; null with one run each.
    #[serde(default)]
    pub compared: Option<Paired>,
    /// Repeats that would decide a difference of the size seen in 80 % of cases;
    /// null if it is decided, or if that is unknown.
    #[serde(default)]
    pub repeats_advised: Option<u64>,
}

impl Comparison {
    /// Compares two summaries. Flows and links are matched by name.
    pub fn new(before: &Summary, after: &Summary) -> Comparison {
        let first = before.numbers();
        let second = after.numbers();
        let known: BTreeMap<&str, f64> = by_name(&second);
        let differences = first.iter().filter_map(|(name, before)| {
            let after = known.get(name.as_str())?;
            Some(Difference::new(name, *before, *after))
        });
        Comparison {
            schema: SCHEMA.to_string(),
            before: RunIdentity::of(before),
            after: RunIdentity::of(after),
            pairs: 0,
            comparisons: 0,
            differences: differences.collect(),
            only_before: missing(&first, &known),
            only_after: missing(&second, &by_name(&first)),
        }
    }
}

impl Comparison {
    /// Compares repeats, each with the one of the same seed. Returns `None` if the two share fewer
    /// than two seeds.
    pub fn of_repeats(before: &[Summary], after: &[Summary]) -> Option<Comparison> {
        let partner = |run: &Summary| after.iter().find(|other| other.seed == run.seed);
        let pairs: Vec<Comparison> =
            before.iter().filter_map(|run| Some(Comparison::new(run, partner(run)?))).collect();
        let mut whole = pairs.first().filter(|_| pairs.len() > 1)?.clone();
        whole.pairs = pairs.len();
        for (at, difference) in whole.differences.iter_mut().enumerate() {
            let same = |pair: &Comparison| {
                let there = pair.differences.get(at).filter(|d| d.measure == difference.measure);
                let found = || pair.differences.iter().find(|d| d.measure == difference.measure);
                there.or_else(found).map(|found| (found.before, found.after))
            };
            let values: Vec<(f64, f64)> = pairs.iter().filter_map(same).collect();
            difference.gather(&values);
        }
        if nothing_is_random(before) && nothing_is_random(after) {
            for compared in whole.differences.iter_mut().filter_map(|one| one.compared.as_mut()) {
                *compared = compared.without_chance();
            }
        }
        let compared = whole.differences.iter_mut().filter_map(|one| one.compared.as_mut());
        whole.comparisons = holm(compared);
        let advice = Advice::together(whole.comparisons);
        for difference in &mut whole.differences {
            let open =
                difference.compared.filter(|_| difference.word() == Some(Judgement::Undecided));
            difference.repeats_advised =
                open.and_then(|pairs| advice.to_decide(&pairs, WORTH_NAMING));
        }
        Some(whole)
    }
}

/// Returns whether the seed changes nothing, and no result depends on a phase.
fn nothing_is_random(runs: &[Summary]) -> bool {
    let lockstep = runs.iter().any(|run| run.lockstep.is_some());
    !lockstep
        && runs.len() > 1
        && runs.windows(2).all(|pair| equal_but_for_the_seed(&pair[0], &pair[1]))
}

fn by_name(numbers: &[(String, f64)]) -> BTreeMap<&str, f64> {
    let numbers = numbers.iter();
    numbers.map(|(name, value)| (name.as_str(), *value)).collect()
}

fn missing(numbers: &[(String, f64)], other: &BTreeMap<&str, f64>) -> Vec<String> {
    let names = numbers.iter().map(|(name, _)| name);
    names.filter(|name| !other.contains_key(name.as_str())).cloned().collect()
}

impl RunIdentity {
    fn of(summary: &Summary) -> RunIdentity {
        RunIdentity {
            name: summary.name.clone(),
            ground: summary.ground.clone(),
            seed: summary.seed,
        }
    }
}

impl Difference {
    /// Returns how the pairs compare, more being better; `None` with one run each.
    pub fn word(&self) -> Option<Judgement> {
        self.compared.map(|pairs| pairs.judge(Better::More, WORTH_NAMING))
    }

    /// Replaces both values with their means over all pairs.
    fn gather(&mut self, values: &[(f64, f64)]) {
        let mean = |of: fn(&(f64, f64)) -> f64| {
            values.iter().map(of).sum::<f64>() / values.len().max(1) as f64
        };
        let means = Difference::new(&self.measure, mean(|pair| pair.0), mean(|pair| pair.1));
        // Swapped, because the change is the second value over the first.
        let turned: Vec<(f64, f64)> =
            values.iter().map(|(before, after)| (*after, *before)).collect();
        *self = Difference { compared: Paired::new(&turned), ..means };
    }

    fn new(measure: &str, before: f64, after: f64) -> Difference {
        let absolute = after - before;
        Difference {
            measure: measure.to_string(),
            before,
            after,
            absolute,
            relative: (before != 0.0).then(|| absolute / before.abs()),
            compared: None,
            repeats_advised: None,
        }
    }
}
