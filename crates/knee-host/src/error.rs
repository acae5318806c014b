//! What the host refuses or lacks, and advice.

use std::io;

/// Why something could not be done on this host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host refuses or lacks something.
    #[error("cannot {what}: {source}; {advice}")]
    Refused {
        /// What was attempted.
        what: String,
        /// Error of the system.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// A thread panicked: a defect of Knee.
    #[error("a thread panicked; please report this")]
    Panicked,
}

impl HostError {
    /// Makes the error of a refused operation `what` (an infinitive), with the system's `source`.
    pub fn refused(
        what: impl Into<String>,
        source: impl Into<io::Error>,
        advice: &'static str,
    ) -> HostError {
        HostError::Refused { what: what.into(), source: source.into(), advice }
    }

    /// Makes the error of a call that fails only if the host runs out of a resource.
    pub fn call(what: impl Into<String>, source: impl Into<io::Error>) -> HostError {
        HostError::refused(what, source, "check the limits on memory, files and processes")
    }
}
