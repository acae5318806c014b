//! Reads the transfers of an access log into memory.

use super::AccessLog;
use super::taken::{Taken, TooMuch};
use knee_foreign::{AccessLines, Extent, FileError};

/// Reads the transfers in an access log, optionally compressed by gzip, in any format of
/// [`AccessLines`]. The transfers take at most 48 MiB and four times the size of the file.
///
/// # Errors
///
/// The first invalid line, with what to write instead; more than 10,000,000 lines.
pub fn read_access_log(content: &[u8]) -> Result<AccessLog, FileError> {
    let mut lines = AccessLines::open(content, Extent::Kept)?;
    let mut taken = Taken::of_file(content.len());
    while let Some(transfer) = lines.next_transfer()? {
        taken.add(transfer).map_err(|too_much| refused(transfer.line, too_much))?;
    }
    Ok(taken.log(lines.format(), lines.passed_over()))
}

/// Returns the name of the format if a text begins like an access log.
pub fn log_format(text: &str) -> Option<&'static str> {
    const TRIED_BYTES: usize = 1 << 16;
    // Whole lines.
    let start = text.get(..TRIED_BYTES).and_then(|start| Some(&start[..start.rfind('\n')?]));
    read_access_log(start.unwrap_or(text).as_bytes()).ok().map(|log| log.format)
}

fn refused(line: usize, too_much: TooMuch) -> FileError {
    let (problem, advice) = match too_much {
        TooMuch::Classes => (
            "there are too many different classes",
            "rename that column, so that it is not taken for the class",
        ),
        TooMuch::Lines => (
            "the lines up to here take too much memory for a file of this size",
            "use a part of it",
        ),
    };
    FileError::new(line, problem, advice)
}
