//! Compares the records of two folders byte by byte.

use super::{Again, FileAgain};
use crate::directory::{ANSWERS, EVALUATION, PACKETS, RANK, REPEAT, SWEEP, repeat};
use crate::error::Error;
use crate::words::is_headline;
use knee_record::{Comparison, Difference, SCENARIO, SUMMARY, read_summary};
use knee_scenario::{inside, open_inside};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Files whose bytes are reproducible, besides `*.parquet`. Pages and manifests contain the command
/// line, the clock and the cost.
const RECORDS: [&str; 8] = [SUMMARY, SCENARIO, REPEAT, ANSWERS, SWEEP, RANK, EVALUATION, PACKETS];

/// Compares all records in either folder, by name.
pub(super) fn files_again(before: &Path, now: &Path) -> Result<Vec<FileAgain>, Error> {
    let mut names = records(before)?;
    names.extend(records(now)?);
    names.into_iter().map(|file| file_again(before, now, file)).collect()
}

fn file_again(before: &Path, now: &Path, file: String) -> Result<FileAgain, Error> {
    let (first, second) = (before.join(&file), now.join(&file));
    let outcome = match (first.is_file(), second.is_file()) {
        (true, false) => Again::OnlyBefore,
        (false, _) => Again::OnlyNow,
        (true, true) if equal(open(before, &file)?, open(now, &file)?, &first)? => Again::Same,
        (true, true) => Again::Differs,
    };
    let is_summary = Path::new(&file).file_name().is_some_and(|name| name == SUMMARY);
    let numbers = match outcome == Again::Differs && is_summary {
        true => differing(&first, &second)?,
        false => Vec::new(),
    };
    Ok(FileAgain { file, outcome, numbers })
}

fn equal(one: File, other: File, path: &Path) -> Result<bool, Error> {
    let failed = |source| Error::Read { path: path.to_path_buf(), source };
    let length = |file: &File| file.metadata().map(|about| about.len()).map_err(failed);
    if length(&one)? != length(&other)? {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (first, second) = (one.fill_buf().map_err(failed)?, other.fill_buf().map_err(failed)?);
        let count = first.len().min(second.len());
        if first[..count] != second[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(first.len() == second.len());
        }
        one.consume(count);
        other.consume(count);
    }
}

/// Opens a file of a folder, which must not be a link that leads out of it.
pub(super) fn open(directory: &Path, name: &str) -> Result<File, Error> {
    let path = || directory.join(name);
    open_inside(directory, Path::new(name)).map_err(|source| Error::Read { path: path(), source })
}

/// Returns the path of a file of a folder, which must not be a link that leads out of it.
pub(super) fn within(directory: &Path, name: &str) -> Result<PathBuf, Error> {
    let path = || directory.join(name);
    inside(directory, Path::new(name)).map_err(|source| Error::Read { path: path(), source })
}

/// Returns the numbers that differ between two summaries: headline numbers, then the others, both
/// in descending order of difference.
fn differing(first: &Path, second: &Path) -> Result<Vec<Difference>, Error> {
    let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    let (first, second) = (read_summary(&folder(first))?, read_summary(&folder(second))?);
    let mut all = Comparison::new(&first, &second).differences;
    all.retain(|one| one.before.to_bits() != one.after.to_bits());
    let size = |one: &Difference| one.relative.map_or(f64::INFINITY, f64::abs);
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all.sort_by_key(|one| !is_headline(&one.measure));
    Ok(all)
}

/// Returns the names of the records in a folder and in those of its repeats.
fn records(directory: &Path) -> Result<BTreeSet<String>, Error> {
    let is_record = |name: &str| name.ends_with(".parquet") || RECORDS.contains(&name);
    let mut found = BTreeSet::new();
    let mut folders = vec![(directory.to_path_buf(), String::new())];
    folders.extend(
        (1..)
            .map(|n| (directory.join(repeat(n)), format!("{}/", repeat(n))))
            .take_while(|(at, _)| at.is_dir()),
    );
    for (folder, prefix) in folders {
        let failed = |source| Error::Read { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if is_record(&name) {
                found.insert(format!("{prefix}{name}"));
            }
        }
    }
    Ok(found)
}
