//! A scenario file on some grounds, once or several times, kept in a
//! directory: what `knee run` does.

use crate::both;
use crate::command::{names, on, quoted};
use crate::directory::{self, ANSWERS, REPEAT, REPORT, repeat};
use crate::error::Error;
use crate::ground::{Ground, SIMULATOR};
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::repeat_page::repeat_page;
use crate::text::ScenarioText;
use knee_record::{
    Answers, ClaimOutcome, Fidelity, Outcome as ClaimEnd, RepeatSummary, Summary, write_json,
    write_text,
};
use knee_scenario::{Override, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Integers of a TOML file end here.
pub const SEED_MAX: u64 = i64::MAX as u64;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct ExperimentSettings<'g> {
    /// Keys of the scenario that are set otherwise.
    pub set: Vec<Override>,
    /// Seed of the first run, instead of the scenario's.
    pub seed: Option<u64>,
    /// How often, with the seed and those that follow it.
    pub repeat: Option<u64>,
    /// Where.
    pub on: Vec<&'g dyn Ground>,
    /// Also write packet logs, on grounds that can.
    pub packet_log: bool,
    /// Also run the alternatives that answer what the scenario asks; see
    /// [`Experiment::answer`].
    pub alternatives: bool,
}

impl<'g> ExperimentSettings<'g> {
    /// Once, as the file has it.
    pub fn on(ground: &'g dyn Ground) -> ExperimentSettings<'g> {
        ExperimentSettings {
            set: Vec::new(),
            seed: None,
            repeat: None,
            on: vec![ground],
            packet_log: false,
            alternatives: true,
        }
    }
}

/// What settings do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// Intervals are those of one ground.
    #[error("repeats give intervals on one ground")]
    RepeatsOnSeveralGrounds,
    /// None of the grounds can.
    #[error("only the simulator writes a packet log")]
    NoPacketLog,
}

/// What is to be done about one file.
#[derive(Debug)]
pub struct Experiment<'g> {
    /// The file.
    pub text: ScenarioText,
    /// Where all of it is kept.
    pub directory: PathBuf,
    /// What its alternatives came to, for its directory and its pages; see
    /// [`Lab::answer`].
    pub answers: Option<Answers>,
    settings: ExperimentSettings<'g>,
    /// One, or as many as there are repeats or grounds.
    runs: Vec<Planned<'g>>,
}

#[derive(Debug)]
struct Planned<'g> {
    scenario: Scenario,
    ground: &'g dyn Ground,
    directory: PathBuf,
}

/// What came of an experiment.
#[derive(Debug)]
pub struct ExperimentOutcome {
    /// Of each run that was made, in order.
    pub summaries: Vec<Summary>,
    /// Over all repeats.
    pub repeats: Option<RepeatSummary>,
    /// The simulator against the kernel, when both have run.
    pub fidelity: Option<Fidelity>,
}

impl ExperimentOutcome {
    /// Whether all claims came out as on record. One that a host too busy for
    /// real time left untested is no news.
    pub fn is_as_recorded(&self) -> bool {
        self.summaries.iter().all(|summary| {
            let excused = |claim: &ClaimOutcome| {
                summary.ground != SIMULATOR && claim.outcome == ClaimEnd::NotTestedHere
            };
            summary.claims.iter().all(|claim| claim.agrees || excused(claim))
        })
    }
}

impl<'g> Experiment<'g> {
    /// Reads the scenario of every run.
    ///
    /// # Errors
    /// Everything that is wrong with it, or an [`ExperimentError`].
    pub fn new(
        text: ScenarioText,
        settings: ExperimentSettings<'g>,
        directory: PathBuf,
    ) -> Result<Experiment<'g>, Error> {
        if settings.repeat.is_some() && settings.on.len() > 1 {
            return Err(ExperimentError::RepeatsOnSeveralGrounds.into());
        }
        if settings.packet_log && !settings.on.iter().any(|ground| ground.writes_packet_log()) {
            return Err(ExperimentError::NoPacketLog.into());
        }
        let set: Vec<Override> =
            settings.set.iter().cloned().chain(settings.seed.map(seed)).collect();
        let mut scenarios = vec![text.scenario(&set)?];
        for number in 1..settings.repeat.unwrap_or(1) {
            let next = seed(repeat_seed(scenarios[0].seed, number));
            let set: Vec<Override> = set.iter().cloned().chain([next]).collect();
            scenarios.push(text.scenario(&set)?);
        }
        let mut runs = Vec::new();
        for (scenario, number) in scenarios.into_iter().zip(1..) {
            let at = match settings.repeat {
                Some(_) => directory.join(repeat(number)),
                None => directory.clone(),
            };
            runs.extend(settings.on.iter().map(|ground| Planned {
                scenario: scenario.clone(),
                ground: *ground,
                directory: match settings.on.len() {
                    1 => at.clone(),
                    _ => at.join(ground.name()),
                },
            }));
        }
        Ok(Experiment { text, directory, answers: None, settings, runs })
    }

    /// Its runs, in the order of its repeats or of its grounds.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        self.runs.iter().map(|run| Job {
            packet_log: self.settings.packet_log,
            perfect: true,
            ..Job::kept(&run.scenario, run.ground, &run.directory)
        })
    }

    /// The line that repeats a run with a seed, or all repeats of it. Where to
    /// write and how many at a time is not part of it.
    pub fn command(&self, seed: u64, repeat: Option<u64>) -> String {
        let ExperimentSettings { set, on: grounds, packet_log, alternatives, .. } = &self.settings;
        let mut words = vec!["knee".to_string(), "run".to_string(), quoted(&self.text.name)];
        words.extend(set.iter().flat_map(|set| ["--set".to_string(), quoted(set.text())]));
        let line = words.join(" ") + &on(&names(grounds)) + &format!(" --seed {seed}");
        let repeat = repeat.map_or(String::new(), |repeat| format!(" --repeat {repeat}"));
        let log = if *packet_log { " --packet-log" } else { "" };
        let alone = if *alternatives { "" } else { " --no-alternatives" };
        format!("{line}{repeat}{alone}{log}")
    }

    /// Answers what the scenario asks, on the simulator; not where it does not
    /// run there, or where its settings leave the alternatives out.
    ///
    /// # Errors
    /// Those of [`Lab::answer`].
    pub fn answer(&mut self, lab: &Lab) -> Result<(), Error> {
        let ExperimentSettings { set, seed: first, repeat, on, alternatives, .. } = &self.settings;
        if *alternatives && on.iter().any(|ground| ground.name() == SIMULATOR) {
            let set: Vec<Override> = set.iter().cloned().chain(first.map(seed)).collect();
            self.answers = lab.answer(&self.text, &set, repeat.unwrap_or(1))?;
        }
        Ok(())
    }

    fn keep(&self, lab: &Lab, run: &Planned<'_>, finished: &mut Run) -> Result<(), Error> {
        let inputs = self.text.inputs(&run.scenario);
        lab.keep(&run.directory, &run.scenario, finished, &inputs)?;
        let command = self.command(run.scenario.seed, None);
        let answers = self.answers.as_ref();
        directory::write_page(&run.directory, &run.scenario, finished, answers, &command)
    }

    /// Writes what came out over all its runs.
    fn outcome(&self, summaries: Vec<Summary>) -> Result<ExperimentOutcome, Error> {
        let repeats = self.settings.repeat.and_then(|_| RepeatSummary::new(&summaries));
        if let Some(repeats) = &repeats {
            write_json(&self.directory.join(REPEAT), repeats)?;
            let command = self.command(self.runs[0].scenario.seed, self.settings.repeat);
            let page = repeat_page(repeats, self.answers.as_ref(), &command)?;
            write_text(&self.directory.join(REPORT), &page)?;
        }
        if let Some(answers) = &self.answers {
            write_json(&self.directory.join(ANSWERS), answers)?;
        }
        let several = self.settings.on.len() > 1;
        let fidelity = match several && !both::are_in(&self.directory).is_empty() {
            true => {
                let command = self.command(self.runs[0].scenario.seed, None);
                Some(both::compare(&self.directory, &command)?)
            }
            false => None,
        };
        Ok(ExperimentOutcome { summaries, repeats, fidelity })
    }
}

impl Lab {
    /// Runs experiments, all their runs side by side, and keeps them with
    /// their pages. Their directories are to be [`Lab::claim`]ed before.
    ///
    /// # Errors
    /// The first failure of a run, or that something cannot be written.
    pub fn carry_out(
        &self,
        experiments: &[Experiment<'_>],
    ) -> Result<Vec<ExperimentOutcome>, Error> {
        let of_each = |one| move |run| (one, run);
        let runs: Vec<(&Experiment<'_>, &Planned<'_>)> =
            experiments.iter().flat_map(|one| one.runs.iter().map(of_each(one))).collect();
        let jobs: Vec<Job<'_>> = experiments.iter().flat_map(Experiment::jobs).collect();
        let summaries = self.run_all(&jobs, |index, mut finished| {
            let (experiment, run) = runs[index];
            experiment.keep(self, run, &mut finished)?;
            Ok(finished.summary)
        })?;
        let mut summaries = summaries.into_iter();
        let outcome = |one: &Experiment<'_>| {
            one.outcome(summaries.by_ref().take(one.runs.len()).flatten().collect())
        };
        experiments.iter().map(outcome).collect()
    }
}

/// Whether the host and the grounds can do all jobs.
///
/// # Errors
/// What keeps the first from running, and what to do about it.
pub fn check_jobs(jobs: &[Job<'_>]) -> Result<(), Error> {
    let grounds: BTreeMap<&str, &dyn Ground> =
        jobs.iter().map(|job| (job.ground.name(), job.ground)).collect();
    grounds.values().try_for_each(|ground| ground.check_host())?;
    jobs.iter().try_for_each(|job| Ok(job.ground.check(job.scenario)?))
}

/// Seed of a repeat, from zero: those that follow the first.
pub(crate) fn repeat_seed(first: u64, number: u64) -> u64 {
    (first + number) % (SEED_MAX + 1)
}

/// Sets the seed.
pub(crate) fn seed(seed: u64) -> Override {
    Override::new("seed", &seed.to_string())
}
