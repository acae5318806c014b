//! What keeps a scenario from running on this host, and what to do about it.

use knee_host::HostError;
use knee_testbed::TestbedError;
use std::io;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The host refuses or lacks something, or a thread panicked.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The kernel has no such congestion controller.
    #[error(
        "flow \"{flow}\": this kernel has no controller \"{name}\", only {available}: \
         choose one of them, load its module, or run the scenario on sim"
    )]
    Controller {
        /// Group of the flow.
        flow: String,
        /// As the scenario says it.
        name: String,
        /// Those it has.
        available: String,
    },
    /// The kernel's TCP cannot be set like this.
    #[error("{place}: {problem}: {advice}")]
    Unsupported {
        /// Where in the scenario.
        place: String,
        /// What is asked for.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// A connection broke, which no emulated path should do.
    #[error("flow \"{flow}\" broke: {source}")]
    Flow {
        /// Label of the flow.
        flow: String,
        /// What the system said.
        source: io::Error,
    },
}

impl KernelError {
    /// A call that fails only when the host is out of something.
    pub(crate) fn call(what: impl Into<String>, source: impl Into<io::Error>) -> KernelError {
        HostError::call(what, source).into()
    }
}

impl From<HostError> for KernelError {
    fn from(error: HostError) -> KernelError {
        TestbedError::from(error).into()
    }
}
