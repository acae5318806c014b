//! The directories that runs are kept in.

use crate::failure::{Failure, cannot_write};
use crate::input::Input;
use crate::workers::Finished;
use knee_record::{Manifest, holds_run_files, write_run, write_text};
use knee_report::{RunPage, run_page};
use knee_scenario::Scenario;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Below it goes what no `--out` sends elsewhere.
pub const DEFAULT: &str = "knee-out";
/// The page of a run or of studies.
pub const REPORT: &str = "report.html";
/// Every event of every packet.
pub const PACKETS: &str = "packets.csv";
/// What came out of all repeats.
pub const REPEAT: &str = "repeat.json";
/// The simulator against the kernel.
pub const FIDELITY: &str = "fidelity.json";
/// The same as a table for people.
pub const MARKDOWN: &str = "fidelity.md";
/// What came out of studies.
pub const STUDIES: &str = "reproduce.json";

/// What came out of a sweep.
pub const SWEEP: &str = "sweep.json";

/// Everything that Knee itself puts into a directory, beside the traces and
/// loss records of a scenario.
const OURS: [&str; 15] = [
    knee_record::MANIFEST,
    knee_record::SCENARIO,
    knee_record::FLOWS,
    knee_record::SAMPLES,
    knee_record::LINKS,
    knee_record::PATHS,
    knee_record::PATH_SAMPLES,
    knee_record::OBJECTS,
    knee_record::TRANSFERS,
    knee_record::SUMMARY,
    REPORT,
    PACKETS,
    REPEAT,
    FIDELITY,
    STUDIES,
];

/// Names of the directories of runs on several grounds.
pub const GROUNDS: [&str; 2] = ["sim", "kernel"];

/// Name of the directory of one of several repeats, from one.
pub fn repeat(number: usize) -> String {
    format!("repeat-{number}")
}

/// Makes sure that nothing is overwritten: refuses directories that hold
/// something, or with `force` removes what earlier runs left in them.
pub fn claim<'d>(
    directories: impl IntoIterator<Item = &'d PathBuf>,
    force: bool,
) -> Result<(), Failure> {
    for directory in directories {
        if force {
            clear(directory).map_err(|error| cannot_write(directory, &error))?;
        } else if !is_free(directory).map_err(|error| cannot_write(directory, &error))? {
            let what = format!("{} is not empty", directory.display());
            let advice = "add --force to replace what is there, or write elsewhere with --out DIR";
            return Err(Failure::Usage(what, advice.to_string()));
        }
        fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    }
    Ok(())
}

fn is_free(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Removes what earlier runs left, also in the folders of repeats and grounds. Whatever
/// else is there is not Knee's to remove.
fn clear(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if OURS.iter().any(|ours| name == *ours) {
            fs::remove_file(entry.path())?;
        } else if is_of_a_run(&name) && holds_run_files(&entry.path()) {
            clear(&entry.path())?;
            // It stays when something else is in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

/// The folder of a repeat, or of a run on one of several grounds.
fn is_of_a_run(name: &OsStr) -> bool {
    if GROUNDS.iter().any(|ground| name == *ground) {
        return true;
    }
    let number = name.to_str().and_then(|name| name.strip_prefix("repeat-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Keeps a run, without its page.
pub fn keep(
    directory: &Path,
    scenario: &Scenario,
    finished: &Finished,
    inputs: &[Input<'_>],
) -> Result<(), Failure> {
    let Finished { records, summary, usage, health } = finished;
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let manifest = Manifest {
        health: health.clone(),
        ..Manifest::new(summary, records, arguments.collect(), inputs, usage)
    };
    write_run(directory, &manifest, scenario, records, summary)?;
    Ok(())
}

/// Writes the page of a run; `command` repeats it.
pub fn keep_page(
    directory: &Path,
    scenario: &Scenario,
    finished: &Finished,
    command: &str,
) -> Result<(), Failure> {
    let Finished { records, summary, .. } = finished;
    let page = RunPage { name: "", summary, records, scenario: &scenario.resolved, command };
    write_text(&directory.join(REPORT), &run_page(&page)?)?;
    Ok(())
}
