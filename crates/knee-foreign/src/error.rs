//! Why a file cannot be used.

use knee_units::LineError;
use thiserror::Error;

/// Why a file cannot be used: the line, what is wrong there, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}; {advice}")]
pub struct FileError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}

impl FileError {
    /// Creates the error for a line, numbered from 1.
    pub fn new(line: usize, problem: impl Into<String>, advice: impl Into<String>) -> FileError {
        FileError { line: line.max(1), problem: problem.into(), advice: advice.into() }
    }

    /// The error for a line that cannot be read.
    pub(crate) fn unreadable(line: usize, error: &LineError) -> FileError {
        FileError::new(line, shorten(&error.problem(), 120), error.advice())
    }
}

/// Characters of a field that an error shows.
pub(crate) const SHOWN: usize = 30;

/// Returns at most `characters` of a text from a file, escaped so that they fit on one line.
pub fn shorten(text: &str, characters: usize) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in text.chars() {
        let escaped = character.escape_debug();
        length += escaped.len();
        if length > characters {
            short.push('…');
            break;
        }
        short.extend(escaped);
    }
    short
}
