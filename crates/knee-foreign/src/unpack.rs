//! Files that are compressed by gzip or not.

use crate::error::FileError;
use flate2::bufread::MultiGzDecoder;
use knee_units::{GZIP, Lines, Unpacked, foreign_format};
use std::io::Read;

/// Returns a reader of what a file contains, decompressed if it is a gzip file: at most 1 GiB.
pub(crate) fn unpacked(bytes: &[u8]) -> Box<dyn Read + '_> {
    match foreign_format(bytes) {
        Some(GZIP) => Box::new(Unpacked::new(MultiGzDecoder::new(bytes))),
        _ => Box::new(bytes),
    }
}

/// Opens the lines of a file.
pub(crate) fn lines(bytes: &[u8]) -> Result<Lines<Box<dyn Read + '_>>, FileError> {
    Lines::open(unpacked(bytes)).map_err(|error| FileError::unreadable(1, &error))
}

/// Reads the next line as text, in place of `line`; returns whether there is one.
pub(crate) fn next_line<R: Read>(
    lines: &mut Lines<R>,
    line: &mut String,
) -> Result<bool, FileError> {
    let read = lines.next_text(line);
    read.map_err(|error| FileError::unreadable(lines.number(), &error))
}

/// Returns the first bytes of what a file contains, without a byte order mark and white space at
/// the beginning.
pub(crate) fn start(bytes: &[u8]) -> Vec<u8> {
    const START: u64 = 4096;
    let mut start = Vec::new();
    // A file that cannot be read is reported by its reader.
    let _ = unpacked(bytes).take(START).read_to_end(&mut start);
    let text = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&start);
    text.trim_ascii_start().to_vec()
}

/// Returns the first bytes of a text, as [`start`] does.
///
/// # Errors
/// If the file is none: compressed otherwise than by gzip, in another encoding, empty or binary.
pub(crate) fn text_start(bytes: &[u8]) -> Result<Vec<u8>, FileError> {
    let start = start(bytes);
    let packed = foreign_format(bytes).filter(|format| *format != GZIP);
    if let Some(format) = packed.or_else(|| foreign_format(&start)) {
        return Err(FileError::new(1, format!("it is {}", format.name), format.advice));
    }
    if start.is_empty() {
        return Err(FileError::new(1, "it is empty", "record it again"));
    }
    if start.contains(&0) {
        return Err(FileError::new(1, "it contains NUL bytes", "write the name of a text file"));
    }
    Ok(start)
}
