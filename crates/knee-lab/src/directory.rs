//! Directories in which runs are stored.

use crate::error::Error;
use crate::ground::Grounds;
use crate::job::Run;
use crate::lab::Lab;
use crate::text::Input;
use knee_record::{
    Answers, Manifest, PART, Records, Summary, holds_run_files, write_run, write_text,
};
use knee_report::{ReadLog, RunPage, answers_section, run_page};
use knee_scenario::{Scenario, file_name};
use knee_workload::read_access_log;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{self, Path, PathBuf};

/// Default parent directory without `--out`.
pub const DEFAULT: &str = "knee-out";
/// The page of a run or of studies.
pub const REPORT: &str = "report.html";
/// Packet log: every event of every packet.
pub(crate) const PACKETS: &str = "packets.csv";
/// Packets as a host's own tools show them.
pub(crate) const CAPTURE: &str = "capture.pcapng";
/// Flows of programs by their five-tuple.
pub(crate) const TRAFFIC: &str = "traffic.json";
/// Summary of all repeats.
pub const REPEAT: &str = "repeat.json";
/// Comparison of the simulator with the kernel.
pub const FIDELITY: &str = "fidelity.json";
/// Comparison of the simulator with the kernel, as a Markdown table.
pub const MARKDOWN: &str = "fidelity.md";
/// Results of studies.
pub(crate) const STUDIES: &str = "reproduce.json";
/// Results of a sweep.
pub const SWEEP: &str = "sweep.json";
/// Results of a ranking.
pub const RANK: &str = "rank.json";
/// Results of a ranking by run.
pub const RANK_TABLE: &str = "rank.parquet";
/// Results of an evaluation.
pub const EVALUATION: &str = "evaluation.json";
/// Results of an evaluation by run.
pub const EVALUATION_TABLE: &str = "evaluation.parquet";
/// What an evaluation in real time has made so far.
pub(crate) const MADE: &str = "made.jsonl";
/// Agreement of grounds on an evaluation.
pub const GROUNDS: &str = "grounds.json";
/// Results of a comparison.
pub const COMPARISON: &str = "comparison.json";
/// The scenario with the path that was fitted to a run.
pub(crate) const FITTED: &str = "path.toml";
/// Folder of the runs of a sweep.
pub(crate) const RUNS: &str = "runs";
/// Inputs of a sweep or a ranking.
pub(crate) const ORIGIN: &str = "origin.json";
/// Policy of the experiments that advice expects to be worth making.
pub const ADVISED_POLICY: &str = "advised.toml";
/// Results of a scenario's alternatives.
pub(crate) const ANSWERS: &str = "answers.json";

/// All files that Knee itself writes into a directory, except a scenario's inputs, which have their
/// own folder.
const OURS: [&str; 31] = [
    knee_record::MANIFEST,
    knee_record::SCENARIO,
    knee_record::FLOWS,
    knee_record::SAMPLES,
    knee_record::LINKS,
    knee_record::CLASSES,
    knee_record::PATHS,
    knee_record::PATH_SAMPLES,
    knee_record::OBJECTS,
    knee_record::CONNECTIONS,
    knee_record::TRANSFERS,
    knee_record::SUMMARY,
    REPORT,
    PACKETS,
    CAPTURE,
    TRAFFIC,
    REPEAT,
    FIDELITY,
    STUDIES,
    SWEEP,
    ANSWERS,
    RANK,
    RANK_TABLE,
    EVALUATION,
    ADVISED_POLICY,
    EVALUATION_TABLE,
    MADE,
    GROUNDS,
    COMPARISON,
    FITTED,
    ORIGIN,
];

/// Directory name of a repeat, numbered from one.
pub(crate) fn repeat(number: usize) -> String {
    format!("repeat-{number}")
}

/// Ensures that no path component between `root` and `directory` is a symbolic link: refuses links,
/// or removes them with `force`.
///
/// # Errors
/// [`Error::Link`], or a link that cannot be removed.
pub(crate) fn no_links(root: &Path, directory: &Path, force: bool) -> Result<(), Error> {
    let mut place = root.to_path_buf();
    for part in directory.strip_prefix(root).unwrap_or(Path::new("")) {
        place.push(part);
        if !fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
            continue;
        }
        if !force {
            return Err(Error::Link(place));
        }
        fs::remove_file(&place).map_err(|error| cannot_write(&place, error))?;
    }
    Ok(())
}

/// Returns the directory, or the first of `NAME-2`, `NAME-3` … that is empty and not in `taken`.
///
/// # Errors
/// A directory that cannot be read.
pub fn unused(directory: &Path, taken: &[PathBuf]) -> Result<PathBuf, Error> {
    for candidate in numbered(directory) {
        // A link belongs to the user: do not write to its target.
        let is_link = fs::symlink_metadata(&candidate).is_ok_and(|found| found.is_symlink());
        let is_free = is_free(&candidate).map_err(|error| cannot_write(&candidate, error))?;
        if is_free && !is_link && !taken.contains(&candidate) {
            return Ok(candidate);
        }
    }
    Err(Error::NotEmpty(directory.to_path_buf()))
}

/// The directory, `NAME-2`, `NAME-3` …
pub(crate) fn numbered(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let more = (2..=u32::MAX).map(|number| {
        let mut name = directory.file_name().unwrap_or_default().to_os_string();
        name.push(format!("-{number}"));
        directory.with_file_name(name)
    });
    std::iter::once(directory.to_path_buf()).chain(more)
}

/// Whether a directory is empty, or holds only unfinished files of a run that was killed.
fn is_free(directory: &Path) -> io::Result<bool> {
    let Some(entries) = entries(directory)? else { return Ok(true) };
    Ok(entries.iter().all(|entry| is_ours(entry) && is_part(entry)))
}

/// Entries of a directory; `None` if it does not exist.
fn entries(directory: &Path) -> io::Result<Option<Vec<DirEntry>>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        entries => entries?.collect::<Result<_, _>>().map(Some),
    }
}

fn is_part(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().ends_with(PART)
}

/// Whether Knee writes this file, finished or not.
fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    OURS.contains(&name.strip_suffix(PART).unwrap_or(&name))
}

/// Removes the files of earlier runs, even in the folders of repeats and grounds. Keeps everything
/// else, and the targets of links.
fn clear(directory: &Path, grounds: &Grounds) -> io::Result<()> {
    for entry in entries(directory)?.into_iter().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let of_a_run = is_of_a_run(&name, grounds);
        let inputs = name == knee_record::INPUTS || name == knee_record::OUTPUT;
        if is_ours(&entry) || (entry.file_type()?.is_symlink() && (of_a_run || inputs)) {
            fs::remove_file(&path)?;
        } else if of_a_run && holds_run_files(&path) {
            clear(&path, grounds)?;
            // It stays if it holds other files.
            let _ = fs::remove_dir(&path);
        } else if inputs && entry.file_type()?.is_dir() {
            clear_inputs(&path)?;
        }
    }
    Ok(())
}

/// Removes all files from the folder of inputs or output, which belongs to Knee; keeps subfolders.
pub(crate) fn clear_inputs(folder: &Path) -> io::Result<()> {
    for entry in entries(folder)?.into_iter().flatten() {
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        }
    }
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Whether this is the folder of a repeat or of a ground.
fn is_of_a_run(name: &OsStr, grounds: &Grounds) -> bool {
    if grounds.iter().any(|ground| name == ground.name()) {
        return true;
    }
    let number = name.to_str().and_then(|name| name.strip_prefix("repeat-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

pub(crate) fn cannot_write(path: &Path, source: io::Error) -> Error {
    Error::Write { path: path.to_path_buf(), source }
}

/// The absolute path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let whole = path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for there in whole.ancestors() {
        if let (Ok(found), Ok(rest)) = (there.canonicalize(), whole.strip_prefix(there)) {
            // Joining an empty path would add a slash.
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    whole
}

impl Lab {
    /// Ensures that output in `out` replaces none of the `sources` it is made from: `out` is none of
    /// them, contains none, and is not a folder in which one of them keeps its records.
    ///
    /// # Errors
    /// [`Error::Source`].
    pub fn keep_apart<'d>(
        &self,
        out: &Path,
        sources: impl IntoIterator<Item = &'d PathBuf>,
    ) -> Result<(), Error> {
        let out = real(out);
        for source in sources {
            let place = real(source);
            let within = out.strip_prefix(&place).ok().and_then(|rest| rest.iter().next());
            let holds = |name: &OsStr| {
                is_of_a_run(name, &self.grounds) || name == RUNS || name == knee_record::INPUTS
            };
            if place.starts_with(&out) || within.is_some_and(holds) {
                return Err(Error::Source(source.clone()));
            }
        }
        Ok(())
    }

    /// Ensures that nothing is overwritten: refuses directories that are not empty, or with `force`
    /// removes the files of earlier runs. All directories are `root`, which the user named, or
    /// below it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::Link`], or a directory that cannot be written.
    pub fn claim<'d>(
        &self,
        root: &Path,
        directories: impl IntoIterator<Item = &'d PathBuf>,
        force: bool,
    ) -> Result<(), Error> {
        for directory in directories {
            let failed = |error| cannot_write(directory, error);
            no_links(root, directory, force)?;
            if !force && !is_free(directory).map_err(failed)? {
                return Err(Error::NotEmpty(directory.clone()));
            }
            clear(directory, &self.grounds).map_err(failed)?;
            fs::create_dir_all(directory).map_err(failed)?;
        }
        Ok(())
    }

    /// Stores a run in a directory, without its page. `inputs` are the source files, for the
    /// manifest.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn keep(
        &self,
        directory: &Path,
        scenario: &Scenario,
        run: &mut Run,
        inputs: &[Input<'_>],
    ) -> Result<(), Error> {
        let Run { records, summary, usage, health, recording } = run;
        let manifest = Manifest {
            health: health.clone(),
            program: self.program.clone(),
            brought: self.brought.used_by(scenario),
            ..Manifest::new(summary, records, self.arguments.clone(), inputs, usage)
        };
        match recording.take() {
            Some(recording) => recording.finish(&manifest, scenario, records, summary)?,
            None => write_run(directory, &manifest, scenario, records, summary)?,
        }
        Ok(())
    }
}

/// The access logs that a scenario read, for its page.
pub(crate) fn logs_of(scenario: &Scenario) -> Vec<ReadLog> {
    let logs = scenario.files.iter().filter(|file| !file.read_as.is_empty());
    let read = logs.filter_map(|file| {
        let log = read_access_log(&file.bytes).ok()?;
        let (name, read_as) = (file_name(&file.written).to_string(), file.read_as.clone());
        Some(ReadLog { name, read_as, sizes: log.sizes, times_ns: log.times_ns })
    });
    read.collect()
}

/// Writes the page of a run into its directory; `command` is the command that repeats the run.
///
/// # Errors
/// A page that cannot be written.
pub fn write_page(
    directory: &Path,
    scenario: &Scenario,
    records: &Records,
    summary: &Summary,
    answers: Option<&Answers>,
    command: &str,
) -> Result<(), Error> {
    let logs = &logs_of(scenario);
    let lead = answers.map(answers_section).transpose()?;
    let lead = lead.as_ref();
    let scenario = &scenario.resolved;
    let page = RunPage { name: "", summary, records, lead, scenario, command, logs };
    write_text(&directory.join(REPORT), &run_page(&page)?)?;
    Ok(())
}
