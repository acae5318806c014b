//! The directory of a sweep: a small file for each run that ended, written
//! at once, so that whatever stops the sweep costs only the runs under way.

use super::plan::{PlannedRun, Sweep};
use crate::directory::{self, ORIGIN, REPORT, SWEEP, cannot_write, clear_inputs};
use crate::error::Error;
use crate::lab::Lab;
use knee_record::{GroupMeasures, INPUTS, SweepRun, SweepSummary, sha256_hex, write_json};
use knee_scenario::read_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs, io};

/// The table of all runs.
pub const TABLE: &str = "sweep.parquet";
/// Folder of the runs.
const RUNS: &str = "runs";
/// No file of a run is larger.
const RUN_BYTES_MAX: u64 = 64 << 20;

/// A sweep's directory.
#[derive(Debug)]
pub struct SweepStore {
    /// Where.
    pub directory: PathBuf,
    /// Which program runs it: see [`program_hash`].
    pub(super) program: String,
    /// What is there, by the name of its file.
    known: BTreeMap<String, SweepRun>,
}

/// What is there already.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Runs that need not be done again.
    pub finished: usize,
    /// Done by another build of the program.
    pub of_another_program: usize,
    /// Of the same point, before the scenario or a file changed.
    pub of_another_scenario: usize,
}

impl SweepStore {
    /// Opens the directory of a sweep, or makes one. With `force` what an
    /// earlier sweep left is removed; a directory of something else is
    /// refused. `program` tells builds apart ([`program_hash`]): runs of another
    /// one are made again.
    ///
    /// # Errors
    /// That it holds something else, or cannot be written or read.
    pub fn open(
        lab: &Lab,
        directory: PathBuf,
        program: String,
        force: bool,
    ) -> Result<SweepStore, Error> {
        let failed = |error: io::Error| cannot_write(&directory, error);
        let (resumes, runs) = (directory.join(SWEEP).is_file(), directory.join(RUNS));
        directory::no_links(&directory, &runs, force)?;
        directory::no_links(&directory, &directory.join(INPUTS), force)?;
        if force {
            clear(&directory).map_err(failed)?;
        }
        if force || !resumes {
            lab.claim(&directory, [&directory], force)?;
        }
        let known = known(&runs).map_err(failed)?;
        Ok(SweepStore { directory, program, known })
    }

    /// Marks the directory as this sweep's. Nothing is written before, so that
    /// one that is killed here leaves a directory that can be used.
    pub(super) fn begin(&self, summary: &SweepSummary) -> Result<(), Error> {
        write_json(&self.directory.join(SWEEP), summary)?;
        let runs = self.directory.join(RUNS);
        fs::create_dir_all(&runs).map_err(|error| cannot_write(&runs, error))
    }

    /// What of the plan is there.
    pub fn found(&self, sweep: &Sweep<'_>) -> Found {
        let mut found = Found::default();
        let mut points: Vec<(&str, u64)> = Vec::new();
        points.extend(self.known.values().map(|run| (run.point.as_str(), run.repeat)));
        points.sort_unstable();
        for run in &sweep.runs {
            let place = (sweep.points[run.point].label.as_str(), run.repeat);
            match self.known.get(&run.id) {
                Some(known) if known.program == self.program => found.finished += 1,
                Some(_) => found.of_another_program += 1,
                None if points.binary_search(&place).is_ok() => found.of_another_scenario += 1,
                None => {}
            }
        }
        found
    }

    /// A run that need not be done again.
    pub(super) fn finished(&self, run: &PlannedRun) -> Option<&SweepRun> {
        self.known.get(&run.id).filter(|known| known.program == self.program)
    }

    /// Keeps a run that ended.
    pub(super) fn keep(&self, run: &SweepRun) -> Result<(), Error> {
        Ok(write_json(&self.directory.join(RUNS).join(format!("{}.json", run.id)), run)?)
    }

    /// Reads again what is there.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        let runs = self.directory.join(RUNS);
        self.known = known(&runs).map_err(|error| cannot_write(&runs, error))?;
        Ok(())
    }
}

/// All runs in a folder; a damaged one is none, nor is one under the name of
/// another.
fn known(folder: &Path) -> io::Result<BTreeMap<String, SweepRun>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut known = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let run = read_file(&path, RUN_BYTES_MAX).ok().and_then(|bytes| SweepRun::read(&bytes));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        known.extend(run.filter(|run| run.id == name).map(|run| (name, run)));
    }
    Ok(known)
}

/// What is kept of a run of a sweep.
pub(crate) struct RunOfPoint {
    pub seed: u64,
    pub groups: Vec<GroupMeasures>,
}

/// Reads a run of a sweep by its name, as the table has it.
pub(crate) fn run_of_point(directory: &Path, run: &str) -> Result<RunOfPoint, Error> {
    let path = directory.join(RUNS).join(format!("{run}.json"));
    let failed = |source| Error::Read { path: path.clone(), source };
    let bytes = read_file(&path, RUN_BYTES_MAX).map_err(failed)?;
    let kept = SweepRun::read(&bytes).filter(|kept| kept.id == run);
    let kept = kept.ok_or_else(|| failed(io::Error::other("it is damaged")))?;
    Ok(RunOfPoint { seed: kept.seed, groups: kept.groups })
}

/// Removes what a sweep left, and nothing else.
fn clear(directory: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    clear_inputs(&directory.join(INPUTS))?;
    for name in [SWEEP, TABLE, REPORT, ORIGIN] {
        gone(fs::remove_file(directory.join(name)))?;
    }
    let runs = directory.join(RUNS);
    if let Ok(entries) = fs::read_dir(&runs) {
        for entry in entries {
            let path = entry?.path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".json") || name.ends_with(".json.part") {
                gone(fs::remove_file(&path))?;
            }
        }
    }
    // It stays when something else is in it.
    let _ = fs::remove_dir(&runs);
    Ok(())
}

/// The file that the program is, where another one has loaded it.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// From here on, the program is this file, and not what the process began with:
/// of a library that an interpreter has loaded. The first call counts.
pub fn set_program_file(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

/// Which program this is, by the SHA-256 of its file: two builds of one version
/// can differ.
///
/// # Errors
/// That its file cannot be read.
pub fn program_hash() -> Result<String, Error> {
    let path = PROGRAM.get().cloned().or_else(|| env::current_exe().ok()).unwrap_or_default();
    let bytes = fs::read(&path).map_err(|source| Error::Read { path, source })?;
    Ok(sha256_hex(&bytes))
}
