//! Errors of a testbed, with advice.

use knee_host::HostError;
use std::io;

/// Why a testbed could not be set up, or a run on it failed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The host refuses or lacks something.
    #[error("cannot {what}: {source}; {advice}")]
    Host {
        /// The attempted operation.
        what: String,
        /// The error of the system.
        source: io::Error,
        /// The remedy.
        advice: &'static str,
    },
    /// A row of the run could not be stored.
    #[error(transparent)]
    Samples(#[from] knee_record::Error),
    /// A thread of the run panicked: a defect in Knee.
    #[error("a thread of the run panicked; please report this with the scenario")]
    Panicked,
}

impl TestbedError {
    /// Error of a call that fails only if the host lacks a resource.
    pub(crate) fn call(what: impl Into<String>, source: impl Into<io::Error>) -> TestbedError {
        HostError::call(what, source).into()
    }
}

impl From<HostError> for TestbedError {
    fn from(error: HostError) -> TestbedError {
        match error {
            HostError::Refused { what, source, advice } => {
                TestbedError::Host { what, source, advice }
            }
            HostError::Panicked => TestbedError::Panicked,
        }
    }
}
