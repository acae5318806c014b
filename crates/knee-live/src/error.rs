//! Why connections cannot be observed.

use ipnet::IpNet;

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
