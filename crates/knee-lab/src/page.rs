//! Regenerates pages from the records in a directory.

use crate::both;
use crate::command;
use crate::compare::{self, RunsCompared};
use crate::directory::{
    ANSWERS, COMPARISON, EVALUATION, FIDELITY, RANK, REPEAT, REPORT, STUDIES, SWEEP, logs_of,
};
use crate::error::Error;
use crate::repeat_page::repeat_page;
use crate::study_record::StudyRecords;
use crate::text::ScenarioText;
use knee_record::{
    Answers, Evaluation, Fidelity, RankSummary, RepeatSummary, SavedRun, Summary, SweepSummary,
    read_answers, read_evaluation, read_json, read_rank, read_run, read_summary, read_sweep,
    write_text,
};
use knee_report::{
    ReadLog, RunPage, answers_section, evaluation_page, rank_page, run_page, sweep_page,
};
use std::path::Path;

/// Rewrites the page of a run, studies, a sweep, a ranking, an evaluation, a comparison or several
/// grounds. Returns the summary of a single run.
///
/// # Errors
/// A directory with none of these, or a page that cannot be written.
pub fn rewrite_page(directory: &Path) -> Result<Option<Summary>, Error> {
    let (page, summary) = match saved(directory)? {
        Saved::Grounds(_) => {
            both::compare(directory, "")?;
            return Ok(None);
        }
        Saved::Repeats(repeats) => {
            (repeat_page(&repeats, saved_answers(directory)?.as_ref(), directory, "")?, None)
        }
        Saved::Studies(studies) => (studies.saved_page(directory)?, None),
        Saved::Sweep(sweep) => (sweep_page(&sweep)?, None),
        Saved::Ranking(ranking) => (rank_page(&ranking)?, None),
        Saved::Evaluation(evaluation) => (evaluation_page(&evaluation)?, None),
        Saved::Comparison(comparison) => (compare::saved_page(&comparison)?, None),
        Saved::Run(_) => {
            let run = read_run(directory)?;
            (page_of_run(directory, &run)?, Some(run.summary))
        }
    };
    write_text(&directory.join(REPORT), &page)?;
    Ok(summary)
}

/// Contents of a directory.
#[derive(Debug)]
pub enum Saved {
    /// A run.
    Run(Box<Summary>),
    /// Repeats of a run.
    Repeats(RepeatSummary),
    /// Studies.
    Studies(StudyRecords),
    /// A sweep.
    Sweep(SweepSummary),
    /// A ranking.
    Ranking(RankSummary),
    /// An evaluation.
    Evaluation(Evaluation),
    /// A comparison of runs.
    Comparison(Box<RunsCompared>),
    /// Results of the simulator and real-time grounds.
    Grounds(Fidelity),
}

/// Reads the results in a directory, whatever their kind.
///
/// # Errors
/// A directory without results, or with damaged ones.
pub fn saved(directory: &Path) -> Result<Saved, Error> {
    let holds = |name: &str| directory.join(name).is_file();
    Ok(if holds(FIDELITY) && !both::are_in(directory).is_empty() {
        Saved::Grounds(both::read(directory)?)
    } else if holds(REPEAT) {
        Saved::Repeats(read_json(&directory.join(REPEAT), "knee-repeat/1")?)
    } else if holds(STUDIES) {
        Saved::Studies(StudyRecords::read(directory)?)
    } else if holds(SWEEP) {
        Saved::Sweep(read_sweep(&directory.join(SWEEP))?)
    } else if holds(RANK) {
        Saved::Ranking(read_rank(&directory.join(RANK))?)
    } else if holds(EVALUATION) {
        Saved::Evaluation(read_evaluation(&directory.join(EVALUATION))?)
    } else if holds(COMPARISON) {
        Saved::Comparison(Box::new(read_comparison(directory)?))
    } else {
        Saved::Run(Box::new(read_summary(directory)?))
    })
}

fn read_comparison(directory: &Path) -> Result<RunsCompared, Error> {
    Ok(read_json(&directory.join(COMPARISON), compare::SCHEMA)?)
}

fn page_of_run(directory: &Path, run: &SavedRun) -> Result<String, Error> {
    let SavedRun { summary, records, scenario, .. } = run;
    let line = command::of_run(directory, &[summary.ground.as_str()]);
    let command = format!("{line} --seed {}", summary.seed);
    let answers = saved_answers(directory)?;
    let lead = answers.as_ref().map(answers_section).transpose()?;
    let lead = lead.as_ref();
    let logs = saved_logs(directory, scenario);
    let logs = &logs;
    let command = &command;
    Ok(run_page(&RunPage { name: "", summary, records, lead, scenario, command, logs })?)
}

/// The access logs of a run, from the copies in its folder; empty if the scenario names none or is
/// not valid for this program.
pub(crate) fn saved_logs(directory: &Path, scenario: &str) -> Vec<ReadLog> {
    if !scenario.contains("log = ") {
        return Vec::new();
    }
    let text = ScenarioText::of_run(directory);
    let scenario = text.and_then(|text| text.scenario(&[]));
    scenario.map_or_else(|_| Vec::new(), |scenario| logs_of(&scenario))
}

/// Reads the answers of a run, of repeats or of several grounds; for one of several repeats, the
/// answers over all of them. `None` if there were no questions.
///
/// # Errors
/// An unreadable or damaged file.
pub fn saved_answers(directory: &Path) -> Result<Option<Answers>, Error> {
    let own = directory.join(ANSWERS);
    let of_repeats = directory.parent().map(|above| above.join(ANSWERS));
    let is_repeat = directory.parent().is_some_and(|above| above.join(REPEAT).is_file());
    match of_repeats.filter(|_| is_repeat) {
        _ if own.is_file() => Ok(Some(read_answers(&own)?)),
        Some(above) if above.is_file() => Ok(Some(read_answers(&above)?)),
        _ => Ok(None),
    }
}
