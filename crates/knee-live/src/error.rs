//! Errors of observing connections.

use ipnet::IpNet;
use knee_foreign::FileError;
use std::path::{Path, PathBuf};

/// Why connections cannot be observed, or can no longer be.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The host refuses or lacks something.
    #[error(transparent)]
    Host(#[from] knee_host::HostError),
    /// Records cannot be read or written.
    #[error(transparent)]
    Record(#[from] knee_record::Error),
    /// Invalid syntax of a group.
    #[error("{text:?} is not a group of prefixes: {problem}")]
    Group {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
    },
    /// The host lacks something that BPF programs need, or refuses them.
    #[error("{problem}")]
    Programs {
        /// The problem.
        problem: String,
        /// The remedy.
        advice: String,
    },
    /// The published assignment of a policy is unusable.
    #[error("{} does not say which connections are in which arm: {problem}", path.display())]
    Assignment {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Invalid syntax of a period.
    #[error("{text:?} is not a period: {problem}")]
    Period {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
    },
    /// No recorded minute lies in the requested periods.
    #[error("nothing in {} was observed in the requested period", .0.display())]
    NothingObserved(PathBuf),
    /// No connection was seen with one of the controllers to compare.
    #[error("no connection was seen with the controller {name}")]
    NoController {
        /// The controller.
        name: String,
        /// Those that were seen.
        seen: String,
    },
    /// A table given beside the records is unusable.
    #[error("{}, line {line}: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Line number, from one.
        line: u64,
        /// The problem.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// A prefix occurs in two groups.
    #[error("{prefix} is in two groups, {first} and {second}")]
    Twice {
        /// The prefix.
        prefix: IpNet,
        /// One of the groups.
        first: String,
        /// The other.
        second: String,
    },
}

impl LiveError {
    /// Names the file whose line cannot be used.
    pub(crate) fn file(path: &Path, error: FileError) -> LiveError {
        LiveError::Table {
            path: path.to_path_buf(),
            line: error.line as u64,
            problem: error.problem,
            advice: error.advice,
        }
    }
}
