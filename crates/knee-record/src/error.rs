//! Errors of reading and writing. Every message names the path.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full, the folder is not writable, or a file is not readable.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action: `create`, `write`, `read` …
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The folder contains no files of a run.
    #[error("{} is not a run directory: it has no {}", path.display(), crate::run::MANIFEST)]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Writing the folder was interrupted.
    #[error(
        "{} is incomplete: it has no {}; run the scenario again",
        path.display(),
        crate::run::MANIFEST
    )]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// A file that every run has is missing.
    #[error("{} is missing from the run directory", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Another version of Knee wrote the file.
    #[error("{} has schema {found:?}, but this version reads {expected:?}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Schema in the file.
        found: String,
        /// Schema that this version reads.
        expected: &'static str,
    },
    /// The file is damaged or was not written by Knee.
    #[error("{} is damaged: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        let path = path.to_path_buf();
        Error::Io { action, path, source }
    }

    pub(crate) fn malformed(path: &Path, reason: impl ToString) -> Error {
        Error::Malformed { path: path.to_path_buf(), reason: reason.to_string() }
    }
}
