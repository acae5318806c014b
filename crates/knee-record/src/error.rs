//! What can go wrong between memory and disk. Every message names the path.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full, the folder is not writable, a file is not readable.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `create`, `write`, `read` …
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds nothing that a run would leave.
    #[error("{} is not a run directory: it has no {}", path.display(), crate::run::MANIFEST)]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Writing the folder was cut short.
    #[error(
        "{} was not written to its end: it has no {}; run the scenario again",
        path.display(),
        crate::run::MANIFEST
    )]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// A file that belongs to every run is gone.
    #[error("{} is missing from the run directory", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Another version of Knee wrote it.
    #[error("{} has schema {found:?}, this version reads {expected:?}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: String,
        /// What would be read.
        expected: &'static str,
    },
    /// The file is damaged or was not written by Knee.
    #[error("{} is damaged: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What does not fit.
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
