//! What the host refuses a testbed, and what to do about it.

use knee_host::HostError;
use std::io;

/// Why a testbed could not be set up, or a run on it not be made.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The host refuses or lacks something.
    #[error("cannot {what}: {source}; {advice}")]
    Host {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// A thread of the run panicked: a defect of Knee.
    #[error("a thread of the run panicked; please report this with the scenario")]
    Panicked,
}

impl TestbedError {
    /// A call that fails only when the host is out of something.
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
