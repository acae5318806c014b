//! What can be wrong with a policy, and what can stop it from being applied.

use crate::Setting;
use knee_host::HostError;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Something wrong in a policy's text, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Why a policy cannot be applied or taken back.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The host refuses or lacks something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal cannot be read or written.
    #[error("cannot {what} the journal {path}: {source}")]
    Journal {
        /// What was tried.
        what: &'static str,
        /// The journal.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else could have written the journal.
    #[error("{path} is not safe: {problem}")]
    Unsafe {
        /// The journal or its folder.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// What stands in the journal was not written by this version of Knee.
    #[error("line {line} of the journal {path} is not one of Knee's: {problem}")]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What the reader says.
        problem: String,
    },
    /// Another process applies a policy.
    #[error("process {process} applies a policy already, by the journal {path}")]
    Held {
        /// The journal.
        path: PathBuf,
        /// Number of the process, 0 if it has not written it yet.
        process: u32,
    },
    /// The journal belongs to another network namespace.
    #[error("the journal {path} is of another network namespace, {theirs}")]
    Elsewhere {
        /// The journal.
        path: PathBuf,
        /// As `/proc/PID/ns/net` shows it.
        theirs: String,
    },
    /// Somebody uses the table.
    #[error("table {table} has a route of somebody else, to {destination}")]
    TableInUse {
        /// Number of the table.
        table: u32,
        /// Where that route leads.
        destination: ipnet::IpNet,
    },
    /// The host lacks something that BPF programs need, or refuses them.
    #[error("{problem}")]
    Programs {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        advice: String,
    },
    /// The blocks of an experiment cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    Records {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The blocks are those of another experiment.
    #[error("{path} has the blocks of another experiment, or something else")]
    OtherExperiment {
        /// The file.
        path: PathBuf,
    },
    /// A setting of the host's default controller cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    Setting {
        /// What was tried.
        what: &'static str,
        /// The file or the kernel's parameter.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else decides the default controller.
    #[error("{}:{} sets {} as the default", .0.path.display(), .0.line, .0.controller)]
    Decided(Setting),
    /// The kernel has no such controller.
    #[error("this kernel has no controller {controller}; it has {}", .have.join(", "))]
    Lacking {
        /// The controller.
        controller: String,
        /// Those that there are.
        have: Vec<String>,
    },
}
