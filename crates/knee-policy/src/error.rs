//! Errors in a policy, and errors of applying it.

use crate::Setting;
use knee_host::HostError;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// An error in a policy's text, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte range in the text.
    pub span: Range<usize>,
    /// The problem.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Why a policy cannot be applied or reverted.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The host refuses or lacks something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal cannot be read or written.
    #[error("cannot {what} the journal {path}: {source}")]
    Journal {
        /// The attempted operation.
        what: &'static str,
        /// The journal.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The journal could have been written by another user.
    #[error("{path} is not safe: {problem}")]
    Unsafe {
        /// The journal or its folder.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The journal contains something that this version of Knee did not write.
    #[error("line {line} of the journal {path} is not one of Knee's: {problem}")]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The error of the parser.
        problem: String,
    },
    /// Another process applies a policy.
    #[error("process {process} already applies a policy, according to the journal {path}")]
    Held {
        /// The journal.
        path: PathBuf,
        /// Process id; 0 if it has not been written yet.
        process: u32,
    },
    /// The journal belongs to another network namespace.
    #[error("the journal {path} belongs to another network namespace, {theirs}")]
    Elsewhere {
        /// The journal.
        path: PathBuf,
        /// The namespace as shown in `/proc/PID/ns/net`.
        theirs: String,
    },
    /// The routing table is in use.
    #[error("table {table} has a route that is not Knee's, to {destination}")]
    TableInUse {
        /// Number of the table.
        table: u32,
        /// Destination of the foreign route.
        destination: ipnet::IpNet,
    },
    /// The host lacks something that BPF programs need, or refuses them.
    #[error("{problem}")]
    Programs {
        /// The problem.
        problem: String,
        /// The remedy.
        advice: String,
    },
    /// Routes cannot carry out an experiment with this policy.
    #[error("{problem}")]
    Experiment {
        /// The problem.
        problem: String,
        /// The remedy.
        advice: String,
    },
    /// This process cannot go on, and everything was reverted.
    #[error("{problem}")]
    Lost {
        /// The problem.
        problem: String,
        /// The remedy.
        advice: &'static str,
    },
    /// The experiment of a site is over, or nearly so.
    #[error("the last triple of this site has begun already")]
    TooLate,
    /// The blocks of an experiment, or the published assignment, cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    Records {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The blocks belong to another experiment.
    #[error("{path} contains the blocks of another experiment, or other data")]
    OtherExperiment {
        /// The file.
        path: PathBuf,
    },
    /// The file for the published assignment has other contents, which it would replace.
    #[error("{path} exists, and is not an assignment that Knee published")]
    NotAssignment {
        /// The file.
        path: PathBuf,
    },
    /// A setting of the host's default controller cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    Setting {
        /// The attempted operation.
        what: &'static str,
        /// The file or the kernel's parameter.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A setting other than Knee's determines the default controller.
    #[error("{}:{} sets {} as the default", .0.path.display(), .0.line, .0.controller)]
    Decided(Setting),
    /// The kernel has no such controller.
    #[error("this kernel has no controller {controller}; it has {}", .have.join(", "))]
    Lacking {
        /// The controller.
        controller: String,
        /// The available ones.
        have: Vec<String>,
    },
}
