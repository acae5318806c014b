//! Why connections cannot be observed.

use ipnet::IpNet;
use std::path::PathBuf;

/// Why connections cannot be observed, or can no longer.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The host refuses or lacks something.
    #[error(transparent)]
    Host(#[from] knee_host::HostError),
    /// What was heard cannot be kept.
    #[error(transparent)]
    Record(#[from] knee_record::Error),
    /// A group's text is none.
    #[error("{text:?} is no group of prefixes: {problem}")]
    Group {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A text is no period of time.
    #[error("{text:?} is no period: {problem}")]
    Period {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No minute of the records is in the periods that were asked for.
    #[error("nothing in {} was observed in the time that was asked for", .0.display())]
    NothingObserved(PathBuf),
    /// A table beside the records cannot be used.
    #[error("{}, line {line}: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: u64,
        /// What is wrong there.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// Two groups claim the same prefix.
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
