//! `knee reproduce`.

mod kernel;
mod update;

pub use kernel::{partner, tables as tables_of_both};

use crate::arguments::Reproduce;
use crate::claims;
use crate::directory::{self, REPORT, STUDIES};
use crate::failure::{Ending, Failure};
use crate::grounds;
use crate::input::named_files;
use crate::interrupt;
use crate::models;
use crate::run::{chosen as chosen_grounds, quoted};
use crate::screen;
use crate::studies::{NamedStudy, chosen};
use crate::study_record::{NotRun, RunRecord, RunSource, SCHEMA, StudyRecord, StudyRecords};
use crate::table::{Mood, Table};
use crate::workers::{Finished, Job, run_all};
use knee_record::{
    ClaimOutcome, NamedSeeds, RunView, Verdict, evaluate_over_seeds, fill_conclusion,
    fill_findings, write_json, write_text,
};
use knee_scenario::{Ground, Scenario, Study, StudyRun};
use std::path::{Path, PathBuf};

/// A run of a study with where it is kept.
struct Planned<'s> {
    run: &'s StudyRun,
    ground: Ground,
    /// Below the output directory.
    below: String,
    directory: PathBuf,
}

impl<'s> Planned<'s> {
    /// In real time one seed must do.
    fn further_seeds(&self) -> &'s [Scenario] {
        if self.ground == Ground::Sim { &self.run.further_seeds } else { &[] }
    }
}

/// A run of a study that was run.
struct Done<'s> {
    run: &'s StudyRun,
    ground: Ground,
    below: String,
    finished: Finished,
    /// The same with other seeds.
    further: Vec<Finished>,
}

impl Done<'_> {
    fn view(&self) -> RunView<'_> {
        RunView::new(&self.finished.records, self.run.scenario.warmup)
    }

    /// Seed by seed.
    fn views(&self) -> Vec<RunView<'_>> {
        let further = self.further.iter();
        let further = further.map(|one| RunView::new(&one.records, self.run.scenario.warmup));
        std::iter::once(self.view()).chain(further).collect()
    }
}

/// Runs studies, keeps their runs, prints claim by claim what came out.
pub fn reproduce(arguments: &Reproduce) -> Result<Ending, Failure> {
    let on_kernel = on_kernel(arguments)?;
    let studies = chosen(&arguments.studies)?;
    if arguments.record {
        update::check(&studies)?;
    }
    let out = arguments.output.out.clone();
    let out = out.unwrap_or_else(|| Path::new(directory::DEFAULT).join("reproduce"));
    let plans: Vec<Vec<Planned<'_>>> =
        studies.iter().map(|study| plan(study, &out, on_kernel)).collect();
    let directories = plans.iter().flatten().map(|planned| &planned.directory);
    directory::claim(&out, std::iter::once(&out).chain(directories), arguments.output.force)?;
    let Some(done) = carry_out(arguments, plans)? else {
        screen::say(&format!(
            "Stopped. Runs that were finished or begun are below {}; knee report shows one.",
            out.display()
        ));
        return Ok(Ending::Interrupted);
    };
    let records = gather(arguments, &studies, &done, on_kernel);
    if arguments.record {
        update::all(&studies, &records)?;
    }
    let sources: Vec<RunSource> = done.into_iter().flat_map(sim_first).map(source).collect();
    if on_kernel {
        compare(&records, &out)?;
    }
    write_json(&out.join(STUDIES), &records)?;
    write_text(&out.join(REPORT), &records.page(&out, &sources)?)?;
    match arguments.json {
        true => screen::print_json(&records)?,
        false => screen::print(&text(&records, &out))?,
    }
    let mut all = records.studies.iter().flat_map(|study| &study.claims);
    let outcomes_agree = all.all(|claim| claim.outcome == claim.recorded);
    let as_recorded = if arguments.record { outcomes_agree } else { records.as_recorded };
    Ok(if as_recorded { Ending::Done } else { Ending::ClaimDiffers })
}

/// Whether the kernel is asked for. The studies' outcomes on record are those
/// of the simulator, so it is never left out.
fn on_kernel(arguments: &Reproduce) -> Result<bool, Failure> {
    let on = chosen_grounds(&arguments.on)?;
    if !on.contains(&Ground::Sim) {
        let what = "studies are compared with what the simulator gives".to_string();
        return Err(Failure::Usage(what, "write --on sim,kernel".to_string()));
    }
    let kernel = on.contains(&Ground::Kernel);
    if kernel {
        knee_kernel::check_host()?;
    }
    Ok(kernel)
}

fn plan<'s>(study: &'s NamedStudy, out: &Path, on_kernel: bool) -> Vec<Planned<'s>> {
    let here = study.study.runs.iter().filter(|run| run.grounds.contains(&Ground::Sim));
    let planned = |run: &'s StudyRun, ground: Ground| {
        let mut below = format!("{}/{}", study.name, run.name);
        if on_kernel {
            below = format!("{below}/{}", grounds::word(ground));
        }
        Planned { run, ground, directory: out.join(&below), below }
    };
    let real = if on_kernel { kernel::sorted(&study.study).0 } else { Vec::new() };
    let real = real.into_iter().map(|run| planned(run, Ground::Kernel));
    here.map(|run| planned(run, Ground::Sim)).chain(real).collect()
}

/// Compares each run that both grounds made: `fidelity.json` and a page of
/// both, in the run's directory.
fn compare(records: &StudyRecords, out: &Path) -> Result<(), Failure> {
    let runs = records.studies.iter().flat_map(|study| study.kernel.iter().flat_map(|k| &k.runs));
    for run in runs {
        let directory = out.join(&run.directory);
        let Some(both) = directory.parent().filter(|both| grounds::are_in(both)) else { continue };
        let scenario = directory.join(knee_record::SCENARIO);
        let line = format!("knee run {} --on sim,kernel", quoted(&scenario.to_string_lossy()));
        grounds::compare(both, &line)?;
    }
    Ok(())
}

/// As the document has them.
fn sim_first(runs: Vec<Done<'_>>) -> impl Iterator<Item = Done<'_>> {
    let (sim, kernel): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|done| done.ground == Ground::Sim);
    sim.into_iter().chain(kernel)
}

/// Runs everything; nothing when it was interrupted.
fn carry_out<'s>(
    arguments: &Reproduce,
    plans: Vec<Vec<Planned<'s>>>,
) -> Result<Option<Vec<Vec<Done<'s>>>>, Failure> {
    let all: Vec<&Planned<'_>> = plans.iter().flatten().collect();
    let first = all.iter().map(|p| Job {
        scenario: &p.run.scenario,
        ground: p.ground,
        directory: Some(&p.directory),
        packet_log: false,
    });
    let further = all.iter().flat_map(|p| p.further_seeds()).map(|scenario| Job {
        scenario,
        ground: Ground::Sim,
        directory: None,
        packet_log: false,
    });
    let jobs: Vec<Job<'_>> = first.chain(further).collect();
    let keep = |index: usize, mut finished: Finished| {
        // Of further seeds only the claims are kept.
        let Some(Planned { run, directory, .. }) = all.get(index) else { return Ok(finished) };
        let resolved = (knee_record::SCENARIO, run.scenario.resolved.as_bytes());
        let inputs: Vec<_> = std::iter::once(resolved).chain(named_files(&run.scenario)).collect();
        directory::keep(directory, &run.scenario, &mut finished, &inputs)?;
        Ok(finished)
    };
    let mut finished = run_all(&jobs, arguments.output.jobs, keep)?;
    if interrupt::requested() {
        return Ok(None);
    }
    let mut further = finished.split_off(all.len()).into_iter().flatten();
    let mut finished = finished.into_iter();
    let mut done = |planned: Planned<'s>| {
        let finished = finished.next().flatten()?;
        let further = further.by_ref().take(planned.further_seeds().len()).collect();
        let Planned { run, ground, below, .. } = planned;
        Some(Done { run, ground, below, finished, further })
    };
    Ok(plans.into_iter().map(|study| study.into_iter().map(&mut done).collect()).collect())
}

fn gather(
    arguments: &Reproduce,
    studies: &[NamedStudy],
    done: &[Vec<Done<'_>>],
    on_kernel: bool,
) -> StudyRecords {
    let pairs = studies.iter().zip(done);
    let studies: Vec<StudyRecord> =
        pairs.map(|(study, runs)| gather_study(study, runs, on_kernel)).collect();
    let words = arguments.studies.iter().map(|word| format!(" {}", quoted(word)));
    let runs = done.iter().flatten();
    StudyRecords {
        schema: SCHEMA.to_string(),
        verdict: Verdict::worst(runs.map(|done| done.finished.summary.verdict)),
        as_recorded: studies.iter().flat_map(|study| &study.claims).all(|claim| claim.agrees),
        command: words
            .fold(COMMANDS[usize::from(on_kernel)].to_string(), |line, word| line + &word),
        studies,
    }
}

/// On the simulator; on both grounds.
const COMMANDS: [&str; 2] = ["knee reproduce", "knee reproduce --on sim,kernel"];

fn gather_study(named: &NamedStudy, done: &[Done<'_>], on_kernel: bool) -> StudyRecord {
    let study = &named.study;
    let split = done.iter().position(|done| done.ground != Ground::Sim).unwrap_or(done.len());
    let (runs, real) = done.split_at(split);
    let not_run = || -> Vec<NotRun> { kernel::sorted(study).1 };
    let claims = evaluate(study, runs);
    StudyRecord {
        name: named.name.clone(),
        title: study.name.clone(),
        source: study.source.clone(),
        about: study.summary.clone(),
        conclusion: fill_conclusion(study.conclusion.trim(), &claims),
        runs: runs.iter().map(run_record).collect(),
        kernel: on_kernel.then(|| {
            let mut record = kernel::record(study, real, not_run());
            fill_findings(&mut record.claims, &claims);
            record
        }),
        claims,
        command: format!("{} {}", COMMANDS[usize::from(on_kernel)], named.word),
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
    let views: Vec<Vec<RunView<'_>>> = runs.iter().map(Done::views).collect();
    let named: Vec<NamedSeeds<'_, '_>> = runs
        .iter()
        .zip(&views)
        .map(|(done, views)| NamedSeeds { name: &done.run.name, views })
        .collect();
    let over_all = study.claims.iter().map(|claim| {
        let model = models::evaluate(claim, &study.models);
        model.unwrap_or_else(|| evaluate_over_seeds(claim, &named)).against_record(claim)
    });
    let of_runs = runs.iter().flat_map(|done| &done.run.scenario.claims);
    let of_runs = claims_of_runs(runs).zip(of_runs);
    let of_runs = of_runs.map(|(outcome, claim)| outcome.against_record(claim));
    let measured: Vec<ClaimOutcome> = over_all.chain(of_runs).collect();
    let mut claims = measured.clone();
    fill_findings(&mut claims, &measured);
    claims
}

fn claims_of_runs<'r>(runs: &'r [Done<'_>]) -> impl Iterator<Item = ClaimOutcome> + 'r {
    runs.iter().flat_map(|done| {
        let claims = done.finished.summary.claims.iter().cloned();
        claims.map(|claim| ClaimOutcome { of: format!("{}/{}", done.run.name, claim.of), ..claim })
    })
}

fn text(records: &StudyRecords, out: &Path) -> String {
    let mut text = conclusions(records);
    for study in &records.studies {
        let about = format!("{} ({})\n{}\n", study.title, study.name, study.source);
        let claims = match &study.kernel {
            None => claims::text(&study.claims),
            Some(_) => text_of_both(study),
        };
        text += &format!("{about}\n{claims}\n");
    }
    if let Some(tally) = tally_on_kernel(records) {
        text += &tally;
    }
    let all = records.studies.iter().flat_map(|study| &study.claims);
    let runs: usize = records.studies.iter().map(|study| study.runs.len()).sum();
    text += &claims::drifts(all.clone());
    text += &format!(
        "{}\nverdict  {} ({runs} runs)\nreport   {}\nrepeat   {}\n",
        claims::tally(all),
        records.verdict,
        out.join(REPORT).display(),
        records.command
    );
    text
}

/// What came of each study, one paragraph each: what a reader wants first.
fn conclusions(records: &StudyRecords) -> String {
    let said = records.studies.iter().filter(|study| !study.conclusion.is_empty());
    said.map(|study| format!("{}\n{}\n\n", study.title, study.conclusion)).collect()
}

/// Each claim with its outcome on both grounds, and what was not run.
fn text_of_both(study: &StudyRecord) -> String {
    let Some(record) = &study.kernel else { return String::new() };
    let mut table = Table::new(&grounds::CLAIM_HEADS);
    for claim in &study.claims {
        let Some(other) = kernel::partner(claim, record) else { continue };
        let mood = if claim.outcome == other.outcome { Mood::Good } else { Mood::Neutral };
        table.row_in(mood, grounds::claim_row(claim, other));
    }
    let not_run = record.not_run.iter();
    let not_run = not_run.map(|run| format!("not on the kernel: {}, {}\n", run.name, run.reason));
    let unsound = record.runs.iter().filter(|run| run.summary.verdict != Verdict::Valid);
    let unsound = unsound.map(|run| {
        let reason = run.summary.verdict_reason.as_deref().unwrap_or("no reason given");
        format!("{} on the kernel: {}, {reason}\n", run.summary.verdict, run.name)
    });
    format!("{}{}{}", table.text(), not_run.collect::<String>(), unsound.collect::<String>())
}

fn tally_on_kernel(records: &StudyRecords) -> Option<String> {
    let kernels: Vec<_> =
        records.studies.iter().filter_map(|study| study.kernel.as_ref()).collect();
    let all = kernels.iter().flat_map(|record| &record.claims);
    (!kernels.is_empty()).then(|| format!("kernel   {}\nsim      ", claims::counts(all)))
}
