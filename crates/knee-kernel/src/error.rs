//! Why a scenario cannot run on this host, with advice.

use knee_host::HostError;
use knee_testbed::TestbedError;
use std::io;

/// Why a run was not possible.
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
        /// Label of the flow's group.
        flow: String,
        /// Name in the scenario.
        name: String,
        /// Names of the controllers that the kernel has.
        available: String,
    },
    /// The kernel's TCP does not have this setting.
    #[error("{place}: {problem}: {advice}")]
    Unsupported {
        /// Place in the scenario.
        place: String,
        /// What is not possible.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// A connection failed, which must not happen on an emulated path.
    #[error("flow \"{flow}\" broke: {source}")]
    Flow {
        /// Label of the flow.
        flow: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl KernelError {
    /// Makes the error of a call that fails only if the host runs out of a resource.
    pub(crate) fn call(what: impl Into<String>, source: impl Into<io::Error>) -> KernelError {
        HostError::call(what, source).into()
    }
}

impl From<HostError> for KernelError {
    fn from(error: HostError) -> KernelError {
        TestbedError::from(error).into()
    }
}
