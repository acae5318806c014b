//! Runs a scenario file on one or more grounds, once or repeatedly, and stores the results in a
//! directory. Implements `knee run`.

use crate::answers::{Questions, lacks_process};
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
    Answers, ClaimOutcome, Fidelity, Outcome as ClaimEnd, Records, RepeatSummary, SavedRun,
    Summary, read_run, write_json, write_text,
};
use knee_scenario::{Override, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest integer of a TOML file.
pub const SEED_MAX: u64 = i64::MAX as u64;

/// Settings of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentSettings<'g> {
    /// Overridden keys of the scenario.
    pub set: Vec<Override>,
    /// Seed of the first run, overriding the scenario's.
    pub seed: Option<u64>,
    /// Number of runs, with consecutive seeds.
    pub repeat: Option<u64>,
    /// The grounds.
    pub on: Vec<&'g dyn Ground>,
    /// Whether to write packet logs, on grounds that support them.
    pub packet_log: bool,
    /// Whether to capture packets, on grounds that support it.
    pub capture: bool,
    /// Whether to run the alternatives that answer the scenario's questions; see
    /// [`Lab::answer`]. They run if the simulator is among the grounds.
    pub alternatives: bool,
}

impl<'g> ExperimentSettings<'g> {
    /// Settings for a single run of the file as it is.
    pub fn on(ground: &'g dyn Ground) -> ExperimentSettings<'g> {
        ExperimentSettings {
            set: Vec::new(),
            seed: None,
            repeat: None,
            on: vec![ground],
            packet_log: false,
            capture: false,
            alternatives: true,
        }
    }
}

/// Settings that exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// Repeats are limited to one ground, since intervals belong to one ground.
    #[error("repeats work on one ground only")]
    RepeatsOnSeveralGrounds,
    /// No ground writes packet logs.
    #[error("only the simulator writes a packet log")]
    NoPacketLog,
    /// No ground captures packets.
    #[error("only grounds in real time have packets to capture")]
    NoCapture,
}

/// The plan for one file.
#[derive(Debug)]
pub struct Experiment<'g> {
    /// The scenario file.
    pub text: ScenarioText,
    /// Output directory.
    pub directory: PathBuf,
    /// Results of the alternatives, for the directory and its pages; see [`Lab::answer`].
    /// `None` before [`Lab::carry_out`].
    pub answers: Option<Answers>,
    /// Says why mixes under several controllers raise no question, if they do not.
    pub lacks_process: Option<String>,
    /// Whether the alternatives are to run.
    asks: bool,
    settings: ExperimentSettings<'g>,
    /// One run, or one for each repeat or ground.
    runs: Vec<Planned<'g>>,
}

#[derive(Debug)]
struct Planned<'g> {
    scenario: Scenario,
    ground: &'g dyn Ground,
    directory: PathBuf,
}

/// Outcome of an experiment.
#[derive(Debug)]
pub struct ExperimentOutcome {
    /// Summaries of the runs, in order.
    pub summaries: Vec<Summary>,
    /// Summary of all repeats.
    pub repeats: Option<RepeatSummary>,
    /// Comparison of the simulator with the kernel, if both ran.
    pub fidelity: Option<Fidelity>,
}

impl ExperimentOutcome {
    /// Whether all claims have their recorded outcome. A claim left untested because the host was
    /// too busy for real time is not a change.
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
    /// Reads the scenarios of all runs.
    ///
    /// # Errors
    /// All errors in the scenario, or an [`ExperimentError`].
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
        if settings.capture && !settings.on.iter().any(|ground| ground.captures()) {
            return Err(ExperimentError::NoCapture.into());
        }
        let set: Vec<Override> =
            settings.set.iter().cloned().chain(settings.seed.map(seed)).collect();
        let mut scenarios = vec![text.scenario(&set)?];
        for number in 1..settings.repeat.unwrap_or(1) {
            let next = seed(repeat_seed(scenarios[0].seed, number));
            let set: Vec<Override> = set.iter().cloned().chain([next]).collect();
            scenarios.push(text.scenario(&set)?);
        }
        let on_simulator = settings.on.iter().any(|ground| ground.name() == SIMULATOR);
        let questions = Questions::of(&scenarios[0]);
        let wanted = settings.alternatives && on_simulator;
        let asks = wanted && !questions.is_empty();
        let lacks_process = (wanted && !asks).then(|| lacks_process(&scenarios[0])).flatten();
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
        Ok(Experiment { text, directory, answers: None, lacks_process, asks, settings, runs })
    }

    /// The runs as jobs, in the order of repeats or grounds.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        self.runs.iter().map(|run| Job {
            packet_log: self.settings.packet_log,
            capture: self.settings.capture,
            perfect: true,
            ..Job::kept(&run.scenario, run.ground, &run.directory)
        })
    }

    /// The command that repeats a run with a seed, or all repeats. It omits output directory and
    /// parallelism.
    pub fn command(&self, seed: u64, repeat: Option<u64>) -> String {
        let ExperimentSettings { set, on: grounds, packet_log, capture, alternatives, .. } =
            &self.settings;
        let mut words = vec!["knee".to_string(), "run".to_string(), quoted(&self.text.name)];
        words.extend(set.iter().flat_map(|set| ["--set".to_string(), quoted(set.text())]));
        let further = grounds.iter().flat_map(|ground| ground.arguments());
        let further: String = further.map(|word| format!(" {}", quoted(&word))).collect();
        let line = words.join(" ") + &on(&names(grounds)) + &further + &format!(" --seed {seed}");
        let repeat = repeat.map_or(String::new(), |repeat| format!(" --repeat {repeat}"));
        let log = if *packet_log { " --packet-log" } else { "" };
        let capture = if *capture { " --capture" } else { "" };
        let alone = if *alternatives { "" } else { " --no-alternatives" };
        format!("{line}{repeat}{alone}{log}{capture}")
    }

    /// Whether the scenario implies questions that were not answered, because of a stop.
    pub fn is_unanswered(&self) -> bool {
        self.asks && self.answers.is_none()
    }

    /// Runs the alternatives, if the scenario asks for any.
    fn answer(&mut self, lab: &Lab) -> Result<(), Error> {
        let ExperimentSettings { set, seed: first, repeat, .. } = &self.settings;
        if self.asks {
            let set: Vec<Override> = set.iter().cloned().chain(first.map(seed)).collect();
            self.answers = lab.answer(&self.text, &set, repeat.unwrap_or(1))?;
        }
        Ok(())
    }

    /// Stores a run. Its page follows at once, unless it begins with answers that are still to
    /// come.
    fn keep(&self, lab: &Lab, run: &Planned<'_>, finished: &mut Run) -> Result<(), Error> {
        let inputs = self.text.inputs(&run.scenario);
        lab.keep(&run.directory, &run.scenario, finished, &inputs)?;
        match self.asks {
            true => Ok(()),
            false => self.write_page(run, &finished.records, &finished.summary),
        }
    }

    fn write_page(
        &self,
        Planned { scenario, directory, .. }: &Planned<'_>,
        records: &Records,
        summary: &Summary,
    ) -> Result<(), Error> {
        let command = self.command(scenario.seed, None);
        let answers = self.answers.as_ref();
        directory::write_page(directory, scenario, records, summary, answers, &command)
    }

    /// Writes the pages that [`Experiment::keep`] left out, of the runs that were kept.
    fn write_pages(&self, kept: &[Option<Summary>]) -> Result<(), Error> {
        let runs = self.runs.iter().zip(kept).filter(|(_, kept)| self.asks && kept.is_some());
        runs.map(|(run, _)| run).try_for_each(|run| {
            let SavedRun { records, summary, .. } = read_run(&run.directory)?;
            self.write_page(run, &records, &summary)
        })
    }

    /// Writes the results over all runs.
    fn outcome(&self, summaries: Vec<Summary>) -> Result<ExperimentOutcome, Error> {
        let repeats = self.settings.repeat.and_then(|_| RepeatSummary::new(&summaries));
        if let Some(repeats) = &repeats {
            write_json(&self.directory.join(REPEAT), repeats)?;
            let command = self.command(self.runs[0].scenario.seed, self.settings.repeat);
            let page = repeat_page(repeats, self.answers.as_ref(), &self.directory, &command)?;
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
    /// Runs experiments in parallel and stores them, then runs the alternatives that answer their
    /// questions and writes the pages: a stop keeps the runs that have ended. Their directories
    /// must have been [`Lab::claim`]ed.
    ///
    /// # Errors
    /// The first failure of a run, or a file that cannot be written.
    pub fn carry_out(
        &self,
        experiments: &mut [Experiment<'_>],
    ) -> Result<Vec<ExperimentOutcome>, Error> {
        let mut kept = self.run_and_keep(experiments)?.into_iter();
        experiments.iter_mut().try_for_each(|experiment| experiment.answer(self))?;
        let outcome = |one: &Experiment<'_>| {
            let kept: Vec<Option<Summary>> = kept.by_ref().take(one.runs.len()).collect();
            one.write_pages(&kept)?;
            one.outcome(kept.into_iter().flatten().collect())
        };
        experiments.iter().map(outcome).collect()
    }

    /// Runs experiments and stores them. Returns the summary of each run, in order; `None` for
    /// those that did not start because of a stop.
    fn run_and_keep(&self, experiments: &[Experiment<'_>]) -> Result<Vec<Option<Summary>>, Error> {
        let of_each = |one| move |run| (one, run);
        let runs: Vec<(&Experiment<'_>, &Planned<'_>)> =
            experiments.iter().flat_map(|one| one.runs.iter().map(of_each(one))).collect();
        let jobs: Vec<Job<'_>> = experiments.iter().flat_map(Experiment::jobs).collect();
        self.run_all(&jobs, |index, mut finished| {
            let (experiment, run) = runs[index];
            experiment.keep(self, run, &mut finished)?;
            Ok(finished.summary)
        })
    }
}

/// Checks that host and grounds support all jobs.
///
/// # Errors
/// What prevents the first job from running, and the remedy.
pub fn check_jobs(jobs: &[Job<'_>]) -> Result<(), Error> {
    let grounds: BTreeMap<&str, &dyn Ground> =
        jobs.iter().map(|job| (job.ground.name(), job.ground)).collect();
    grounds.values().try_for_each(|ground| ground.check_host())?;
    jobs.iter().try_for_each(|job| Ok(job.ground.check(job.scenario)?))
}

/// Seed of a repeat, numbered from zero; seeds are consecutive.
pub(crate) fn repeat_seed(first: u64, number: u64) -> u64 {
    (first + number) % (SEED_MAX + 1)
}

/// Override that sets the seed.
pub(crate) fn seed(seed: u64) -> Override {
    Override::new("seed", &seed.to_string())
}
