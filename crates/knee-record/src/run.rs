//! The run directory: `manifest.json`, `scenario.toml`, the files that it names below `inputs/`,
//! Parquet files and `summary.json`. Tables of paths and objects exist only if the run had any.
//!
//! Each file appears whole or not at all (it is written under a temporary name, then renamed), and
//! the manifest is written last: a directory without one is incomplete, and reading it reports
//! that.

use crate::part::{PART, Part};
use crate::{
    ConnectionRecord, Connections, Error, Manifest, Rates, Records, Summary, TransferRecord, table,
    tables,
};
use knee_scenario::{inside, open_file, open_inside, read_open};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Values that vary from run to run.
pub const MANIFEST: &str = "manifest.json";
/// The resolved scenario.
pub const SCENARIO: &str = "scenario.toml";
/// One row per flow.
pub const FLOWS: &str = "flows.parquet";
/// Time series of the flows.
pub const SAMPLES: &str = "samples.parquet";
/// Time series of the links.
pub const LINKS: &str = "links.parquet";
/// One row per path of each flow over several paths.
pub const PATHS: &str = "paths.parquet";
/// Time series of the traffic classes of links that have several.
pub const CLASSES: &str = "classes.parquet";
/// Time series of those paths.
pub const PATH_SAMPLES: &str = "path-samples.parquet";
/// One row per object of a page and segment of a video.
pub const OBJECTS: &str = "objects.parquet";
/// One row per connection.
pub const CONNECTIONS: &str = "connections.parquet";
/// One row per transfer of a mix, written by versions that had no [`CONNECTIONS`].
pub const TRANSFERS: &str = "transfers.parquet";
/// Folder of the scenario's input files.
pub const INPUTS: &str = knee_scenario::INPUTS;
/// Folder of what programs wrote, on a ground where flows are programs.
pub const OUTPUT: &str = "output";
/// Summary of the results.
pub const SUMMARY: &str = "summary.json";

/// A run as read from its directory.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Values that vary from run to run.
    pub manifest: Manifest,
    /// The resolved scenario, TOML.
    pub scenario: String,
    /// The tables.
    pub records: Records,
    /// Summary of the results.
    pub summary: Summary,
}

/// Reads a run that [`crate::write_run`] or [`crate::Recording`] wrote. Long time series are
/// reduced to the rows that stay in memory ([`crate::Series`]), the same rows that the run was
/// measured by. The rates of the paths over time are in no file, so measures that need them are
/// available only in the summary.
///
/// # Errors
/// [`Error::NotARun`] if the directory contains no files of a run, [`Error::Unfinished`] if writing
/// it was interrupted, [`Error::Missing`] if a file is missing, [`Error::Schema`] if another
/// version wrote it, [`Error::Malformed`] if a file is damaged.
pub fn read_run(dir: &Path) -> Result<SavedRun, Error> {
    let manifest = read_manifest(dir)?;
    let (connections, epoch_unix_ns) = read_connections(dir, manifest.end_ns)?;
    let records = Records {
        flows: table::read(&at(dir, FLOWS)?, &tables::flows())?,
        samples: table::read_series(&at(dir, SAMPLES)?, &tables::samples())?,
        links: table::read_series(&at(dir, LINKS)?, &tables::links())?,
        classes: if_there(table::read_series(&at(dir, CLASSES)?, &tables::classes()))?,
        paths: if_there(table::read(&at(dir, PATHS)?, &tables::paths()))?,
        path_samples: if_there(table::read_series(
            &at(dir, PATH_SAMPLES)?,
            &tables::path_samples(),
        ))?,
        objects: if_there(table::read(&at(dir, OBJECTS)?, &tables::objects()))?,
        connections: connections.rows,
        transfers: connections.transfers,
        epoch_unix_ns,
        link_names: manifest.link_names.clone(),
        end_ns: manifest.end_ns,
        interrupted: manifest.interrupted,
        cost: manifest.cost(),
        rates: Rates::default(),
    };
    Ok(SavedRun {
        records,
        scenario: read_text(&dir.join(SCENARIO))?,
        summary: read_json(&dir.join(SUMMARY), crate::summary::SCHEMA)?,
        manifest,
    })
}

/// Reads the connections of a run that ended at `end_ns`, and their epoch. A run of an earlier
/// version has only the transfers of its mixes.
fn read_connections(dir: &Path, end_ns: u64) -> Result<(Connections, u64), Error> {
    let mut connections = Connections::default();
    let path = at(dir, CONNECTIONS)?;
    let read = table::read_each(&path, &tables::connections(), |row| connections.push(&row));
    match read {
        Err(Error::Missing { .. }) => {}
        read => {
            read?;
            let epoch = table::metadata(&path, table::EPOCH_KEY)?.unwrap_or_default();
            let epoch = epoch.parse().map_err(|_| Error::malformed(&path, "it has no epoch"))?;
            return Ok((connections, epoch));
        }
    }
    let take = |row: TransferRecord| {
        connections.push(&ConnectionRecord::of_transfer(&row, end_ns));
    };
    match table::read_each(&at(dir, TRANSFERS)?, &tables::transfers(), take) {
        Err(Error::Missing { .. }) => {}
        read => read?,
    }
    Ok((connections, 0))
}

/// Reads only the manifest of a run.
///
/// # Errors
/// The errors of [`read_run`].
pub fn read_manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(MANIFEST);
    match read_json(&path, crate::manifest::SCHEMA) {
        Err(Error::Missing { .. }) if holds_run_files(dir) => {
            Err(Error::Unfinished { path: dir.to_path_buf() })
        }
        Err(Error::Missing { .. }) => Err(Error::NotARun { path: dir.to_path_buf() }),
        other => other,
    }
}

/// Reads only the summary of a run.
///
/// # Errors
/// The errors of [`read_run`].
pub fn read_summary(dir: &Path) -> Result<Summary, Error> {
    read_manifest(dir)?;
    read_json(&dir.join(SUMMARY), crate::summary::SCHEMA)
}

/// Returns whether `dir` contains any file of a run, finished or not.
pub fn holds_run_files(dir: &Path) -> bool {
    let files = [MANIFEST, SCENARIO, FLOWS, SAMPLES, LINKS, SUMMARY];
    files.iter().any(|name| dir.join(name).exists())
        || dir.join(format!("{SAMPLES}{PART}")).exists()
}

/// Returns the path of a file of a run, which must not be a link that leads out of its folder.
fn at(dir: &Path, name: &str) -> Result<PathBuf, Error> {
    inside(dir, Path::new(name)).map_err(|error| Error::malformed(&dir.join(name), error))
}

fn if_there<T: Default>(read: Result<T, Error>) -> Result<T, Error> {
    match read {
        Err(Error::Missing { .. }) => Ok(T::default()),
        read => read,
    }
}

/// Writes a text file, which appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file, which appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (part, mut file) = Part::create(path)?;
    file.write_all(bytes).map_err(|source| Error::io("write", path, source))?;
    part.put_in_place()
}

/// Writes a value as indented JSON with a final newline. The file appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| Error::malformed(path, error))?;
    text.push('\n');
    write_text(path, &text)
}

/// Upper limit for a document's size; a larger file is damaged.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Reads a document, which must not be a link that leads out of its folder.
fn read_text(path: &Path) -> Result<String, Error> {
    let file = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => open_inside(folder, Path::new(name)),
        _ => open_file(path),
    };
    let read = file.and_then(|file| read_open(file, DOCUMENT_BYTES_MAX));
    let bytes = read.map_err(|error| not_read(path, error))?;
    String::from_utf8(bytes).map_err(|_| Error::malformed(path, "it is not UTF-8 text"))
}

/// Distinguishes a file that is missing or not a file from one that the system does not allow to be
/// read.
pub(crate) fn not_read(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Error::Missing { path: path.to_path_buf() }
        }
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => Error::malformed(path, source),
        _ => Error::io("read", path, source),
    }
}

/// Reads a JSON document. The schema name is checked first, so that a file of another version is
/// reported as such and not as damaged.
///
/// # Errors
/// [`Error::Missing`], [`Error::Schema`], [`Error::Malformed`], or [`Error::Io`] if the system does
/// not allow it to be read.
pub fn read_json<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, Error> {
    let text = read_text(path)?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Error::malformed(path, error))?;
    let found = value["schema"].as_str().unwrap_or("none");
    if found != expected {
        return Err(Error::Schema { path: path.to_path_buf(), found: found.to_string(), expected });
    }
    serde_json::from_value(value).map_err(|error| Error::malformed(path, error))
}
