//! `knee reproduce`.

use crate::arguments::Reproduce;
use crate::claims;
use crate::directory::{self, REPORT, STUDIES};
use crate::failure::{Ending, Failure};
use crate::input::named_files;
use crate::interrupt;
use crate::models;
use crate::run::quoted;
use crate::screen;
use crate::studies::{NamedStudy, chosen};
use crate::study_record::{RunRecord, RunSource, SCHEMA, StudyRecord, StudyRecords};
use crate::workers::{Finished, Job, run_all};
use knee_record::{
    ClaimOutcome, NamedRun, RunView, Verdict, evaluate_in_study, write_json, write_text,
};
use knee_scenario::{Ground, Study, StudyRun};
use std::path::{Path, PathBuf};

/// A run of a study with where it is kept.
struct Planned<'s> {
    run: &'s StudyRun,
    /// Below the output directory.
    below: String,
    directory: PathBuf,
}

/// A run of a study that was run.
struct Done<'s> {
    run: &'s StudyRun,
    below: String,
    finished: Finished,
}

/// Runs studies, keeps their runs, prints claim by claim what came out.
pub fn reproduce(arguments: &Reproduce) -> Result<Ending, Failure> {
    let studies = chosen(&arguments.studies)?;
    let out = arguments.output.out.clone();
    let out = out.unwrap_or_else(|| Path::new(directory::DEFAULT).join("reproduce"));
    let plans: Vec<Vec<Planned<'_>>> = studies.iter().map(|study| plan(study, &out)).collect();
    let directories = plans.iter().flatten().map(|planned| &planned.directory);
    directory::claim(std::iter::once(&out).chain(directories), arguments.output.force)?;
    let Some(done) = carry_out(arguments, plans)? else {
        screen::say(&format!(
            "Stopped. Runs that were finished or begun are below {}; knee report shows one.",
            out.display()
        ));
        return Ok(Ending::Interrupted);
    };
    let records = gather(arguments, &studies, &done);
    let sources: Vec<RunSource> = done.into_iter().flatten().map(source).collect();
    write_json(&out.join(STUDIES), &records)?;
    write_text(&out.join(REPORT), &records.page(&out, &sources)?)?;
    match arguments.json {
        true => screen::print_json(&records)?,
        false => screen::print(&text(&records, &out))?,
    }
    Ok(if records.as_recorded { Ending::Done } else { Ending::ClaimDiffers })
}

fn plan<'s>(study: &'s NamedStudy, out: &Path) -> Vec<Planned<'s>> {
    let here = study.study.runs.iter().filter(|run| run.grounds.contains(&Ground::Sim));
    here.map(|run| {
        let below = format!("{}/{}", study.name, run.name);
        Planned { run, directory: out.join(&below), below }
    })
    .collect()
}

/// Runs everything; nothing when it was interrupted.
fn carry_out<'s>(
    arguments: &Reproduce,
    plans: Vec<Vec<Planned<'s>>>,
) -> Result<Option<Vec<Vec<Done<'s>>>>, Failure> {
    let all: Vec<&Planned<'_>> = plans.iter().flatten().collect();
    let jobs: Vec<Job<'_>> =
        all.iter().map(|p| Job { scenario: &p.run.scenario, packet_log: None }).collect();
    let keep = |index: usize, finished: Finished| {
        let Planned { run, directory, .. } = all[index];
        let resolved = (knee_record::SCENARIO, run.scenario.resolved.as_bytes());
        let inputs: Vec<_> = std::iter::once(resolved).chain(named_files(&run.scenario)).collect();
        directory::keep(directory, &run.scenario, &finished, &inputs)?;
        Ok(finished)
    };
    let mut finished = run_all(&jobs, arguments.output.jobs, keep)?.into_iter();
    if interrupt::requested() {
        return Ok(None);
    }
    let mut done = |planned: Planned<'s>| {
        let finished = finished.next().flatten()?;
        Some(Done { run: planned.run, below: planned.below, finished })
    };
    Ok(plans.into_iter().map(|study| study.into_iter().map(&mut done).collect()).collect())
}

fn gather(arguments: &Reproduce, studies: &[NamedStudy], done: &[Vec<Done<'_>>]) -> StudyRecords {
    let studies: Vec<StudyRecord> =
        studies.iter().zip(done).map(|(study, runs)| gather_study(study, runs)).collect();
    let words = arguments.studies.iter().map(|word| format!(" {}", quoted(word)));
    let runs = done.iter().flatten();
    StudyRecords {
        schema: SCHEMA.to_string(),
        verdict: Verdict::worst(runs.map(|done| done.finished.summary.verdict)),
        as_recorded: studies.iter().flat_map(|study| &study.claims).all(|claim| claim.agrees),
        command: words.fold("knee reproduce".to_string(), |line, word| line + &word),
        studies,
    }
}

fn gather_study(named: &NamedStudy, runs: &[Done<'_>]) -> StudyRecord {
    let study = &named.study;
    StudyRecord {
        name: named.name.clone(),
        title: study.name.clone(),
        source: study.source.clone(),
        about: study.summary.clone(),
        claims: evaluate(study, runs),
        runs: runs.iter().map(run_record).collect(),
        command: format!("knee reproduce {}", named.word),
    }
}

fn run_record(done: &Done<'_>) -> RunRecord {
    RunRecord {
        name: done.run.name.clone(),
        directory: done.below.clone(),
        summary: done.finished.summary.clone(),
    }
}

fn source(done: Done<'_>) -> RunSource {
    RunSource { records: done.finished.records, scenario: done.run.scenario.resolved.clone() }
}

/// Claims over the study's runs and models, then those that stand in the
/// scenario of a run, with the run's name before what they speak of.
fn evaluate(study: &Study, runs: &[Done<'_>]) -> Vec<ClaimOutcome> {
    let views: Vec<RunView<'_>> = runs
        .iter()
        .map(|done| RunView::new(&done.finished.records, done.run.scenario.warmup))
        .collect();
    let named: Vec<NamedRun<'_, '_>> = runs
        .iter()
        .zip(&views)
        .map(|(done, view)| NamedRun { name: &done.run.name, view })
        .collect();
    let over_all = study.claims.iter().map(|claim| {
        models::evaluate(claim, &study.models).unwrap_or_else(|| evaluate_in_study(claim, &named))
    });
    let of_runs = runs.iter().flat_map(|done| {
        let claims = done.finished.summary.claims.iter().cloned();
        claims.map(|claim| ClaimOutcome { of: format!("{}/{}", done.run.name, claim.of), ..claim })
    });
    over_all.chain(of_runs).collect()
}

fn text(records: &StudyRecords, out: &Path) -> String {
    let mut text = String::new();
    for study in &records.studies {
        let about = format!("{} ({})\n{}\n", study.title, study.name, study.source);
        text += &format!("{about}\n{}\n", claims::text(&study.claims));
    }
    let all = records.studies.iter().flat_map(|study| &study.claims);
    let runs: usize = records.studies.iter().map(|study| study.runs.len()).sum();
    text += &format!(
        "{}\nverdict  {} ({runs} runs)\nreport   {}\nrepeat   {}\n",
        claims::tally(all),
        records.verdict,
        out.join(REPORT).display(),
        records.command
    );
    text
}
