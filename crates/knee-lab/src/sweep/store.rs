//! Directory of a sweep: a small file for each finished run, written at once, so that an
//! interruption costs only the current runs.

use super::SweepError;
use super::plan::{PlannedRun, Sweep};
use crate::directory::{self, ORIGIN, REPORT, RUNS, SWEEP, cannot_write, clear_inputs};
use crate::error::Error;
use crate::lab::Lab;
use crate::origin::{KeptFile, KeptScenario, Origin};
use knee_record::{
    GroupMeasures, INPUTS, SweepKey, SweepRun, SweepSummary, read_sweep, sha256_hex, sha256_of,
    write_json,
};
use knee_scenario::read_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs, io};

/// The table of all runs.
pub const TABLE: &str = "sweep.parquet";
/// Size limit of a run's file, bytes.
const RUN_BYTES_MAX: u64 = 64 << 20;

/// A sweep's directory.
#[derive(Debug)]
pub struct SweepStore {
    /// Path of the directory.
    pub directory: PathBuf,
    /// The current program; see [`program_hash`].
    pub(super) program: String,
    /// Stored runs, by file name.
    known: BTreeMap<String, SweepRun>,
}

/// Stored runs that match a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Runs that need not be repeated.
    pub finished: usize,
    /// Runs by another build of the program.
    pub of_another_program: usize,
    /// Runs of the same point before the scenario or a file changed.
    pub of_another_scenario: usize,
}

impl SweepStore {
    /// Opens or creates the directory of a sweep. Removes an earlier sweep with `force`; refuses a
    /// directory with other contents. Runs of another `program` ([`program_hash`]) are repeated.
    ///
    /// # Errors
    /// A directory with other contents, or one that cannot be read or written.
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

    /// Returns the directory, or the first of `NAME-2`, `NAME-3` … that does not hold another sweep.
    pub fn place(directory: &Path, sweep: &Sweep<'_>) -> PathBuf {
        let mut all = directory::numbered(directory);
        all.find(|place| !is_another(place, sweep)).unwrap_or_else(|| directory.to_path_buf())
    }

    /// Refuses a sweep other than the one in the directory, whose results it would replace.
    pub(super) fn check(&self, sweep: &Sweep<'_>) -> Result<(), Error> {
        match is_another(&self.directory, sweep) {
            true => Err(SweepError::Another(self.directory.clone()).into()),
            false => Ok(()),
        }
    }

    /// Marks the directory as this sweep's. Nothing is written earlier, so that a process killed
    /// before this leaves a usable directory.
    pub(super) fn begin(&self, summary: &SweepSummary) -> Result<(), Error> {
        write_json(&self.directory.join(SWEEP), summary)?;
        let runs = self.directory.join(RUNS);
        fs::create_dir_all(&runs).map_err(|error| cannot_write(&runs, error))
    }

    /// Counts stored runs that match the plan.
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

    /// The stored result of a run, if it need not be repeated.
    pub(super) fn finished(&self, run: &PlannedRun) -> Option<&SweepRun> {
        self.known.get(&run.id).filter(|known| known.program == self.program)
    }

    /// Stores a finished run.
    pub(super) fn keep(&self, run: &SweepRun) -> Result<(), Error> {
        Ok(write_json(&self.directory.join(RUNS).join(format!("{}.json", run.id)), run)?)
    }

    /// Rereads the stored runs.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        let runs = self.directory.join(RUNS);
        self.known = known(&runs).map_err(|error| cannot_write(&runs, error))?;
        Ok(())
    }
}

/// Whether a directory holds a sweep of another file, other keys or other settings. One with other
/// values or repeats, or of a changed file, is the same and goes on.
fn is_another(directory: &Path, sweep: &Sweep<'_>) -> bool {
    let names =
        |keys: &[SweepKey]| keys.iter().map(|key| key.name.clone()).collect::<BTreeSet<_>>();
    let of_other_keys = read_sweep(&directory.join(SWEEP))
        .is_ok_and(|kept: SweepSummary| names(&kept.keys) != names(&sweep.keys));
    let of_other_inputs = Origin::read(directory).is_ok_and(|origin| {
        let is_same = |scenario: &KeptScenario| {
            let KeptFile { written, sha256, .. } = &scenario.file;
            let place = |path: &str| fs::canonicalize(path).ok();
            *written == sweep.text.name
                || *sha256 == sha256_hex(sweep.text.bytes())
                || place(written).is_some_and(|kept| place(&sweep.text.name) == Some(kept))
        };
        let sorted = |set: &[String]| set.iter().cloned().collect::<BTreeSet<_>>();
        !origin.scenarios.first().is_some_and(is_same)
            || sorted(origin.settings.set()) != sorted(sweep.origin().set())
    });
    of_other_keys || of_other_inputs
}

/// All runs in a folder, except damaged ones and those whose name does not match.
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

/// Stored data of a run of a sweep.
pub(crate) struct RunOfPoint {
    pub seed: u64,
    pub groups: Vec<GroupMeasures>,
}

/// Reads a run of a sweep by its name in the table.
pub(crate) fn run_of_point(directory: &Path, run: &str) -> Result<RunOfPoint, Error> {
    let path = directory.join(RUNS).join(format!("{run}.json"));
    let failed = |source| Error::Read { path: path.clone(), source };
    let bytes = read_file(&path, RUN_BYTES_MAX).map_err(failed)?;
    let kept = SweepRun::read(&bytes).filter(|kept| kept.id == run);
    let kept = kept.ok_or_else(|| failed(io::Error::other("it is damaged")))?;
    Ok(RunOfPoint { seed: kept.seed, groups: kept.groups })
}

/// Removes the files of a sweep only.
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
    // It stays if it holds other files.
    let _ = fs::remove_dir(&runs);
    Ok(())
}

/// Path of the program, if another program loaded it as a library.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the path of the program, if it is a library loaded by an interpreter, in place of the
/// process's executable. Only the first call has an effect.
pub fn set_program_file(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

/// SHA-256 of the program's file, which distinguishes builds of one version.
///
/// # Errors
/// A program file that cannot be read.
pub fn program_hash() -> Result<String, Error> {
    let path = PROGRAM.get().cloned().or_else(|| env::current_exe().ok()).unwrap_or_default();
    let hash = File::open(&path).and_then(sha256_of);
    hash.map_err(|source| Error::Read { path, source })
}
