//! Evaluates a controller against RFC 9743 (BCP 133), beside Reno, CUBIC and BBR on the same seeds.
//! Implements `knee evaluate`.

mod criteria;
mod grounds;
mod journal;
mod plan;
mod program;
mod search;
mod space;

pub use grounds::EvaluateBoth;
pub use plan::{Evaluate, EvaluateSettings};
pub use search::SEARCH_SCENARIOS;

use crate::directory::{EVALUATION, EVALUATION_TABLE, REPORT, cannot_write};
use crate::error::Error;
use crate::ground::{Ground, KERNEL, PROGRAMS};
use crate::job::{Job, TRIES, execute_sound};
use crate::lab::Lab;
use crate::load::Load;
use crate::origin;
use criteria::REQUESTS;
use journal::Journal;
use knee_record::{
    Control, Evaluation, EvaluationPlan, EvaluationRow, INPUTS, Summary, write_bytes,
    write_evaluation, write_json, write_text,
};
use knee_report::evaluation_page;
use knee_scenario::{Scenario, file_name};
use plan::Planned;
use std::fs;
use std::path::Path;

/// Default number of seeds of each run.
pub const fn evaluate_seeds(quick: bool) -> u64 {
    if quick { 5 } else { 10 }
}

/// Default number of seeds on a real-time ground.
pub const EVALUATE_SEEDS_REAL: u64 = 2;

/// Why an evaluation is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// No criterion has this section.
    #[error("no criterion has the section {0}")]
    NoSection(String),
    /// One seed alone gives no interval.
    #[error("an interval needs at least two seeds")]
    OneSeed,
    /// The candidate cannot be run in any case: what is wrong, and what to write.
    #[error("{problem}")]
    Candidate {
        /// What is wrong.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// Scenarios could not tell them apart.
    #[error("two traces are named {0}")]
    TwoTraces(String),
}

/// Values of a run, one row per line.
type RunRows = Vec<EvaluationRow>;

/// Where an evaluation keeps what it makes before it ends.
#[derive(Clone, Copy, Default)]
struct Kept<'k> {
    /// Folder for what programs write.
    directory: Option<&'k Path>,
    journal: Option<&'k Journal>,
}

impl Lab {
    /// Evaluates, and writes table, document, page and the worst-case scenarios into `directory`;
    /// if stopped, writes what there is so far. The directory must have been [`Lab::claim`]ed.
    ///
    /// A failed run is not an error: the affected lines give the reason.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn evaluate(&self, evaluate: &Evaluate<'_>, directory: &Path) -> Result<Evaluation, Error> {
        let journal = Journal::begin(evaluate, &self.program, directory)?;
        let mut rows = evaluate.made.clone();
        let kept = Kept { directory: Some(directory), journal: journal.as_ref() };
        rows.extend(self.numbered(evaluate, &evaluate.order(), kept)?);
        let evaluation = self.evaluate_rows(evaluate, rows, directory)?;
        match journal {
            Some(journal) if !self.is_stopped() => journal.remove()?,
            _ => {}
        }
        Ok(evaluation)
    }

    /// Performs some runs of an evaluation, given by number. Returns the values of those that were
    /// not stopped; [`Lab::evaluate_rows`] accepts them in any order.
    ///
    /// # Errors
    /// A host that lacks what the ground needs.
    pub fn evaluate_runs(
        &self,
        evaluate: &Evaluate<'_>,
        numbers: &[usize],
    ) -> Result<Vec<EvaluationRow>, Error> {
        self.numbered(evaluate, numbers, Kept::default())
    }

    fn numbered(
        &self,
        evaluate: &Evaluate<'_>,
        numbers: &[usize],
        kept: Kept<'_>,
    ) -> Result<RunRows, Error> {
        evaluate.on.check_host()?;
        let runs: Vec<Planned> = numbers.iter().map(|number| evaluate.runs[*number]).collect();
        self.perform(evaluate, &runs, kept)
    }

    fn perform(
        &self,
        evaluate: &Evaluate<'_>,
        runs: &[Planned],
        kept: Kept<'_>,
    ) -> Result<RunRows, Error> {
        let loads: Vec<Load> = runs.iter().map(|run| run.load).collect();
        let made = self.side_by_side(&loads, (0..runs.len()).collect(), |number, control| {
            let ground = self.ground_of(evaluate, &runs[number]);
            let made = make(evaluate, &runs[number], (ground, kept.directory), control);
            if let (Some(journal), Some(rows)) = (kept.journal, &made) {
                journal.add(rows)?;
            }
            Ok(made)
        })?;
        Ok(made.into_iter().flatten().flatten().collect())
    }

    /// The standard controllers beside a program are those of Linux, which another ground runs.
    fn ground_of<'g>(&'g self, evaluate: &Evaluate<'g>, run: &Planned) -> &'g dyn Ground {
        match evaluate.on.name() == PROGRAMS && run.controller > 0 {
            true => self.grounds.get(KERNEL).unwrap_or(evaluate.on),
            false => evaluate.on,
        }
    }

    /// Evaluates as [`Lab::evaluate`] does, with the values of runs that were performed before,
    /// perhaps elsewhere. Runs that confirm what these would name are performed here.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn evaluate_rows(
        &self,
        evaluate: &Evaluate<'_>,
        mut rows: Vec<EvaluationRow>,
        directory: &Path,
    ) -> Result<Evaluation, Error> {
        let mut finished = evaluate.finished(&evaluate.runs, &rows);
        evaluate.add_candidate(&mut rows);
        let lines = &evaluate.lines;
        let brought = self.brought.get(&evaluate.candidate_name);
        let mut plan = EvaluationPlan { brought, ..evaluate.plan.clone() };
        let first = Evaluation::new(plan.clone(), lines, &rows, finished).lines;
        let further = evaluate.further(|line| first[line].worse_than_all);
        let kept = Kept { directory: Some(directory), journal: None };
        let mut made = self.perform(evaluate, &further, kept)?;
        // A case may serve other lines too, whose words have been decided.
        made.retain(|row| first[row.line].worse_than_all);
        finished += evaluate.finished(&further, &made);
        plan.runs_planned += further.len();
        evaluate.add_candidate(&mut made);
        rows.extend(made);
        rows.sort_by_key(|row| (row.line, row.case, row.controller, row.repeat));
        write_evaluation(&directory.join(EVALUATION_TABLE), &plan, lines, &rows)?;
        let mut evaluation = Evaluation::new(plan, lines, &rows, finished);
        keep_worst(evaluate, &mut evaluation, directory)?;
        if let Some(scenarios) = evaluate.plan.search {
            evaluation.searched = self.search(evaluate, scenarios, &evaluation, directory)?;
        }
        let read = evaluate.traces.clone().into_iter().chain(evaluate.classes.clone()).collect();
        let ground = evaluate.on.name();
        origin::keep_evaluation(self, directory, ground, &read, evaluate.origin())?;
        write_json(&directory.join(EVALUATION), &evaluation)?;
        write_text(&directory.join(REPORT), &evaluation_page(&evaluation)?)?;
        Ok(evaluation)
    }
}

/// Executes a planned run; `None` if it was stopped.
fn make(
    evaluate: &Evaluate<'_>,
    run: &Planned,
    (ground, scratch): (&dyn Ground, Option<&Path>),
    control: &Control,
) -> Option<RunRows> {
    let lines = &evaluate.cases[run.case].lines;
    let row = |(line, case): (usize, usize), value: Result<f64, String>| {
        let Planned { controller, repeat, seed, .. } = *run;
        EvaluationRow { line, case, controller, repeat, seed, value }
    };
    let ended = evaluate.scenario(run).and_then(|scenario| {
        ground.check(&scenario)?;
        let run = execute_sound(&Job { scratch, ..Job::new(&scenario, ground) }, control)?;
        Ok((scenario, run))
    });
    let (scenario, ended) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            return Some(lines.iter().map(|at| row(*at, Err(why.clone()))).collect());
        }
    };
    if ended.records.interrupted {
        return None;
    }
    if let Some(reason) = ended.unsound() {
        let why = format!("{TRIES} runs were invalid: {reason}");
        return Some(lines.iter().map(|at| row(*at, Err(why.clone()))).collect());
    }
    let value = |at: (usize, usize)| {
        row(at, value_of(&ended.summary, &evaluate.lines[at.0].claim, &scenario))
    };
    Some(lines.iter().copied().map(value).collect())
}

/// The value of a claim. An event that never occurred counts as the whole duration.
fn value_of(summary: &Summary, id: &str, scenario: &Scenario) -> Result<f64, String> {
    let claim = summary.claims.iter().find(|claim| claim.id == id);
    let claim = claim.ok_or_else(|| "there is no such claim".to_string())?;
    match claim.measured {
        Some(value) => Ok(value),
        None if claim.measured_text == "never" => Ok(scenario.duration.as_secs_f64()),
        None => Err(claim.measured_text.clone()),
    }
}

/// Writes the worst-case scenario of each line, and the recorded links that they name.
fn keep_worst(
    evaluate: &Evaluate<'_>,
    evaluation: &mut Evaluation,
    directory: &Path,
) -> Result<(), Error> {
    let folder = directory.join(INPUTS);
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, error))?;
    for (name, bytes) in evaluate.traces.iter().chain(&evaluate.classes) {
        write_bytes(&folder.join(file_name(name)), bytes)?;
    }
    for (number, outcome) in evaluation.lines.iter_mut().enumerate() {
        let Some(worst) = &mut outcome.worst else { continue };
        let Some(text) = evaluate.scenario_file(number, worst.number) else { continue };
        worst.scenario = format!("{INPUTS}/{}-{}.toml", outcome.line.section, outcome.line.claim);
        if text.contains(REQUESTS) {
            write_text(&folder.join(REQUESTS), &criteria::text(REQUESTS)?)?;
        }
        write_text(&directory.join(&worst.scenario), &text)?;
    }
    Ok(())
}
