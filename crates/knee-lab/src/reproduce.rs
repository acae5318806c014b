//! Runs studies on one or more grounds and evaluates their claims. Implements `knee reproduce`.

mod ground;
mod seeds;

use crate::both;
use crate::command::{self, names, on};
use crate::directory::{REPORT, STUDIES};
use crate::error::Error;
use crate::ground::{Ground, KERNEL, Pace, SIMULATOR};
use crate::job::{Job, Run};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::models;
use crate::studies::{NamedStudy, StudyError, built_in_studies};
use crate::study_page::RunSource;
use crate::study_record::{GroundRecord, NotRun, RunRecord, SCHEMA, StudyRecord, StudyRecords};
use crate::text::named_files;
use knee_record::{
    ClaimOutcome, Manifest, NamedRun, Program, RunView, Verdict, evaluate_in_study,
    fill_conclusion, fill_findings, over_seeds, read_manifest, read_run, write_json, write_text,
};
use knee_scenario::{Claim, Measure, Scenario, Study, StudyRun};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which claims of the studies are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that the conclusion of their study cites; all of a study whose conclusion cites none.
    Conclusions,
    /// All claims.
    AllClaims,
}

impl Scope {
    /// Whether a claim of the study is run.
    fn includes(self, study: &Study, claim: &Claim) -> bool {
        let cited = study.cited();
        self == Scope::AllClaims || cited.is_empty() || cited.contains(claim.id.as_str())
    }

    /// The claims of the study that are run; those in the scenarios of its runs are not among them.
    fn claims(self, study: &Study) -> impl Iterator<Item = &Claim> {
        study.claims.iter().filter(move |claim| self.includes(study, claim))
    }
}

/// The plan of a set of studies.
#[derive(Debug)]
pub struct Reproduction<'s> {
    studies: &'s [NamedStudy],
    scope: Scope,
    on: Vec<&'s dyn Ground>,
    out: PathBuf,
    /// Runs by study and by ground.
    plans: Vec<Vec<Planned<'s>>>,
}

/// A run of a study with its directory.
#[derive(Debug)]
struct Planned<'s> {
    run: &'s StudyRun,
    ground: &'s dyn Ground,
    /// Path below the output directory.
    below: String,
    directory: PathBuf,
    /// Whether a claim refers to a perfect scheduler.
    perfect: bool,
    /// Whether an interrupted reproduction has left its records in the directory.
    is_done: bool,
}

impl<'s> Planned<'s> {
    /// Further seeds; none in real time, where one seed must suffice.
    fn further_seeds(&self) -> &'s [Scenario] {
        if self.ground.pace() == Pace::Virtual { &self.run.further_seeds } else { &[] }
    }

    /// Whether the directory holds this run, in real time and to its end, by the same program. The
    /// rates of several paths over time are in no file, so such runs are made again.
    fn is_recorded(&self, program: &Program) -> bool {
        let is_of_one_path = || self.run.scenario.flows.iter().all(|flow| flow.multipath.is_none());
        let is_same = |manifest: Manifest| {
            manifest.program == *program
                && !manifest.interrupted
                && fs::read_to_string(self.directory.join(knee_record::SCENARIO))
                    .is_ok_and(|text| text == self.run.scenario.resolved)
        };
        self.ground.pace() == Pace::Real
            && is_of_one_path()
            && read_manifest(&self.directory).is_ok_and(is_same)
    }
}

/// A completed run of a study.
struct Done<'s> {
    run: &'s StudyRun,
    ground: &'s dyn Ground,
    below: String,
    finished: Run,
}

/// All runs.
struct Ended<'s> {
    /// By study and run.
    done: Vec<Vec<Done<'s>>>,
    /// Claims with further seeds, by study.
    further: Vec<seeds::Outcomes>,
}

impl Done<'_> {
    fn view(&self) -> RunView<'_> {
        self.finished.view(&self.run.scenario)
    }
}

impl<'s> Reproduction<'s> {
    /// Plans the claims of studies that `scope` includes on some grounds; results are stored below
    /// `out`. The simulator is required, since recorded outcomes refer to it.
    ///
    /// # Errors
    /// The simulator is missing, or the host does not support another ground.
    pub fn new(
        studies: &'s [NamedStudy],
        scope: Scope,
        on: Vec<&'s dyn Ground>,
        out: PathBuf,
    ) -> Result<Reproduction<'s>, Error> {
        if !on.iter().any(|ground| ground.name() == SIMULATOR) {
            return Err(StudyError::WithoutSimulator.into());
        }
        on.iter().try_for_each(|ground| ground.check_host())?;
        let plans = studies.iter().map(|study| plan(study, scope, &out, &on)).collect();
        Ok(Reproduction { studies, scope, on, out, plans })
    }

    /// Takes over what an interrupted reproduction of the same scenarios by the same program has left
    /// in the directory: its runs in real time, which are not made again. Returns how many these are.
    pub fn resume(&mut self, program: &Program) -> usize {
        // One that has ended is not continued.
        if self.out.join(STUDIES).exists() {
            return 0;
        }
        let all = self.plans.iter_mut().flatten();
        all.map(|planned| {
            planned.is_done = planned.is_recorded(program);
            usize::from(planned.is_done)
        })
        .sum()
    }

    /// Directories of the runs that are to be made, the parent directory first.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.out).chain(self.missing().map(|planned| &planned.directory))
    }

    /// All runs that are to be made: those that are stored, then those of further seeds, seed by seed,
    /// of which only the claims are kept.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let kept = self.missing();
        let kept = kept.map(|p| Job {
            perfect: p.perfect,
            ..Job::kept(&p.run.scenario, p.ground, &p.directory)
        });
        let further = self.plans.iter().flat_map(|plan| seeds::of(plan)).flatten();
        let further =
            further.map(|(p, scenario)| Job { perfect: p.perfect, ..Job::new(scenario, p.ground) });
        kept.chain(further).collect()
    }

    fn missing(&self) -> impl Iterator<Item = &Planned<'s>> {
        self.plans.iter().flatten().filter(|planned| !planned.is_done)
    }

    /// The command that repeats all of them.
    fn command(&self) -> String {
        if let [NamedStudy { repeat: Some(command), .. }] = self.studies {
            return format!("{command}{}", on(&names(&self.on)));
        }
        let all = self.studies.iter().map(|study| study.word.as_str()).eq(built_in_studies());
        let words = self.studies.iter().filter(|_| !all).map(|study| format!(" {}", study.word));
        format!("knee reproduce{}{}", self.options(), words.collect::<String>())
    }

    /// Options of that command.
    fn options(&self) -> String {
        let all = if self.scope == Scope::AllClaims { " --all" } else { "" };
        let shift = match self.studies.first().map_or(0, |study| study.seed_shift) {
            0 => String::new(),
            shift => format!(" --seed-shift {shift}"),
        };
        format!("{}{all}{shift}", on(&names(&self.on)))
    }
}

fn plan<'s>(
    study: &'s NamedStudy,
    scope: Scope,
    out: &Path,
    on: &[&'s dyn Ground],
) -> Vec<Planned<'s>> {
    let is_needed = |run: &&StudyRun| {
        scope == Scope::AllClaims
            || study.study.cited().is_empty()
            || scope.claims(&study.study).any(|claim| concerns(claim, run))
    };
    let of_ground = |ground: &&'s dyn Ground| {
        let ground = *ground;
        let (able, _) = ground::sorted(&study.study, ground);
        let planned = able.into_iter().filter(is_needed).map(move |run| {
            let mut below = format!("{}/{}", study.name, run.name);
            if on.len() > 1 {
                below = format!("{below}/{}", ground.name());
            }
            let perfect = asks_for_perfect(&study.study, run);
            Planned { run, ground, directory: out.join(&below), below, perfect, is_done: false }
        });
        planned.collect::<Vec<_>>()
    };
    on.iter().flat_map(of_ground).collect()
}

/// Whether a claim of the run, or a claim of the study about it, refers to a perfect scheduler.
fn asks_for_perfect(study: &Study, run: &StudyRun) -> bool {
    let over_runs = study.claims.iter().filter(|claim| concerns(claim, run));
    let mut claims = over_runs.chain(&run.scenario.claims);
    claims.any(|claim| claim.measure == Measure::CompletionOverPerfect)
}

/// Whether a claim of a study is about a run.
fn concerns(claim: &Claim, run: &StudyRun) -> bool {
    let mut targets = std::iter::once(&claim.of).chain(&claim.relative_to);
    targets.any(|target| target.split_once('/').is_some_and(|(name, _)| name == run.name))
}

impl Lab {
    /// Runs studies, stores their runs, and writes document and page. The directories must have
    /// been [`Lab::claim`]ed. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// The first failure of a run, or a file that cannot be written.
    pub fn reproduce(&self, what: &Reproduction<'_>) -> Result<Option<StudyRecords>, Error> {
        let Some(Ended { done, further }) = self.run_studies(what)? else { return Ok(None) };
        let records = gather(what, &done, &further);
        let sources: BTreeMap<String, RunSource> = done.into_iter().flatten().map(source).collect();
        compare(&records, &what.out)?;
        write_json(&what.out.join(STUDIES), &records)?;
        write_text(&what.out.join(REPORT), &records.page(&what.out, &sources)?)?;
        Ok(Some(records))
    }

    /// Runs everything; `None` if it was stopped.
    fn run_studies<'s>(&self, what: &Reproduction<'s>) -> Result<Option<Ended<'s>>, Error> {
        let all: Vec<&Planned<'_>> = what.missing().collect();
        let further = seeds::Further::new(what);
        let keep = |index: usize, mut finished: Run| {
            // Only the claims of further seeds are kept.
            let Some(Planned { run, directory, .. }) = all.get(index) else {
                further.keep(index - all.len(), finished);
                return Ok(None);
            };
            let resolved = (knee_record::SCENARIO, run.scenario.resolved.as_bytes());
            let inputs = std::iter::once(resolved).chain(named_files(&run.scenario));
            let inputs: Vec<_> = inputs.collect();
            self.keep(directory, &run.scenario, &mut finished, &inputs)?;
            Ok(Some(finished))
        };
        // Those of further seeds as they are listed, so that runs of one seed end together.
        let order = |loads: &[Load]| {
            let stored = costliest_first(&loads[..all.len()]);
            stored.into_iter().chain(all.len()..loads.len()).collect()
        };
        let finished = self.run_in_order(&what.jobs(), order, keep)?;
        if self.is_stopped() {
            return Ok(None);
        }
        let mut finished = finished.into_iter();
        let mut done = |planned: &Planned<'s>| -> Result<Done<'s>, Error> {
            let Planned { run, ground, ref below, ref directory, is_done, .. } = *planned;
            let finished = match is_done {
                true => Run::from(read_run(directory)?),
                false => finished.next().flatten().flatten().ok_or(Error::Stopped)?,
            };
            Ok(Done { run, ground, below: below.clone(), finished })
        };
        let plans = what.plans.iter();
        let done: Result<Vec<Vec<Done<'s>>>, Error> =
            plans.map(|study| study.iter().map(&mut done).collect()).collect();
        Ok(Some(Ended { done: done?, further: further.outcomes(what.studies.len()) }))
    }
}

/// Compares each run done on both simulator and kernel: writes `fidelity.json` and a page of both
/// into the run's directory.
fn compare(records: &StudyRecords, out: &Path) -> Result<(), Error> {
    let runs = records.studies.iter().flat_map(|study| study.kernel.iter().flat_map(|k| &k.runs));
    for run in runs {
        let directory = out.join(&run.directory);
        let Some(above) = directory.parent() else { continue };
        let grounds = both::are_in(above);
        if !grounds.is_empty() {
            both::compare(above, &command::of_run(&directory, &grounds))?;
        }
    }
    Ok(())
}

fn gather(
    what: &Reproduction<'_>,
    done: &[Vec<Done<'_>>],
    further: &[seeds::Outcomes],
) -> StudyRecords {
    let pairs = what.studies.iter().zip(done).zip(further);
    let studies: Vec<StudyRecord> =
        pairs.map(|((study, runs), further)| gather_study(what, study, runs, further)).collect();
    let runs = done.iter().flatten();
    StudyRecords {
        schema: SCHEMA.to_string(),
        verdict: Verdict::worst(runs.map(|done| done.finished.summary.verdict)),
        as_recorded: studies.iter().flat_map(|study| &study.claims).all(|claim| claim.agrees),
        command: what.command(),
        studies,
    }
}

fn gather_study(
    what: &Reproduction<'_>,
    named: &NamedStudy,
    done: &[Done<'_>],
    further: &seeds::Outcomes,
) -> StudyRecord {
    let study = &named.study;
    let on_ground = |name: &str| -> Vec<&Done<'_>> {
        done.iter().filter(|done| done.ground.name() == name).collect()
    };
    let runs = on_ground(SIMULATOR);
    let mut claims = evaluate(named, what.scope, &runs, further);
    let mut told = claims.clone();
    let others = study.claims.iter().filter(|claim| !what.scope.includes(study, claim));
    told.extend(others.map(ClaimOutcome::from_record));
    let beside = what.on.iter().filter(|ground| ground.name() != SIMULATOR).map(|ground| {
        let not_run: Vec<NotRun> = ground::sorted(study, *ground).1;
        let mut record = ground::record((study, what.scope), &on_ground(ground.name()), not_run);
        fill_findings(&mut record.claims, &told);
        (ground.name().to_string(), record)
    });
    let mut grounds: BTreeMap<String, GroundRecord> = beside.collect();
    begin_sentences(study, &mut claims);
    grounds.values_mut().for_each(|record| begin_sentences(study, &mut record.claims));
    StudyRecord {
        name: named.name.clone(),
        title: study.name.clone(),
        source: study.source.clone(),
        about: study.summary.clone(),
        conclusion: fill_conclusion(study.conclusion.trim(), &in_order(study, &told)),
        claims_in_all: Some(told.len()),
        runs: runs.iter().map(|done| run_record(done)).collect(),
        kernel: grounds.remove(KERNEL),
        grounds,
        claims,
        command: match &named.repeat {
            Some(command) => format!("{command}{}", on(&names(&what.on))),
            None => format!("knee reproduce{} {}", what.options(), named.word),
        },
    }
}

/// Gives a claim that continues the sentence of an earlier one, `... five flows`, that sentence,
/// where the claims shown before it are of another.
fn begin_sentences(study: &Study, claims: &mut [ClaimOutcome]) {
    let continues = |says: &str| says.starts_with("...");
    let mut shown: Option<&Claim> = None;
    for outcome in claims {
        let same = |claim: &Claim| (&claim.id, &claim.says) == (&outcome.id, &outcome.says);
        let until = study.claims.iter().position(same).map_or(0, |place| place + 1);
        let first = study.claims[..until].iter().rfind(|claim| !continues(&claim.says));
        if let Some(first) = first.filter(|first| shown != Some(*first))
            && continues(&outcome.says)
        {
            outcome.says = format!("{} {}", first.says, outcome.says);
        }
        shown = first;
    }
}

/// Claims in the order of the study, which the ids in a conclusion keep; those of scenarios last.
fn in_order(study: &Study, claims: &[ClaimOutcome]) -> Vec<ClaimOutcome> {
    let place = |outcome: &ClaimOutcome| {
        let same = |claim: &Claim| (&claim.id, &claim.says) == (&outcome.id, &outcome.says);
        study.claims.iter().position(same).unwrap_or(usize::MAX)
    };
    let mut ordered = claims.to_vec();
    ordered.sort_by_key(place);
    ordered
}

fn run_record(done: &Done<'_>) -> RunRecord {
    RunRecord {
        name: done.run.name.clone(),
        directory: done.below.clone(),
        summary: done.finished.summary.clone(),
    }
}

fn source(done: Done<'_>) -> (String, RunSource) {
    let scenario = done.run.scenario.resolved.clone();
    (done.below, RunSource { records: done.finished.records, scenario })
}

/// Evaluates the claims over the study's runs and models, then those in the scenarios of the runs,
/// whose subjects get the run's name as a prefix. Findings also cite claims that were not run: with
/// their values on record. Values of other seeds than those on record may drift.
fn evaluate(
    named_study: &NamedStudy,
    scope: Scope,
    runs: &[&Done<'_>],
    further: &seeds::Outcomes,
) -> Vec<ClaimOutcome> {
    let study = &named_study.study;
    let against_record = |outcome: ClaimOutcome, claim: &Claim| match named_study.seed_shift {
        0 => outcome.against_record(claim),
        _ => outcome,
    };
    let views: Vec<RunView<'_>> = runs.iter().map(|done| done.view()).collect();
    let named: Vec<NamedRun<'_, '_>> = runs
        .iter()
        .zip(&views)
        .map(|(done, view)| NamedRun { name: &done.run.name, view })
        .collect();
    let over_all = scope.claims(study).enumerate().map(|(place, claim)| {
        let model = models::evaluate(claim, &study.models);
        let outcome = model.unwrap_or_else(|| {
            let first = evaluate_in_study(claim, &named);
            let others = further.get(&place).into_iter().flatten().cloned();
            over_seeds(claim, std::iter::once(first).chain(others).collect())
        });
        against_record(outcome, claim)
    });
    let of_runs = runs.iter().flat_map(|done| &done.run.scenario.claims);
    let of_runs = claims_of_runs(runs).zip(of_runs);
    let of_runs = of_runs.map(|(outcome, claim)| against_record(outcome, claim));
    let mut claims: Vec<ClaimOutcome> = over_all.chain(of_runs).collect();
    let mut told = claims.clone();
    told.extend(study.claims.iter().map(ClaimOutcome::from_record));
    fill_findings(&mut claims, &told);
    claims
}

/// Claims in the runs' own scenarios.
fn claims_of_runs<'r>(runs: &'r [&Done<'_>]) -> impl Iterator<Item = ClaimOutcome> + 'r {
    runs.iter().flat_map(|done| {
        let claims = done.finished.summary.claims.iter().cloned();
        claims.map(|claim| ClaimOutcome { of: format!("{}/{}", done.run.name, claim.of), ..claim })
    })
}
