//! A scenario at every combination of some settings, kept run by run, so that
//! it goes on where it was stopped: what `knee sweep` does.

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
use crate::ground::Ground;
use crate::job::{Job, execute};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::origin::{self, OriginSettings, Sources};
use knee_record::{
    Control, Meter, SweepRow, SweepRun, SweepSummary, write_json, write_sweep, write_text,
};
use knee_report::sweep_page;
use knee_scenario::Override;
use std::collections::BTreeSet;

/// What is to be varied, and how.
#[derive(Clone, Debug)]
pub struct SweepSettings<'g> {
    /// Keys with the values that they take in turn.
    pub vary: Vec<Vary>,
    /// Keys that are set otherwise at every point.
    pub set: Vec<Override>,
    /// Seed of the first repeat, instead of the scenario's.
    pub seed: Option<u64>,
    /// How often each point runs, with the seed and those that follow it.
    pub repeat: Option<u64>,
    /// Leave combinations out that no scenario can have.
    pub skip_invalid: bool,
    /// The key whose values the headline compares, instead of the one that is varied
    /// last.
    pub about: Option<String>,
    /// Where.
    pub on: &'g dyn Ground,
}

impl<'g> SweepSettings<'g> {
    /// Each point once, as the file has it but for these keys.
    pub fn on(ground: &'g dyn Ground, vary: Vec<Vary>) -> SweepSettings<'g> {
        let (set, seed, repeat) = (Vec::new(), None, None);
        SweepSettings { vary, set, seed, repeat, skip_invalid: false, about: None, on: ground }
    }
}

/// What came of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// Point by point, those that were there already included.
    pub summary: SweepSummary,
    /// Runs that were made now.
    pub runs: usize,
    /// Data packets of these.
    pub packets: u64,
    /// CPU time of these, seconds.
    pub cpu_s: f64,
    /// Time that passed, seconds.
    pub wall_s: f64,
}

/// Why a sweep cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// It would not end.
    #[error("{points} points, {repeats} times each, are too many")]
    TooMany {
        /// Combinations.
        points: usize,
        /// Runs of each.
        repeats: u64,
        /// The most runs there can be.
        runs_max: usize,
    },
    /// A key is varied twice.
    #[error("{0} is varied twice")]
    VariedTwice(String),
    /// A key is set as well as varied.
    #[error("{0} is both set and varied")]
    SetAndVaried(String),
    /// The headline cannot be about what does not vary.
    #[error("{key} is not varied")]
    NotVaried {
        /// What was named.
        key: String,
        /// What varies.
        known: Vec<String>,
    },
    /// A file is not what it was when the sweep was planned.
    #[error("a file that {0} names has changed meanwhile")]
    Changed(String),
}

impl Sweep<'_> {
    /// The line that repeats or resumes the sweep.
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
        words.join(" ")
    }

    /// What all runs of the sweep share, for a line that repeats one of them.
    fn command_of_a_run(&self) -> String {
        let words = ["knee".to_string(), "run".to_string(), quoted(&self.text.name)];
        words.into_iter().chain(self.set_words()).collect::<Vec<_>>().join(" ")
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

    /// What came out so far.
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
        let last = || (0..self.keys.len()).rev().find(|key| self.keys[*key].values.len() > 1);
        SweepSummary { about: named.or_else(last), ..summary }
    }
}

impl Lab {
    /// Makes the runs of a sweep that are not there yet, and writes table,
    /// document and page over all that are.
    ///
    /// # Errors
    /// The first failure of a run, or that something cannot be written.
    pub fn sweep(&self, sweep: &Sweep<'_>, store: &mut SweepStore) -> Result<Swept, Error> {
        sweep.settings.on.check_host()?;
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
            packets: done.iter().map(|(packets, _)| packets).sum(),
            cpu_s: done.iter().map(|(_, cpu_s)| cpu_s).sum(),
            wall_s,
        })
    }

    /// All points of the first repeat, then of the second …, in each the
    /// costliest first. A run that several points share is made once. Data
    /// packets and CPU time of each.
    fn fill(&self, sweep: &Sweep<'_>, store: &SweepStore) -> Result<Vec<(u64, f64)>, Error> {
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

/// Data packets and CPU time; nothing for a run that was stopped.
fn make(
    sweep: &Sweep<'_>,
    store: &SweepStore,
    run: &PlannedRun,
    control: &Control,
) -> Result<Option<(u64, f64)>, Error> {
    let point = &sweep.points[run.point];
    let seed = Some(run.seed);
    let scenario = sweep.scenario(point, seed)?;
    let ground = sweep.settings.on;
    if plan::id(&scenario, ground) != run.id {
        return Err(SweepError::Changed(sweep.text.name.clone()).into());
    }
    let finished = execute(&Job::new(&scenario, ground), control);
    let finished = finished.map_err(|error| error.at(&point.label))?;
    if finished.records.interrupted {
        return Ok(None);
    }
    let measured = (&finished.records, &finished.summary);
    let cpu_s = finished.usage.user_cpu_s;
    let kept = SweepRun::new(
        &store.program,
        (&run.id, &point.label, run.repeat),
        &scenario,
        measured,
        cpu_s,
    );
    store.keep(&kept)?;
    Ok(Some((kept.data_packets, cpu_s)))
}

/// Table, document and page.
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
