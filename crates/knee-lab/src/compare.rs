//! Two runs, or the repeats of two, number by number.

use crate::directory::{REPEAT, repeat};
use crate::error::Error;
use knee_record::{Comparison, Summary, read_summary};
use std::path::Path;

/// Why two directories cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One has repeats.
    #[error("one is a single run, the other one repeats")]
    Kinds,
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

/// The runs of an experiment with repeats; none where a single run is.
fn repeats(directory: &Path) -> Result<Option<Vec<Summary>>, Error> {
    if !directory.join(REPEAT).is_file() {
        return Ok(None);
    }
    let folders = (1..).map(|number| directory.join(repeat(number)));
    let there = folders.take_while(|folder| folder.is_dir());
    Ok(Some(there.map(|folder| read_summary(&folder)).collect::<Result<_, _>>()?))
}
