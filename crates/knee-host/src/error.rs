//! What the host refuses or lacks, and what to do about it.

use std::io;

/// Why something could not be done on this host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host refuses or lacks something.
    #[error("cannot {what}: {source}; {advice}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// A thread panicked: a defect of Knee.
    #[error("a thread panicked; please report this")]
    Panicked,
}

impl HostError {
    /// The host would not do `what` (an infinitive) and said `source`.
    pub fn refused(
        what: impl Into<String>,
        source: impl Into<io::Error>,
        advice: &'static str,
    ) -> HostError {
        HostError::Refused { what: what.into(), source: source.into(), advice }
    }

    /// A call that fails only when the host is out of something.
    pub fn call(what: impl Into<String>, source: impl Into<io::Error>) -> HostError {
        HostError::refused(what, source, "look for limits on memory, files and processes")
    }
}
