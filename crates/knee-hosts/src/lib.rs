//! The ground `hosts`: the scenario's flows between two machines, over the path that is there.
//!
//! | part | what it does |
//! |---|---|
//! | [`ServeConfig`], [`Server`] | the machine that receives: who may send to it, how much and when |
//! | [`HostConfig`], [`Session`] | the machine that runs the scenario and sends |
//!
//! The server has one TCP port. A connection to it is either a control channel, which is TLS with
//! keys pinned at both ends, or a flow of a scenario. A flow begins with a greeting whose token was
//! given out over a control channel a moment ago; its data is discarded and counted. The sender's
//! sockets are those of `knee-kernel`, and so are the records.
//!
//! What this crate never does: accept data from an unknown machine, connect to one that sends,
//! change a setting of a machine, shape what it receives, keep it, print. Only the numbers of bytes
//! that clients have used of a limit are kept.

mod account;
mod config;
pub mod frames;
mod serve;
mod session;
mod used;

pub use config::{EXAMPLE, HostConfig, Hours, LimitsConfig, PORT, ServeConfig};
pub use knee_bond::ConfigError;
pub use serve::Server;
pub use session::{Received, Session, check, run, run_to};

use knee_bond::key::KeyFileError;
use knee_kernel::KernelError;
use knee_quic::KeyError;
use std::io;

/// Name of the protocol in the handshake (RFC 7301), so that no server of another is taken for this.
const PROTOCOL: &[u8] = b"knee-hosts/1";

/// Why a machine cannot serve, or flows cannot run to it.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The kernel of this machine does not support something, or a flow failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The key of this machine cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The keys cannot be used for TLS.
    #[error(transparent)]
    Tls(#[from] KeyError),
    /// What clients have used of their bytes cannot be read or written.
    #[error("what clients have used of bytes_per_day: {0}")]
    Used(Box<knee_record::Error>),
    /// The port cannot be bound.
    #[error("cannot listen at {at}: {source}")]
    Listen {
        /// Address and port.
        at: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The other machine does not answer.
    #[error("cannot reach {host}: {source}")]
    Unreachable {
        /// Name or address, and port.
        host: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The other machine has another key, or refuses this one.
    #[error("{host} and this machine do not know each other's keys: {source}")]
    Unknown {
        /// Name or address, and port.
        host: String,
        /// Error of the handshake.
        source: io::Error,
    },
    /// The other machine does not permit the run.
    #[error("{host} refuses: {reason}")]
    Refused {
        /// Name or address, and port.
        host: String,
        /// Its reason.
        reason: String,
    },
    /// The other machine is gone.
    #[error("{host} was lost during the run: {source}")]
    Lost {
        /// Name or address, and port.
        host: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A row of the run could not be stored.
    #[error(transparent)]
    Samples(knee_record::Error),
    /// This machine lacks a resource.
    #[error("this machine lacks a resource: {0}")]
    System(io::Error),
    /// A thread panicked: a defect in Knee.
    #[error("a thread of the run panicked; please report this with the scenario")]
    Panicked,
}
