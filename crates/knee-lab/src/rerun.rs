//! Repeats the runs in a folder from its own contents and compares the records byte by byte.
//! Implements `knee rerun`.

mod records;

use crate::directory::{ANSWERS, EVALUATION, ORIGIN, PACKETS, RANK, REPEAT, SWEEP, repeat};
use crate::error::Error;
use crate::evaluate::{Evaluate, EvaluateSettings};
use crate::experiment::{Experiment, ExperimentSettings};
use crate::ground::Pace;
use crate::lab::Lab;
use crate::origin::{Files, Origin, OriginSettings};
use crate::rank::{Candidates, Rank, RankSettings};
use crate::sweep::{Sweep, SweepSettings, SweepStore, program_hash};
use crate::text::ScenarioText;
use knee_record::{
    Brought, Difference, INPUTS, Manifest, Program, RepeatSummary, SCENARIO, read_json,
    read_manifest, sha256_hex, sha256_of,
};
use knee_scenario::{class_file, file_name, open_file};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Schema name of the document.
const SCHEMA: &str = "knee-rerun/1";

/// Why a folder cannot be run again.
#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    /// The folder contains nothing to run.
    #[error("{0} contains no run, no repeats, no sweep, no ranking and no evaluation")]
    Nothing(String),
    /// Runs in real time are never identical.
    #[error("on the ground {0}, which runs in real time, no two runs are identical")]
    RealTime(String),
    /// A program ran a class of its own under a name that only it knows.
    #[error("{name} was the class {class} of the program that wrote the folder")]
    Own {
        /// Name of the controller or scheduler.
        name: String,
        /// Its class and module.
        class: String,
    },
    /// The folder has no copy of its inputs, as in earlier versions of Knee.
    #[error("{0} contains no copy of its scenario: an earlier version of Knee wrote it")]
    NotKept(String),
}

/// The plan of a rerun.
#[derive(Debug)]
pub struct RerunPlan<'g> {
    /// The folder.
    pub directory: PathBuf,
    /// Output folder of the new runs.
    pub out: PathBuf,
    work: Work<'g>,
    changed: Vec<Changed>,
}

#[derive(Debug)]
enum Work<'g> {
    Runs(Box<Experiment<'g>>),
    Sweep(Box<Sweep<'g>>),
    Rank(Box<Rank<'g>>),
    Evaluate(Box<Evaluate<'g>>),
}

/// Byte-by-byte comparison of a second run with the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rerun {
    /// `knee-rerun/1`.
    pub schema: &'static str,
    /// The folder.
    pub directory: String,
    /// Folder of the new runs.
    pub again: String,
    /// Whether all records are identical.
    pub same: bool,
    /// Comparison of each record.
    pub files: Vec<FileAgain>,
    /// Changes in version, build or inputs.
    pub changed: Vec<Changed>,
}

/// Comparison of one record file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileAgain {
    /// Its path below the folder.
    pub file: String,
    /// Result of the comparison.
    pub outcome: Again,
    /// Numbers that differ, if the file is a summary.
    pub numbers: Vec<Difference>,
}

/// Result of comparing a file with its new counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Again {
    /// Identical bytes.
    Same,
    /// Different bytes.
    Differs,
    /// Only the first run has it.
    OnlyBefore,
    /// Only the second run has it.
    OnlyNow,
}

/// Something that has changed since the recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// `version`, `commit`, `features`, `toolchain`, `target`, `program`, or a file.
    pub what: String,
    /// The recorded value; `None` if there is none.
    pub recorded: Option<String>,
    /// The current value.
    pub now: Option<String>,
}

impl Lab {
    /// Identifies and reads a folder's contents without running anything. Reads regular files of the
    /// folder only; with `originals` also the files of the paths from which its inputs came, to
    /// report whether they have changed.
    ///
    /// # Errors
    /// A [`RerunError`], or all errors in the folder's contents.
    pub fn plan_rerun(
        &self,
        directory: &Path,
        out: &Path,
        originals: bool,
    ) -> Result<RerunPlan<'_>, Error> {
        let (work, mut changed) = if directory.join(REPEAT).is_file() {
            self.repeats_again(directory, out, originals)?
        } else if [SWEEP, RANK, EVALUATION].iter().any(|name| directory.join(name).is_file()) {
            self.origin_again(directory, originals)?
        } else if directory.join(SCENARIO).is_file() {
            let manifest = read_manifest(directory)?;
            let run = (directory, manifest.seed, None, manifest.ground.as_str());
            (self.runs_again(run, directory, out)?, self.since(directory, &manifest, originals)?)
        } else {
            return Err(RerunError::Nothing(directory.display().to_string()).into());
        };
        changed.retain(|one| one.recorded != one.now);
        let (directory, out) = (directory.to_path_buf(), out.to_path_buf());
        Ok(RerunPlan { directory, out, work, changed })
    }

    fn repeats_again(
        &self,
        directory: &Path,
        out: &Path,
        originals: bool,
    ) -> Result<(Work<'_>, Vec<Changed>), Error> {
        let repeats: RepeatSummary = read_json(&directory.join(REPEAT), "knee-repeat/1")?;
        let first = records::within(directory, &repeat(1))?;
        let manifest = read_manifest(&first)?;
        let (seed, count) = (manifest.seed, repeats.seeds.len() as u64);
        let run = (first.as_path(), seed, Some(count), repeats.ground.as_str());
        Ok((self.runs_again(run, directory, out)?, self.since(&first, &manifest, originals)?))
    }

    /// Plans runs from the resolved scenario of a run, which has its inputs beside it.
    fn runs_again(
        &self,
        (run, seed, repeat, ground): (&Path, u64, Option<u64>, &str),
        directory: &Path,
        out: &Path,
    ) -> Result<Work<'_>, Error> {
        check_own(&read_manifest(run)?.brought)?;
        let on = self.grounds.get(ground)?;
        if on.pace() == Pace::Real {
            return Err(RerunError::RealTime(ground.to_string()).into());
        }
        let text = ScenarioText::of_run(run)?;
        let settings = ExperimentSettings {
            seed: Some(seed),
            repeat,
            packet_log: run.join(PACKETS).is_file(),
            alternatives: directory.join(ANSWERS).is_file(),
            ..ExperimentSettings::on(on)
        };
        Ok(Work::Runs(Box::new(Experiment::new(text, settings, out.to_path_buf())?)))
    }

    fn origin_again(
        &self,
        directory: &Path,
        originals: bool,
    ) -> Result<(Work<'_>, Vec<Changed>), Error> {
        if !directory.join(ORIGIN).is_file() {
            return Err(RerunError::NotKept(directory.display().to_string()).into());
        }
        let origin = Origin::read(directory)?;
        check_own(&origin.brought)?;
        let texts = origin.texts(directory)?;
        let on = self.grounds.get(&origin.ground)?;
        if on.pace() == Pace::Real {
            return Err(RerunError::RealTime(origin.ground.clone()).into());
        }
        let parsed = |set: &[String]| {
            let all = set.iter().map(|text| text.parse());
            let all: Result<Vec<knee_scenario::Override>, _> = all.collect();
            all.map_err(|error| Error::Defect(format!("{ORIGIN}: {error}")))
        };
        let damaged = |error| Error::Defect(format!("{ORIGIN}: {error}"));
        let work = match &origin.settings {
            OriginSettings::Sweep { vary, set, seed, repeat, skip_invalid, about } => {
                let vary = vary.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>();
                let settings = SweepSettings {
                    set: parsed(set)?,
                    seed: *seed,
                    repeat: *repeat,
                    skip_invalid: *skip_invalid,
                    about: about.clone(),
                    ..SweepSettings::on(on, vary.map_err(damaged)?)
                };
                let nothing = || RerunError::NotKept(directory.display().to_string());
                let text = texts.into_iter().next().ok_or_else(nothing)?;
                Work::Sweep(Box::new(Sweep::new(text, settings)?))
            }
            OriginSettings::Rank { cc, against, set, flow, seed, repeat } => {
                let settings = RankSettings {
                    candidates: Candidates(cc.clone()),
                    rivals: Candidates(against.clone()),
                    set: parsed(set)?,
                    flow: flow.clone(),
                    seed: *seed,
                    repeat: *repeat,
                    ..RankSettings::on(on)
                };
                Work::Rank(Box::new(Rank::new(&texts, &settings)?))
            }
            OriginSettings::Evaluate { candidate, with, section, repeat, quick, search, trace } => {
                let files = origin.files.iter();
                let files = files.map(|f| Ok((f.written.clone(), f.bytes(directory)?.into())));
                let files: Files = files.collect::<Result<_, Error>>()?;
                let bytes = |name: &String| {
                    let bytes = files.get(file_name(name)).map(|bytes| bytes.to_vec());
                    (name.clone(), bytes.unwrap_or_default())
                };
                let settings = EvaluateSettings {
                    candidate: candidate.clone(),
                    with: parsed(with)?,
                    sections: section.clone(),
                    repeat: *repeat,
                    quick: *quick,
                    on,
                    beside: Vec::new(),
                    search: *search,
                    traces: trace.iter().map(bytes).collect(),
                    algorithms: None,
                };
                Work::Evaluate(Box::new(Evaluate::with_files(&settings, Some(&files))?))
            }
        };
        let mut changed = self.of_program(&origin.version, &origin.program);
        for file in origin.files() {
            let kept = sha256_hex(&file.bytes(directory)?);
            changed.push(Changed::new(&file.kept, Some(&file.sha256), Some(&kept)));
            if originals {
                changed.push(elsewhere(&file.written, &file.sha256));
            }
        }
        Ok((work, changed))
    }

    /// What may have changed since a run.
    fn since(
        &self,
        directory: &Path,
        manifest: &Manifest,
        originals: bool,
    ) -> Result<Vec<Changed>, Error> {
        let mut changed = self.of_program(&manifest.version, &manifest.program);
        let hashes: BTreeSet<&String> = manifest.inputs.values().collect();
        let entries = fs::read_dir(directory.join(INPUTS)).into_iter().flatten().flatten();
        for entry in entries {
            let name = format!("{INPUTS}/{}", entry.file_name().to_string_lossy());
            let hash = hash_of(records::open(directory, &name)?)
                .map_err(|source| Error::Read { path: entry.path(), source })?;
            if !hashes.contains(&hash) {
                changed.push(Changed::new(&name, None, Some(&hash)));
            }
        }
        if originals {
            changed.extend(manifest.inputs.iter().map(|(path, hash)| elsewhere(path, hash)));
        }
        Ok(changed)
    }

    fn of_program(&self, version: &str, recorded: &Program) -> Vec<Changed> {
        let now = &self.program;
        let features = |program: &Program| Some(program.features.join(", "));
        let known = recorded != &Program::default();
        let features_then = features(recorded).filter(|_| known);
        vec![
            Changed::new("version", Some(version), Some(env!("CARGO_PKG_VERSION"))),
            Changed::new("commit", recorded.commit.as_deref(), now.commit.as_deref()),
            Changed::new("features", features_then.as_deref(), features(now).as_deref()),
            Changed::new("toolchain", recorded.toolchain.as_deref(), now.toolchain.as_deref()),
            Changed::new("target", recorded.target.as_deref(), now.target.as_deref()),
            Changed::new("program", recorded.sha256.as_deref(), now.sha256.as_deref()),
        ]
    }

    /// Executes a plan and compares the records. Its directory must have been [`Lab::claim`]ed.
    ///
    /// # Errors
    /// The first failure of a run, or a file that cannot be read or written.
    pub fn rerun(&self, plan: &mut RerunPlan<'_>) -> Result<Rerun, Error> {
        match &mut plan.work {
            Work::Runs(experiment) => {
                self.carry_out(std::slice::from_mut(experiment))?;
            }
            Work::Sweep(sweep) => {
                let program = program_hash()?;
                let mut store = SweepStore::open(self, plan.out.clone(), program, false)?;
                self.sweep(sweep, &mut store)?;
            }
            Work::Rank(rank) => {
                self.rank(rank, &plan.out)?;
            }
            Work::Evaluate(evaluate) => {
                self.evaluate(evaluate, &plan.out)?;
            }
        }
        let files = records::files_again(&plan.directory, &plan.out)?;
        Ok(Rerun {
            schema: SCHEMA,
            directory: plan.directory.display().to_string(),
            again: plan.out.display().to_string(),
            same: files.iter().all(|file| file.outcome == Again::Same),
            files,
            changed: plan.changed.clone(),
        })
    }
}

/// Refuses classes that are not in a file by which the folder names them.
fn check_own(brought: &BTreeMap<String, Brought>) -> Result<(), RerunError> {
    let own = brought.iter().find(|(name, _)| class_file(name).is_none());
    own.map_or(Ok(()), |(name, Brought { class, module, .. })| {
        Err(RerunError::Own { name: name.clone(), class: format!("{module}.{class}") })
    })
}

impl Changed {
    fn new(what: &str, recorded: Option<&str>, now: Option<&str>) -> Changed {
        let owned = |text: Option<&str>| text.map(str::to_string);
        Changed { what: what.to_string(), recorded: owned(recorded), now: owned(now) }
    }
}

/// Largest input, bytes: that of a scenario.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// Returns the hash of a file of limited size.
fn hash_of(file: File) -> io::Result<String> {
    if file.metadata()?.len() > INPUT_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 256 MiB"));
    }
    sha256_of(file.take(INPUT_BYTES_MAX))
}

/// Checks an input at its original path. The rerun uses the folder's copy; this reports how a run
/// from the original would differ. It has no hash if it is no longer there or cannot be read.
fn elsewhere(path: &str, hash: &str) -> Changed {
    Changed::new(path, Some(hash), open_file(Path::new(path)).and_then(hash_of).ok().as_deref())
}
