//! Errors of loading a controller, with advice.

use super::NAMES;
use knee_cc::SelectionError;
use std::io;

/// Why a controller could not be loaded, listed or unloaded.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}", self.problem(), self.advice())]
pub enum BpfError {
    /// Knee has no BPF controller of this name.
    Unknown(String),
    /// A parameter, or its value, does not exist.
    Parameter(SelectionError),
    /// The kernel already has a controller of this name.
    AlreadyLoaded(String),
    /// No controller of this name is loaded.
    NotLoaded(String),
    /// What the host lacks, and advice.
    Lacks(&'static str, &'static str),
    /// The system refused something: what, its error, and advice.
    Refused(&'static str, String, &'static str),
}

impl BpfError {
    /// Returns what is wrong.
    pub fn problem(&self) -> String {
        match self {
            BpfError::Unknown(name) => format!("Knee has no BPF controller \"{name}\""),
            BpfError::Parameter(error) => error.problem.clone(),
            BpfError::AlreadyLoaded(name) => format!("this kernel already has \"{name}\""),
            BpfError::NotLoaded(name) => format!("\"{name}\" is not loaded"),
            BpfError::Lacks(what, _) => format!("this host lacks {what}"),
            BpfError::Refused(what, reason, _) => format!("cannot {what}: {reason}"),
        }
    }

    /// Returns what to do about it.
    pub fn advice(&self) -> String {
        match self {
            BpfError::Unknown(_) => format!("write {}", NAMES.join(" or ")),
            BpfError::Parameter(error) => error.advice.clone(),
            BpfError::AlreadyLoaded(name) => format!("unload it first: knee cc unload {name}"),
            BpfError::NotLoaded(_) => "knee cc list shows the loaded ones".to_owned(),
            BpfError::Lacks(_, advice) | BpfError::Refused(_, _, advice) => (*advice).to_owned(),
        }
    }

    pub(super) fn io(what: &'static str, error: &io::Error) -> BpfError {
        BpfError::Refused(what, error.to_string(), "run as root, and check /sys/fs/bpf")
    }
}

impl From<SelectionError> for BpfError {
    fn from(error: SelectionError) -> BpfError {
        BpfError::Parameter(error)
    }
}

/// Root has all of these privileges.
pub(super) const PERMISSION: BpfError = BpfError::Lacks(
    "the permission to load BPF programs (CAP_BPF)",
    "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
);
