//! Claims: statements from a source, checked against what was measured.

use crate::measures::{NotMeasurable, compare, measure, of_transfers, transfer_ratio};
use crate::over_seeds::OverSeeds;
use crate::print::Unit;
use crate::view::{RunView, Window};
use knee_scenario::{Claim, OnRecord, placeholders};
use knee_units::statistics::RatioInterval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// Measured, within its bounds.
    #[serde(rename = "holds")]
    Holds,
    /// Measured, outside its bounds.
    #[serde(rename = "fails")]
    Fails,
    /// Measured, with an interval that crosses a bound.
    #[serde(rename = "uncertain")]
    Uncertain,
    /// Not measured on this ground.
    #[serde(rename = "not tested here")]
    NotTestedHere,
}

impl From<knee_scenario::Outcome> for Outcome {
    fn from(outcome: knee_scenario::Outcome) -> Outcome {
        match outcome {
            knee_scenario::Outcome::Holds => Outcome::Holds,
            knee_scenario::Outcome::Fails => Outcome::Fails,
            knee_scenario::Outcome::Uncertain => Outcome::Uncertain,
            knee_scenario::Outcome::NotTestedHere => Outcome::NotTestedHere,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "fails",
            Outcome::Uncertain => "uncertain",
            Outcome::NotTestedHere => "not tested here",
        })
    }
}

/// A claim with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Short name, such as `A3`; can be empty.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// Flows, flow or link that it is about; in a study preceded by the run.
    pub of: String,
    /// The bounds in words: `at most 80 ms`.
    pub expected: String,
    /// Lower bound, in `unit`.
    pub at_least: Option<f64>,
    /// Upper bound, in `unit`.
    pub at_most: Option<f64>,
    /// Measured value, in `unit`; null if nothing was measured, or if the event
    /// did not occur during the run (`measured_text` is then `never`).
    pub measured: Option<f64>,
    /// Measured value as text, or the reason why there is none.
    pub measured_text: String,
    /// Flows whose value the measured value is divided by; null for none.
    #[serde(default)]
    pub relative_to: Option<String>,
    /// 95 % interval of a ratio over transfers; see docs/measures.md.
    #[serde(default)]
    pub interval: Option<RatioInterval>,
    /// Results of each seed, for a run of a study with several seeds.
    #[serde(default)]
    pub seeds: Option<OverSeeds>,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Outcome of the claim: by its interval if it has one, else by the value
    /// of one run.
    pub outcome: Outcome,
    /// The outcome on record.
    pub recorded: Outcome,
    /// In a study: the value on record with the drift allowed, as text.
    #[serde(default)]
    pub on_record: Option<String>,
    /// Whether the value has drifted further from the one on record.
    #[serde(default)]
    pub drifted: bool,
    /// Whether outcome and value agree with those on record.
    pub agrees: bool,
    /// The result found instead and its reason, with the measured values.
    pub finding: Option<String>,
    /// Place in the source.
    pub source: String,
    /// Value given in the source.
    pub source_figure: Option<String>,
}

impl ClaimOutcome {
    /// Returns the same claim as not tested, with the reason.
    pub fn not_tested(self, reason: &str) -> ClaimOutcome {
        ClaimOutcome {
            measured: None,
            measured_text: reason.to_string(),
            interval: None,
            seeds: None,
            outcome: Outcome::NotTestedHere,
            agrees: self.recorded == Outcome::NotTestedHere,
            ..self
        }
    }

    /// Returns a claim that was not run with the outcome and value that it has on record.
    pub fn from_record(claim: &Claim) -> ClaimOutcome {
        let value = claim.on_record.map(|on_record| on_record.value);
        let value = value.ok_or_else(|| NotMeasurable("no value on record".to_string()));
        let recorded = Outcome::from(claim.recorded);
        ClaimOutcome { outcome: recorded, agrees: true, ..outcome_of(claim, value) }
    }

    /// Compares the claim with the value that `claim` has on record.
    pub fn against_record(mut self, claim: &Claim) -> ClaimOutcome {
        let Some(OnRecord { value, drift }) = claim.on_record else { return self };
        // A recorded value is rounded, so it may lie just beyond its drift.
        let near = |measured: f64| (measured - value).abs() <= drift + 1e-9 * value.abs();
        self.drifted = match self.measured {
            _ if self.outcome == Outcome::NotTestedHere => false,
            Some(measured) if value.is_finite() => !near(measured),
            measured => measured.is_some() || value.is_finite(),
        };
        let allowed = match value.is_finite() {
            true => format!(" (± {})", self.unit.show(drift)),
            false => String::new(),
        };
        self.on_record = Some(format!("{}{allowed}", self.unit.show(value)));
        self.agrees = self.outcome == self.recorded && !self.drifted;
        self
    }

    /// Returns the measured value without its interval.
    pub(crate) fn value_text(&self) -> String {
        match (self.measured, self.outcome) {
            (Some(value), _) => self.unit.show(value),
            (None, Outcome::NotTestedHere) => "(not measured)".to_string(),
            (None, _) => self.unit.show(f64::INFINITY),
        }
    }
}

/// Fills the placeholders in the findings of `claims` with the values in `measured`: findings quote
/// the simulator's values on every ground.
pub fn fill_findings(claims: &mut [ClaimOutcome], measured: &[ClaimOutcome]) {
    for claim in claims {
        let Some(finding) = claim.finding.take() else { continue };
        let of_itself =
            |other: &&ClaimOutcome| (&other.id, &other.says) == (&claim.id, &claim.says);
        let text = |placeholder: &str| {
            let mut all = measured.iter();
            let found = match placeholder.trim_matches(['{', '}']) {
                "value" => all.find(of_itself),
                id => all.find(|other| other.id == id),
            };
            found.map_or_else(|| placeholder.to_string(), ClaimOutcome::value_text)
        };
        let filled = placeholders(&finding)
            .fold(finding.clone(), |filled, name| filled.replace(name, &text(name)));
        claim.finding = Some(filled);
    }
}

/// A run with its name in the study.
pub struct NamedRun<'r, 'a> {
    /// Name in the study; empty for a single scenario.
    pub name: &'r str,
    /// Its records.
    pub view: &'r RunView<'a>,
}

/// Checks a claim of a scenario against its run.
pub fn evaluate(claim: &Claim, run: &RunView<'_>) -> ClaimOutcome {
    let alone = NamedRun { name: "", view: run };
    evaluate_in_study(claim, &[alone])
}

/// Checks a claim against the runs of a study. Targets are `run/flow`; the run may be left out if
/// there is only one.
pub fn evaluate_in_study(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> ClaimOutcome {
    let interval = interval(claim, runs);
    // With pairs, the value is the ratio over the transfers that both sides have.
    let value = match interval {
        Some(interval) => Ok(interval.ratio),
        None => measured(claim, runs),
    };
    let mut outcome = ClaimOutcome { interval, ..outcome_of(claim, value) };
    if let Some(RatioInterval { low, high, .. }) = outcome.interval {
        outcome.outcome = decided((claim.at_least, claim.at_most), (low, high));
        outcome.agrees = outcome.outcome == outcome.recorded;
        let (low, high) = (Unit::Number.show(low), Unit::Number.show(high));
        outcome.measured_text += &format!(" (95 %: {low} to {high})");
    }
    outcome
}

/// Returns the interval of a ratio over transfers, test against control.
fn interval(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> Option<RatioInterval> {
    let (value, sizes, statistic) = of_transfers(&claim.measure)?;
    let window = Window { from: claim.from, until: claim.until };
    let test = resolve(&claim.of, runs).ok()?;
    let control = resolve(claim.relative_to.as_ref()?, runs).ok()?;
    transfer_ratio([test, control], window, value, sizes, statistic)
}

/// Returns the outcome of a claim with a known value, for measures that do not come from records.
pub fn outcome_of(claim: &Claim, value: Result<f64, NotMeasurable>) -> ClaimOutcome {
    let unit = match claim.relative_to {
        Some(_) if !claim.measure.compares() => Unit::Ratio,
        _ => Unit::of(&claim.measure),
    };
    let outcome = match &value {
        Ok(value) => decided((claim.at_least, claim.at_most), (*value, *value)),
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
        seeds: None,
        unit,
        outcome,
        recorded,
        on_record: None,
        drifted: false,
        agrees: outcome == recorded,
        finding: claim.finding.clone(),
        source: claim.source.clone(),
        source_figure: claim.source_figure.clone(),
    }
}

fn measured(claim: &Claim, runs: &[NamedRun<'_, '_>]) -> Result<f64, NotMeasurable> {
    if let (true, Some(other)) = (claim.measure.compares(), &claim.relative_to) {
        let window = Window { from: claim.from, until: claim.until };
        let targets = [resolve(&claim.of, runs)?, resolve(other, runs)?];
        return compare(&claim.measure, targets, window);
    }
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

/// Resolves `run/flow`; a target without a run belongs to the only run.
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

/// Returns the outcome of a claim with these bounds whose value lies between `low` and `high`.
pub(crate) fn decided(
    (at_least, at_most): (Option<f64>, Option<f64>),
    (low, high): (f64, f64),
) -> Outcome {
    let reaches = |value: f64| at_least.is_none_or(|least| value >= least);
    let stays = |value: f64| at_most.is_none_or(|most| value <= most);
    match (reaches(low) && stays(high), reaches(high) && stays(low)) {
        (true, _) => Outcome::Holds,
        (false, true) => Outcome::Uncertain,
        (false, false) => Outcome::Fails,
    }
}

fn expected(claim: &Claim, unit: Unit) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) if least == most => format!("exactly {}", unit.show(least)),
        (Some(least), Some(most)) => format!("{} to {}", unit.show(least), unit.show(most)),
        (Some(least), None) => format!("at least {}", unit.show(least)),
        (None, Some(most)) => format!("at most {}", unit.show(most)),
        (None, None) => "any value".to_string(),
    }
}
