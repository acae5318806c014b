//! Claims: a sentence from a source against what was measured.

use crate::bootstrap::{RatioInterval, bootstrap_ratio};
use crate::measures::{NotMeasurable, measure, of_transfers, transfer_values};
use crate::print::Unit;
use crate::view::{RunView, Window};
use knee_scenario::Claim;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// Measured, within its bounds.
    #[serde(rename = "holds")]
    Holds,
    /// Measured, outside its bounds.
    #[serde(rename = "fails")]
    Fails,
    /// Not measured on this ground.
    #[serde(rename = "not tested here")]
    NotTestedHere,
}

impl From<knee_scenario::Outcome> for Outcome {
    fn from(outcome: knee_scenario::Outcome) -> Outcome {
        match outcome {
            knee_scenario::Outcome::Holds => Outcome::Holds,
            knee_scenario::Outcome::Fails => Outcome::Fails,
            knee_scenario::Outcome::NotTestedHere => Outcome::NotTestedHere,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "fails",
            Outcome::NotTestedHere => "not tested here",
        })
    }
}

/// A claim with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Short name, such as `A3`; can be empty.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// Flows, flow or link it speaks of; in a study with the run before it.
    pub of: String,
    /// The bounds in words: `at most 80 ms`.
    pub expected: String,
    /// Lower bound, in `unit`.
    pub at_least: Option<f64>,
    /// Upper bound, in `unit`.
    pub at_most: Option<f64>,
    /// What was measured, in `unit`; null when it was not, and when it did
    /// not come about during the run (`measured_text` then says `never`).
    pub measured: Option<f64>,
    /// What was measured, for people, or why it was not.
    pub measured_text: String,
    /// What the value is divided by; null: by nothing.
    #[serde(default)]
    pub relative_to: Option<String>,
    /// Of a ratio over transfers: its 95 % interval; see docs/measures.md.
    #[serde(default)]
    pub interval: Option<RatioInterval>,
    /// Unit of the numbers.
    pub unit: Unit,
    /// How the claim ended.
    pub outcome: Outcome,
    /// The outcome on record.
    pub recorded: Outcome,
    /// Whether the outcome is the one on record.
    pub agrees: bool,
    /// What comes out instead and why.
    pub finding: Option<String>,
    /// Where the sentence stands.
    pub source: String,
    /// The figure as the source gives it.
    pub source_figure: Option<String>,
}

impl ClaimOutcome {
    /// The same claim, not tested for a reason.
    pub fn not_tested(self, reason: &str) -> ClaimOutcome {
        ClaimOutcome {
            measured: None,
            measured_text: reason.to_string(),
            interval: None,
            outcome: Outcome::NotTestedHere,
            agrees: self.recorded == Outcome::NotTestedHere,
            ..self
        }
    }
}

/// A run with its name in a study.
pub struct NamedRun<'r, 'a> {
    /// Name in the study; empty for a scenario of its own.
    pub name: &'r str,
    /// Its records.
    pub view: &'r RunView<'a>,
}

/// Checks a claim of a scenario against its run.
pub fn evaluate(claim: &Claim, run: &RunView<'_>) -> ClaimOutcome {
    let alone = NamedRun { name: "", view: run };
    evaluate_in_study(claim, &[alone])
}

/// Checks a claim against the runs of a study; its targets are `run/flow`. The
/// run may be left out when there is only one.
pub fn evaluate_in_study(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> ClaimOutcome {
    let mut outcome = outcome_of(claim, measured(claim, runs));
    outcome.interval = interval(claim, runs);
    if let Some(RatioInterval { low, high, .. }) = outcome.interval {
        let (low, high) = (Unit::Number.show(low), Unit::Number.show(high));
        outcome.measured_text += &format!(" (95 %: {low} to {high})");
    }
    outcome
}

/// The interval of a ratio over transfers, test against control.
fn interval(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> Option<RatioInterval> {
    let (value, sizes, statistic) = of_transfers(&claim.measure)?;
    let window = Window { from: claim.from, until: claim.until };
    let values = |target: &str| {
        let (run, target) = resolve(target, runs).ok()?;
        transfer_values(run, target, window, value, sizes).ok()
    };
    let control = values(claim.relative_to.as_ref()?)?;
    bootstrap_ratio(&values(&claim.of)?, &control, statistic)
}

/// What came of a claim whose value is known: for measures that do not come
/// from records.
pub fn outcome_of(claim: &Claim, value: Result<f64, NotMeasurable>) -> ClaimOutcome {
    let unit = match claim.relative_to {
        Some(_) => Unit::Ratio,
        None => Unit::of(&claim.measure),
    };
    let outcome = match &value {
        Ok(value) if within(claim, *value) => Outcome::Holds,
        Ok(_) => Outcome::Fails,
        Err(_) => Outcome::NotTestedHere,
    };
    let recorded = Outcome::from(claim.recorded);
    ClaimOutcome {
        id: claim.id.clone(),
        says: claim.says.clone(),
        of: claim.of.clone(),
        expected: expected(claim, unit),
        at_least: claim.at_least,
        at_most: claim.at_most,
        measured: value.as_ref().ok().copied().filter(|value| value.is_finite()),
        measured_text: match &value {
            Ok(value) => unit.show(*value),
            Err(reason) => reason.to_string(),
        },
        relative_to: claim.relative_to.clone(),
        interval: None,
        unit,
        outcome,
        recorded,
        agrees: outcome == recorded,
        finding: claim.finding.clone(),
        source: claim.source.clone(),
        source_figure: claim.source_figure.clone(),
    }
}

fn measured(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> Result<f64, NotMeasurable> {
    let value = measure_target(claim, &claim.of, runs)?;
    let Some(other) = &claim.relative_to else {
        return Ok(value);
    };
    let base = measure_target(claim, other, runs)?;
    match value / base {
        ratio if ratio.is_nan() => {
            Err(NotMeasurable(format!("{} and {other} give no ratio: {value} to {base}", claim.of)))
        }
        ratio => Ok(ratio),
    }
}

fn measure_target(
    claim: &Claim,
    target: &str,
    runs: &[NamedRun<'_, '_>],
) -> Result<f64, NotMeasurable> {
    let (run, target) = resolve(target, runs)?;
    let window = Window { from: claim.from, until: claim.until };
    measure(run, &claim.measure, target, window)
}

/// Splits `run/flow`; a target without a run belongs to the only one.
fn resolve<'r, 'a, 't>(
    target: &'t str,
    runs: &[NamedRun<'r, 'a>],
) -> Result<(&'r RunView<'a>, &'t str), NotMeasurable> {
    if let Some((name, rest)) = target.split_once('/')
        && let Some(run) = runs.iter().find(|run| run.name == name)
    {
        return Ok((run.view, rest));
    }
    match runs {
        [only] => Ok((only.view, target)),
        _ => Err(NotMeasurable(format!("{target:?} names no run of the study"))),
    }
}

fn within(claim: &Claim, value: f64) -> bool {
    claim.at_least.is_none_or(|least| value >= least)
        && claim.at_most.is_none_or(|most| value <= most)
}

fn expected(claim: &Claim, unit: Unit) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", unit.show(least), unit.show(most)),
        (Some(least), None) => format!("at least {}", unit.show(least)),
        (None, Some(most)) => format!("at most {}", unit.show(most)),
        (None, None) => "any value".to_string(),
    }
}
