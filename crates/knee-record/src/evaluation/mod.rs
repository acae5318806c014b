//! Evaluations of a candidate against standard controllers, criterion by criterion: the values kept
//! of each run, the table of all values, and the result of each line.

mod against;
mod grounds;
mod judge;
mod table;

pub use against::{EvaluationChange, NotComparable, got_worse};
pub use grounds::{EvaluationGrounds, EvaluationsCompared, GroundsPair};
pub use table::write_evaluation;

use crate::{Better, Brought, Error, Judgement, Paired, PairedScale, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema name of `evaluation.json`.
pub(crate) const SCHEMA: &str = "knee-evaluation/1";

/// A measure of a section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationLine {
    /// Section of RFC 9743.
    pub section: String,
    /// Title of the section.
    pub section_title: String,
    /// Id of the claim in the scenarios that gives the line its values.
    pub claim: String,
    /// Title of the measure.
    pub title: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which value is better.
    pub better: Better,
    /// Relative difference below which two controllers count as equal.
    pub alike: f64,
    /// Amount added to every value, in the measure's unit, so that values near
    /// zero count as zero.
    pub floor: f64,
    /// What a value within the margin means, if not that the two are alike: `not
    /// starved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Its cases: scenario, and the keys set in it.
    pub cases: Vec<String>,
}

/// Settings of the evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationPlan {
    /// The command that repeats it.
    pub command: String,
    /// The controller under test, as typed.
    pub candidate: String,
    /// Its class, if it is written in Python; null if it is built in.
    #[serde(default)]
    pub brought: Option<Brought>,
    /// Ground of the runs: `sim`, `kernel`.
    #[serde(default = "simulator")]
    pub ground: String,
    /// The controllers that it is compared with.
    pub standards: Vec<String>,
    /// Seeds of each run; a line that is worse than all may have further ones,
    /// which confirm it.
    pub repeats: u64,
    /// Whether only the cases of `--quick` were run.
    pub quick: bool,
    /// Scenarios tried by the search for the worst case of each metric; null
    /// without a search.
    pub search: Option<usize>,
    /// Requirement of each section, in Knee's words.
    pub asks: Vec<SectionAsks>,
    /// Requirements that are not tested yet.
    pub not_tried: Vec<NotTried>,
    /// Number of planned runs, including those with further seeds.
    pub runs_planned: usize,
}

impl EvaluationPlan {
    /// Returns the command that runs one of its scenarios on its ground.
    pub fn run_command(&self, scenario: &str) -> String {
        match self.ground == simulator() {
            true => format!("knee run {scenario}"),
            false => format!("knee run {scenario} --on {}", self.ground),
        }
    }
}

/// The ground of the first evaluations, which did not name it.
fn simulator() -> String {
    "sim".to_string()
}

/// What a section asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SectionAsks {
    /// Section of RFC 9743.
    pub section: String,
    /// Its title.
    pub title: String,
    /// The requirement, in Knee's words.
    pub asks: String,
}

/// Requirement of a section that is not tested yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotTried {
    /// Section of RFC 9743, or a draft.
    pub section: String,
    /// The missing test.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// The value of one run in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRow {
    /// Number of the line.
    pub line: usize,
    /// Number of the case in the line.
    pub case: usize,
    /// Controller: 0 is the candidate, 1 the first standard.
    pub controller: usize,
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Value in the measure's unit, or why there is none.
    pub value: Result<f64, String>,
}

/// The candidate against one standard controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationAgainst {
    /// The standard controller.
    pub standard: String,
    /// How the candidate compares; null if the standard has no value.
    pub word: Option<Judgement>,
    /// The candidate's value over the standard's, paired over the seeds. Its
    /// interval is the one that decides the word: that of 95 % if it lies within
    /// the margin, otherwise one that allows for the number of lines (Benjamini
    /// and Hochberg, 1995).
    pub ratio: Option<Paired>,
}

/// Values of one seed, geometric means over the cases, the line's floor added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationSeed {
    /// The seed.
    pub seed: u64,
    /// The candidate's value; null: a case has none.
    pub candidate: Option<f64>,
    /// The standards' values, in their order.
    pub standards: Vec<Option<f64>>,
}

/// The case in which the candidate is worst relative to the standards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstCase {
    /// Number of the case in the line.
    pub number: usize,
    /// The case.
    pub case: String,
    /// The candidate's values over the standards', geometric mean.
    pub ratio: f64,
    /// Scenario file of this case, in the folder of the evaluation, for `knee
    /// run`.
    pub scenario: String,
}

/// The worst case that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstFound {
    /// Short name of the metric.
    pub id: String,
    /// Title of the measure.
    pub title: String,
    /// Id of the claim in the scenario that gives its value.
    pub claim: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which value is better.
    pub better: Better,
    /// Scenarios tried, including those of the minimisation.
    pub tried: usize,
    /// The worst case, minimised: scenario, and the keys set in it; empty if no
    /// case could be tested.
    pub case: String,
    /// The candidate's value in the worst case.
    pub candidate: Option<f64>,
    /// The standards' values, in their order.
    pub standards: Vec<f64>,
    /// The candidate's value over the standards', geometric mean.
    pub ratio: Option<f64>,
    /// This ratio in the worst of the evaluation's own cases; null: they have no
    /// such line.
    pub fixed_ratio: Option<f64>,
    /// Whether the search found a case at least as bad as that.
    pub as_bad_as_fixed: Option<bool>,
    /// Scenario file of this case, in the folder of the evaluation, for `knee
    /// run`.
    pub scenario: String,
}

/// Results of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationOutcome {
    /// The measure.
    #[serde(flatten)]
    pub line: EvaluationLine,
    /// The candidate against each standard.
    pub against: Vec<EvaluationAgainst>,
    /// Whether the candidate is worse than each of them, apart from itself.
    pub worse_than_all: bool,
    /// Why the candidate has no value in some case; null if it has all values.
    pub could_not_be_tried: Option<String>,
    /// The case in which the candidate does worst.
    pub worst: Option<WorstCase>,
    /// Values of each seed.
    pub seeds: Vec<EvaluationSeed>,
}

/// Results of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// `knee-evaluation/1`.
    pub schema: String,
    /// Settings of the evaluation.
    #[serde(flatten)]
    pub plan: EvaluationPlan,
    /// Runs included; fewer than planned after an interrupt.
    pub runs_finished: usize,
    /// Results, line by line.
    pub lines: Vec<EvaluationOutcome>,
    /// Worst cases found by the search; empty without a search.
    #[serde(default)]
    pub searched: Vec<WorstFound>,
}

impl EvaluationOutcome {
    /// Returns how many times worse the candidate is than the standard next to it, and that
    /// standard's index; `None` unless it is worse than all of them.
    pub fn worse_than_next(&self) -> Option<(f64, usize)> {
        let harm = |one: &EvaluationAgainst| {
            let ratio = one.ratio.filter(|ratio| ratio.scale == PairedScale::Ratio)?;
            match self.line.better {
                Better::Less => ratio.estimate,
                Better::More => ratio.estimate.map(f64::recip),
            }
        };
        let worse = |one: &EvaluationAgainst| one.word == Some(Judgement::Worse);
        let others = self.against.iter().enumerate().filter(|(_, one)| worse(one));
        let all: Option<Vec<(f64, usize)>> =
            others.map(|(at, one)| Some((harm(one)?, at))).collect();
        let tried = self.worse_than_all && self.could_not_be_tried.is_none();
        all.filter(|_| tried)?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

impl Evaluation {
    /// Returns the lines in which the candidate is worse than all standards, the worst first.
    pub fn worst_lines(&self) -> Vec<&EvaluationOutcome> {
        let harm = |line: &EvaluationOutcome| line.worse_than_next().map_or(0.0, |(harm, _)| harm);
        let mut all: Vec<&EvaluationOutcome> =
            self.lines.iter().filter(|line| line.worse_than_all).collect();
        all.sort_by(|a, b| harm(b).total_cmp(&harm(a)));
        all
    }

    /// Summarises the values of all runs.
    pub fn new(
        plan: EvaluationPlan,
        lines: &[EvaluationLine],
        rows: &[EvaluationRow],
        runs_finished: usize,
    ) -> Evaluation {
        let numbered = lines.iter().enumerate();
        let lines = numbered.map(|(number, line)| {
            let rows: Vec<&EvaluationRow> = rows.iter().filter(|row| row.line == number).collect();
            judge::outcome(line, &plan.standards, &rows)
        });
        let (mut lines, searched): (Vec<EvaluationOutcome>, _) = (lines.collect(), Vec::new());
        judge::decide(&plan.candidate, &mut lines);
        Evaluation { schema: SCHEMA.to_string(), plan, runs_finished, lines, searched }
    }
}

/// Reads `evaluation.json`.
///
/// # Errors
/// If the file cannot be read or is not an evaluation.
pub fn read_evaluation(path: &Path) -> Result<Evaluation, Error> {
    crate::read_json(path, SCHEMA)
}
