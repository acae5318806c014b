//! Repeats of a scenario with other seeds: mean, median and an interval.

use crate::claims::decided;
use crate::{ClaimOutcome, Interval, Outcome, Summary, Unit, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of a summary of repeats.
pub const SCHEMA: &str = "knee-repeat/1";

/// Result of several runs that differ only in their seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatSummary {
    /// `knee-repeat/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// Ground of the runs.
    pub ground: String,
    /// Seed of each run.
    pub seeds: Vec<u64>,
    /// Seeds of the runs that were invalid or interrupted. They are left out of
    /// measures and claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u64>,
    /// The worst verdict among the runs.
    pub verdict: Verdict,
    /// Whether the results differ between seeds. If false, nothing that the
    /// seed draws affects the results, and no number has an interval.
    #[serde(default = "yes")]
    pub differ: bool,
    /// Link that equal senders share in lockstep, so that the result may depend on
    /// their phase. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockstep: Option<String>,
    /// Seeds of the runs in which a flow stalled. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<u64>,
    /// Every number of the summaries, by name, such as
    /// `flow.bbr[0].rtt_us.p50`.
    pub measures: BTreeMap<String, Interval>,
    /// Outcome of each claim over the runs.
    pub claims: Vec<ClaimTally>,
}

/// Outcome of a claim over repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimTally {
    /// Short name.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// Runs in which it holds.
    pub holds: usize,
    /// Runs in which it fails.
    pub fails: usize,
    /// Runs in which its interval crosses a bound.
    #[serde(default)]
    pub uncertain: usize,
    /// Runs in which it was not tested.
    pub not_tested: usize,
    /// The bounds in words.
    #[serde(default)]
    pub expected: String,
    /// Measured value over the runs; null if a run has no value, or if the
    /// event did not occur in one.
    #[serde(default)]
    pub measured: Option<Interval>,
    /// Unit of the measured value.
    pub unit: Unit,
    /// Outcome of the claim over all runs, by the interval of their mean.
    pub outcome: Outcome,
    /// Seeds of the runs whose outcome is not the recorded one, or whose value has
    /// drifted from it; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_as_recorded: Vec<u64>,
}

impl RepeatSummary {
    /// Summarises runs of the same scenario; `None` if there are none.
    pub fn new(runs: &[Summary]) -> Option<RepeatSummary> {
        let first = runs.first()?;
        let (used, others): (Vec<&Summary>, Vec<&Summary>) =
            runs.iter().partition(|run| run.is_evidence());
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in used.iter().flat_map(|run| run.numbers()) {
            values.entry(name).or_default().push(value);
        }
        let differ = used.len() < 2 || used.iter().any(|run| !equal_but_for_the_seed(run, used[0]));
        let intervals = values.into_iter().filter_map(|(name, all)| {
            let interval = match is_bounded(&name) {
                true => Interval::of_parts(&all),
                false => Interval::new(&all),
            }?;
            let without = Interval { low: None, high: None, ..interval };
            Some((name, if differ { interval } else { without }))
        });
        Some(RepeatSummary {
            schema: SCHEMA.to_string(),
            name: first.name.clone(),
            ground: first.ground.clone(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            left_out: others.iter().map(|run| run.seed).collect(),
            verdict: Verdict::worst(runs.iter().map(|run| run.verdict)),
            differ,
            lockstep: first.lockstep.clone(),
            stalled: {
                let stalled = used.iter().filter(|run| !run.stalled.is_empty());
                stalled.map(|run| run.seed).collect()
            },
            measures: intervals.collect(),
            claims: (0..first.claims.len()).map(|at| tally(first, &used, at)).collect(),
        })
    }

    /// Number of runs that measures and claims are based on.
    pub fn used(&self) -> usize {
        self.seeds.len() - self.left_out.len().min(self.seeds.len())
    }

    /// Says in how many runs a flow stalled; `None` if in none.
    pub fn stalled_words(&self) -> Option<String> {
        let seed = self.stalled.first()?;
        let runs = format!("{} of {} runs", self.stalled.len(), self.used());
        Some(format!(
            "in {runs} a flow sent for ten timeouts and nothing arrived in order; one has seed {seed}"
        ))
    }

    /// Says which claims are not as on record, and with which seeds: one line for each.
    pub fn differing_claims(&self) -> Vec<String> {
        let differ = self.claims.iter().filter(|claim| !claim.not_as_recorded.is_empty());
        let line = |claim: &ClaimTally| {
            let about = if claim.id.is_empty() { &claim.says } else { &claim.id };
            let seeds: Vec<String> = claim.not_as_recorded.iter().map(u64::to_string).collect();
            let seeds = match seeds.len() {
                1 => format!("seed {}", seeds[0]),
                _ => format!("seeds {}", seeds.join(", ")),
            };
            format!("{about} is not as on record with {seeds}.")
        };
        differ.map(line).collect()
    }

    /// In how many of the runs a number has a value; `None` if in all.
    pub fn partial(&self, interval: &Interval) -> Option<String> {
        (interval.runs < self.used()).then(|| format!("{} of {}", interval.runs, self.used()))
    }

    /// Says which runs were left out, if any.
    pub fn left_out_words(&self) -> Option<String> {
        let seeds: Vec<String> = self.left_out.iter().map(u64::to_string).collect();
        let (runs, of) = match seeds.len() {
            0 => return None,
            1 => ("run is", "seed"),
            _ => ("runs are", "seeds"),
        };
        Some(format!(
            "{} {runs} left out, being invalid or interrupted: {of} {}.",
            seeds.len(),
            seeds.join(", ")
        ))
    }
}

/// Returns whether a number of a summary is between 0 and 1: a fraction, or Jain's index.
fn is_bounded(name: &str) -> bool {
    let field = name.rsplit('.').next().unwrap_or(name);
    let is_ratio = field.starts_with("retransmit_ratio") || field.ends_with("_ratio");
    is_ratio || ["jain", "share", "capacity_share", "utilisation"].contains(&field)
}

fn yes() -> bool {
    true
}

/// Returns whether two runs gave the same results.
pub(crate) fn equal_but_for_the_seed(run: &Summary, other: &Summary) -> bool {
    Summary { seed: other.seed, ..run.clone() } == *other
}

fn tally(first: &Summary, runs: &[&Summary], at: usize) -> ClaimTally {
    let claim = &first.claims[at];
    let claims: Vec<&ClaimOutcome> = runs.iter().filter_map(|run| run.claims.get(at)).collect();
    let values: Option<Vec<f64>> = claims.iter().map(|claim| claim.measured).collect();
    let measured = values.and_then(|values| Interval::new(&values));
    let ended = |outcome| claims.iter().filter(|claim| claim.outcome == outcome).count();
    ClaimTally {
        id: claim.id.clone(),
        says: claim.says.clone(),
        holds: ended(Outcome::Holds),
        fails: ended(Outcome::Fails),
        uncertain: ended(Outcome::Uncertain),
        not_tested: ended(Outcome::NotTestedHere),
        expected: claim.expected.clone(),
        measured,
        unit: claim.unit,
        outcome: overall(&claims, measured),
        not_as_recorded: {
            let differs = |run: &&&Summary| run.claims.get(at).is_some_and(|one| !one.agrees);
            runs.iter().filter(differs).map(|run| run.seed).collect()
        },
    }
}

/// Judges by the interval of the measured values; without one, by the outcome that all runs share.
fn overall(claims: &[&ClaimOutcome], measured: Option<Interval>) -> Outcome {
    let Some(first) = claims.first() else { return Outcome::NotTestedHere };
    match measured.and_then(|interval| interval.low.zip(interval.high)) {
        Some((low, high)) => decided((first.at_least, first.at_most), (low, high)),
        None if claims.iter().all(|claim| claim.outcome == first.outcome) => first.outcome,
        None => Outcome::Uncertain,
    }
}
