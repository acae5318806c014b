//! Two runs, or the repeats of two, number by number.

use crate::directory::{REPEAT, repeat};
use crate::error::Error;
use crate::given::{Given, differing};
use knee_record::{Comparison, Summary, read_summary};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Why two directories cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One has repeats.
    #[error("one is a single run, the other one repeats")]
    Kinds,
    /// There is nothing to compare with.
    #[error("one run alone cannot be compared")]
    TooFew,
    /// There are no pairs.
    #[error("the repeats have fewer than two seeds in common")]
    NoCommonSeeds,
}

/// Compares the run in one directory with that in another, or the repeats.
///
/// # Errors
/// That one cannot be read, or a [`CompareError`].
pub fn compare(before: &Path, after: &Path) -> Result<Comparison, Error> {
    match (repeats(before)?, repeats(after)?) {
        (Some(before), Some(after)) => {
            Ok(Comparison::of_repeats(&before, &after).ok_or(CompareError::NoCommonSeeds)?)
        }
        (None, None) => Ok(Comparison::new(&read_summary(before)?, &read_summary(after)?)),
        _ => Err(CompareError::Kinds.into()),
    }
}

/// Several runs against the first of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsCompared {
    /// `knee-comparisons/1`.
    pub schema: &'static str,
    /// Where the runs are; the first is what the others are compared with.
    pub directories: Vec<String>,
    /// What they were given that differs.
    pub given: Vec<Given>,
    /// The others, each against the first.
    pub comparisons: Vec<Comparison>,
}

/// Compares runs, or repeats, with the first of them.
///
/// # Errors
/// That one cannot be read, or a [`CompareError`].
pub fn compare_runs(directories: &[PathBuf]) -> Result<RunsCompared, Error> {
    let (first, others) = directories.split_first().ok_or(CompareError::TooFew)?;
    if others.is_empty() {
        return Err(CompareError::TooFew.into());
    }
    Ok(RunsCompared {
        schema: "knee-comparisons/1",
        directories: directories.iter().map(|path| path.display().to_string()).collect(),
        comparisons: others.iter().map(|other| compare(first, other)).collect::<Result<_, _>>()?,
        given: differing(directories)?,
    })
}

/// The runs of an experiment with repeats; none where a single run is.
fn repeats(directory: &Path) -> Result<Option<Vec<Summary>>, Error> {
    if !directory.join(REPEAT).is_file() {
        return Ok(None);
    }
    let folders = (1..).map(|number| directory.join(repeat(number)));
    let there = folders.take_while(|folder| folder.is_dir());
    Ok(Some(there.map(|folder| read_summary(&folder)).collect::<Result<_, _>>()?))
}
