//! The run directory: `manifest.json`, `scenario.toml` with the traces and
//! loss records that it names, Parquet files and `summary.json`. Those of
//! paths, objects and transfers are there when the run had any.
//!
//! Each file appears whole or not at all (written beside its place, then
//! renamed), and the manifest comes last: a directory without one was not
//! written to its end, and reading it says so.

use crate::{Error, Manifest, Records, Summary, tables};
use knee_scenario::Scenario;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What varies from run to run.
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
/// Time series of those paths.
pub const PATH_SAMPLES: &str = "path-samples.parquet";
/// One row per object of a page and segment of a video.
pub const OBJECTS: &str = "objects.parquet";
/// One row per transfer of a mix.
pub const TRANSFERS: &str = "transfers.parquet";
/// What came out.
pub const SUMMARY: &str = "summary.json";

/// A run as read from its directory.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// What varies from run to run.
    pub manifest: Manifest,
    /// The resolved scenario, TOML.
    pub scenario: String,
    /// The tables.
    pub records: Records,
    /// What came out.
    pub summary: Summary,
}

/// Writes a run into `dir`, which is created with its parents if need be; a
/// run that is there is replaced, other files are left alone.
///
/// # Errors
/// [`Error::Io`] with the path, when the disk is full or the folder cannot be
/// written. What was written until then does not pass for a run.
pub fn write_run(
    dir: &Path,
    manifest: &Manifest,
    scenario: &Scenario,
    records: &Records,
    summary: &Summary,
) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|source| Error::io("create", dir, source))?;
    remove_if_there(&dir.join(MANIFEST))?;
    for file in &scenario.files {
        write_bytes(&dir.join(&file.name), &file.bytes)?;
    }
    write_text(&dir.join(SCENARIO), &scenario.resolved)?;
    write_tables(dir, records)?;
    write_json(&dir.join(SUMMARY), summary)?;
    write_json(&dir.join(MANIFEST), manifest)
}

fn write_tables(dir: &Path, records: &Records) -> Result<(), Error> {
    let names = tables::Names::of(records);
    let Records { flows, samples, links, paths, path_samples, objects, transfers, .. } = records;
    place(&dir.join(FLOWS), |path| tables::write_flows(path, flows))?;
    place(&dir.join(SAMPLES), |path| tables::write_samples(path, &names, samples))?;
    place(&dir.join(LINKS), |path| tables::write_links(path, &names, links))?;
    place_if_any(&dir.join(PATHS), paths, |path| tables::write_paths(path, &names, paths))?;
    place_if_any(&dir.join(PATH_SAMPLES), path_samples, |path| {
        tables::write_path_samples(path, &names, path_samples)
    })?;
    place_if_any(&dir.join(OBJECTS), objects, |path| tables::write_objects(path, &names, objects))?;
    place_if_any(&dir.join(TRANSFERS), transfers, |path| {
        tables::write_transfers(path, &names, transfers)
    })
}

/// Reads a run that [`write_run`] wrote.
///
/// # Errors
/// [`Error::NotARun`] when the directory holds nothing of a run,
/// [`Error::Unfinished`] when writing it was cut short, [`Error::Missing`]
/// when a file is gone, [`Error::Schema`] when another version wrote it,
/// [`Error::Malformed`] when a file is damaged.
pub fn read_run(dir: &Path) -> Result<SavedRun, Error> {
    let manifest = read_manifest(dir)?;
    let records = Records {
        flows: tables::read_flows(&dir.join(FLOWS))?,
        samples: tables::read_samples(&dir.join(SAMPLES))?,
        links: tables::read_links(&dir.join(LINKS))?,
        paths: if_there(tables::read_paths(&dir.join(PATHS)))?,
        path_samples: if_there(tables::read_samples(&dir.join(PATH_SAMPLES)))?,
        objects: if_there(tables::read_objects(&dir.join(OBJECTS)))?,
        transfers: if_there(tables::read_transfers(&dir.join(TRANSFERS)))?,
        link_names: manifest.link_names.clone(),
        end_ns: manifest.end_ns,
        interrupted: manifest.interrupted,
        cost: manifest.cost(),
    };
    Ok(SavedRun {
        records,
        scenario: read_text(&dir.join(SCENARIO))?,
        summary: read_json(&dir.join(SUMMARY), crate::summary::SCHEMA)?,
        manifest,
    })
}

/// Reads only the manifest of a run.
///
/// # Errors
/// As [`read_run`].
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
/// As [`read_run`].
pub fn read_summary(dir: &Path) -> Result<Summary, Error> {
    read_manifest(dir)?;
    read_json(&dir.join(SUMMARY), crate::summary::SCHEMA)
}

/// Whether any file of a run stands in `dir`, finished or not.
pub fn holds_run_files(dir: &Path) -> bool {
    [MANIFEST, SCENARIO, FLOWS, SAMPLES, LINKS, SUMMARY].iter().any(|name| dir.join(name).exists())
}

/// Lets `write` fill a file beside `path`, then moves it there.
pub(crate) fn place(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = write(&beside).and_then(|()| {
        fs::rename(&beside, path).map_err(|source| Error::io("write", path, source))
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A table without rows is no file, nor is what an earlier run left there.
fn place_if_any<R>(
    path: &Path,
    rows: &[R],
    write: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    if rows.is_empty() { remove_if_there(path) } else { place(path, write) }
}

fn if_there<R>(read: Result<Vec<R>, Error>) -> Result<Vec<R>, Error> {
    match read {
        Err(Error::Missing { .. }) => Ok(Vec::new()),
        read => read,
    }
}

/// Writes a text file; it appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    place(path, |beside| {
        let mut file =
            fs::File::create(beside).map_err(|source| Error::io("create", path, source))?;
        file.write_all(bytes).map_err(|source| Error::io("write", path, source))
    })
}

/// Writes a value as indented JSON with a final newline; the file appears
/// whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| Error::malformed(path, error))?;
    text.push('\n');
    write_text(path, &text)
}

fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Error::Missing { path: path.to_path_buf() }
        }
        ErrorKind::InvalidData => Error::malformed(path, "it is not UTF-8 text"),
        _ => Error::io("read", path, source),
    })
}

/// The schema name is read first, so that a file of another version is told
/// as such and not as damaged.
pub(crate) fn read_json<T: DeserializeOwned>(
    path: &Path,
    expected: &'static str,
) -> Result<T, Error> {
    let text = read_text(path)?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Error::malformed(path, error))?;
    let found = value["schema"].as_str().unwrap_or("none");
    if found != expected {
        return Err(Error::Schema { path: path.to_path_buf(), found: found.to_string(), expected });
    }
    serde_json::from_value(value).map_err(|error| Error::malformed(path, error))
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::io("replace", path, source))
        }
        _ => Ok(()),
    }
}
