//! Runs a scenario at every combination of some settings and stores each run, so that an
//! interrupted sweep can continue. Implements `knee sweep`.

mod plan;
mod store;
mod vary;

pub use plan::{PlannedRun, Point, Sweep};
pub use store::{Found, SweepStore, TABLE, program_hash, set_program_file};
pub(crate) use store::{RunOfPoint, run_of_point};
pub(crate) use vary::list_of_values;
pub use vary::{Vary, VaryError};

use crate::command::quoted;
use crate::directory::{REPORT, SWEEP};
use crate::error::Error;
use crate::ground::{Ground, SIMULATOR};
use crate::job::{Job, execute_sound};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::origin::{self, OriginSettings, Sources};
use knee_record::{
    Control, Meter, SweepRow, SweepRun, SweepSummary, write_json, write_sweep, write_text,
};
use knee_report::sweep_page;
use knee_scenario::Override;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Settings of a sweep.
#[derive(Clone, Debug)]
pub struct SweepSettings<'g> {
    /// Varied keys with their values.
    pub vary: Vec<Vary>,
    /// Keys overridden at every point.
    pub set: Vec<Override>,
    /// Seed of the first repeat, overriding the scenario's.
    pub seed: Option<u64>,
    /// Number of runs at each point, with consecutive seeds.
    pub repeat: Option<u64>,
    /// Whether to skip combinations that are not valid scenarios.
    pub skip_invalid: bool,
    /// The key whose values the headline compares; by default the last varied one whose
    /// values are names, or else the last one.
    pub about: Option<String>,
    /// The ground.
    pub on: &'g dyn Ground,
}

impl<'g> SweepSettings<'g> {
    /// Settings for one run at each point.
    pub fn on(ground: &'g dyn Ground, vary: Vec<Vary>) -> SweepSettings<'g> {
        let (set, seed, repeat) = (Vec::new(), None, None);
        SweepSettings { vary, set, seed, repeat, skip_invalid: false, about: None, on: ground }
    }
}

/// Outcome of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// Results by point, including runs that existed.
    pub summary: SweepSummary,
    /// Number of runs done by this call.
    pub runs: usize,
    /// Runs whose figures do not count, each with the reason: the host did not keep up, or a program
    /// failed or lacked the processor. The same command tries them again.
    pub unsound: Vec<String>,
    /// Data packets of these runs.
    pub packets: u64,
    /// CPU time of these runs, seconds.
    pub cpu_s: f64,
    /// Elapsed time, seconds.
    pub wall_s: f64,
}

/// Why a sweep is not possible.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Too many runs.
    #[error("{points} points with {repeats} runs each are too many")]
    TooMany {
        /// Number of combinations.
        points: usize,
        /// Runs at each point.
        repeats: u64,
        /// Maximum number of runs.
        runs_max: usize,
    },
    /// A key is varied twice.
    #[error("{0} is varied twice")]
    VariedTwice(String),
    /// A key is set as well as varied.
    #[error("{0} is both set and varied")]
    SetAndVaried(String),
    /// The headline key does not vary.
    #[error("{key} is not varied")]
    NotVaried {
        /// The requested key.
        key: String,
        /// The varied keys.
        known: Vec<String>,
    },
    /// The directory holds the results of another sweep.
    #[error("{} contains another sweep", .0.display())]
    Another(PathBuf),
    /// A file has changed since the sweep was planned.
    #[error("a file named in {0} has changed since")]
    Changed(String),
}

impl Sweep<'_> {
    /// The command that repeats or resumes the sweep.
    pub fn command(&self) -> String {
        let settings = &self.settings;
        let mut words = vec!["knee".to_string(), "sweep".to_string(), quoted(&self.text.name)];
        for vary in &settings.vary {
            words.extend(["--vary".to_string(), quoted(&vary.text)]);
        }
        words.extend(self.set_words());
        words.extend(settings.seed.iter().flat_map(|n| ["--seed".to_string(), n.to_string()]));
        words.extend(settings.repeat.iter().flat_map(|k| ["--repeat".to_string(), k.to_string()]));
        words.extend(settings.about.iter().flat_map(|key| ["--for".to_string(), quoted(key)]));
        if settings.skip_invalid {
            words.push("--skip-invalid".to_string());
        }
        words.extend(self.on_words());
        words.join(" ")
    }

    /// The common part of the commands that repeat single runs.
    fn command_of_a_run(&self) -> String {
        let words = ["knee".to_string(), "run".to_string(), quoted(&self.text.name)];
        let words = words.into_iter().chain(self.set_words()).chain(self.on_words());
        words.collect::<Vec<_>>().join(" ")
    }

    fn on_words(&self) -> Vec<String> {
        match self.settings.on.name() {
            SIMULATOR => Vec::new(),
            name => vec!["--on".to_string(), quoted(name)],
        }
    }

    fn set_words(&self) -> impl Iterator<Item = String> {
        self.settings.set.iter().flat_map(|set| ["--set".to_string(), quoted(set.text())])
    }

    fn sources(&self) -> Sources {
        Sources { text: self.text.clone(), files: self.files.clone() }
    }

    fn origin(&self) -> OriginSettings {
        let SweepSettings { vary, set, seed, repeat, skip_invalid, about, .. } = &self.settings;
        OriginSettings::Sweep {
            vary: vary.iter().map(|vary| vary.text.clone()).collect(),
            set: set.iter().map(|set| set.text().to_string()).collect(),
            seed: *seed,
            repeat: *repeat,
            skip_invalid: *skip_invalid,
            about: about.clone(),
        }
    }

    /// Summarises the results so far.
    fn summary(&self, store: &SweepStore) -> SweepSummary {
        let mut runs: Vec<(Vec<usize>, Vec<SweepRun>)> =
            self.points.iter().map(|point| (point.at.clone(), Vec::new())).collect();
        for run in &self.runs {
            runs[run.point].1.extend(store.finished(run).cloned());
        }
        runs.retain(|(_, runs)| !runs.is_empty());
        let summary = SweepSummary::new(
            &self.name,
            (self.command(), self.command_of_a_run()),
            self.keys.clone(),
            (self.settings.repeat.unwrap_or(1), self.runs.len()),
            &runs,
            self.left_out.clone(),
        );
        let named = self.settings.about.as_ref();
        let named = named.and_then(|name| self.keys.iter().position(|key| key.name == *name));
        let several = || (0..self.keys.len()).rev().filter(|key| self.keys[*key].values.len() > 1);
        let names = || several().find(|key| self.keys[*key].is_of_names());
        let about = named.or_else(names).or_else(|| several().next());
        SweepSummary { about, half_and_half: self.half_and_half, ..summary }
    }
}

impl Lab {
    /// Performs the missing runs of a sweep, and writes table, document and page over all runs.
    ///
    /// # Errors
    /// [`SweepError::Another`], the first failure of a run, or a file that cannot be written.
    pub fn sweep(&self, sweep: &Sweep<'_>, store: &mut SweepStore) -> Result<Swept, Error> {
        sweep.settings.on.check_host()?;
        store.check(sweep)?;
        store.begin(&sweep.summary(store))?;
        let ground = sweep.settings.on.name();
        origin::keep(self, &store.directory, ground, &[sweep.sources()], sweep.origin())?;
        let meter = Meter::start();
        let done = self.fill(sweep, store)?;
        let wall_s = meter.stop().wall_s;
        store.refresh()?;
        let summary = sweep.summary(store);
        gather(sweep, store, &summary)?;
        Ok(Swept {
            summary,
            runs: done.len(),
            packets: done.iter().map(|done| done.packets).sum(),
            cpu_s: done.iter().map(|done| done.cpu_s).sum(),
            unsound: done.into_iter().filter_map(|done| done.unsound).collect(),
            wall_s,
        })
    }

    /// Runs all points of the first repeat, then of the second and so on, the costliest first
    /// within each. A run that several points share is done once.
    fn fill(&self, sweep: &Sweep<'_>, store: &SweepStore) -> Result<Vec<Done>, Error> {
        let mut ids = BTreeSet::new();
        let todo = sweep.runs.iter().filter(|run| store.finished(run).is_none());
        let todo: Vec<&PlannedRun> = todo.filter(|run| ids.insert(&run.id)).collect();
        let loads: Vec<Load> = todo.iter().map(|run| run.load).collect();
        let mut order = costliest_first(&loads);
        order.sort_by_key(|number| todo[*number].repeat);
        let done = self.side_by_side(&loads, order, |number, control| {
            make(sweep, store, todo[number], control)
        })?;
        Ok(done.into_iter().flatten().collect())
    }
}

/// A run that was performed.
struct Done {
    packets: u64,
    cpu_s: f64,
    /// Why its figures do not count.
    unsound: Option<String>,
}

/// Performs a run; `None` if it was stopped.
fn make(
    sweep: &Sweep<'_>,
    store: &SweepStore,
    run: &PlannedRun,
    control: &Control,
) -> Result<Option<Done>, Error> {
    let point = &sweep.points[run.point];
    let seed = Some(run.seed);
    let scenario = sweep.scenario(point, seed)?;
    let ground = sweep.settings.on;
    if plan::id(&scenario, ground) != run.id {
        return Err(SweepError::Changed(sweep.text.name.clone()).into());
    }
    let job = Job { scratch: Some(&store.directory), ..Job::new(&scenario, ground) };
    let finished = execute_sound(&job, control);
    let finished = finished.map_err(|error| error.at(&point.label))?;
    if finished.records.interrupted {
        return Ok(None);
    }
    let measured = (&finished.records, &finished.summary);
    let cpu_s = finished.usage.user_cpu_s;
    if let Some(why) = finished.unsound() {
        let unsound = Some(format!("{}, seed {}: {why}", point.label, run.seed));
        return Ok(Some(Done { packets: finished.records.cost.data_packets, cpu_s, unsound }));
    }
    let kept = SweepRun::new(
        &store.program,
        (&run.id, &point.label, run.repeat),
        &scenario,
        measured,
        cpu_s,
    );
    store.keep(&kept)?;
    Ok(Some(Done { packets: kept.data_packets, cpu_s, unsound: None }))
}

/// Writes table, document and page.
fn gather(sweep: &Sweep<'_>, store: &SweepStore, summary: &SweepSummary) -> Result<(), Error> {
    let mut runs: Vec<&PlannedRun> = sweep.runs.iter().collect();
    runs.sort_by_key(|run| (run.point, run.repeat));
    let rows = runs.into_iter().flat_map(|run| {
        let groups = store.finished(run).map(|kept| &kept.groups);
        groups.into_iter().flatten().map(|group| SweepRow {
            run: &run.id,
            at: &sweep.points[run.point].at,
            repeat: run.repeat,
            seed: run.seed,
            group,
        })
    });
    let rows: Vec<SweepRow<'_>> = rows.collect();
    write_sweep(&store.directory.join(TABLE), &sweep.keys, &rows)?;
    write_json(&store.directory.join(SWEEP), summary)?;
    write_text(&store.directory.join(REPORT), &sweep_page(summary)?)?;
    Ok(())
}
