//! Several links as one: a client that offers its host a proxy, a server that connects to the
//! targets that the client asks for, and between them a bundle of QUIC connections, one over each
//! link.
//!
//! | part | what it does |
//! |---|---|
//! | [`key`] | keys by which the ends know each other |
//! | [`ClientConfig`], [`ServerConfig`] | configuration of each end |
//! | [`Client`] | finds links and keeps them, offers SOCKS5, CONNECT and forwarded ports, or takes all that programs send |
//! | [`Server`] | knows clients by their keys, and denies them what is not the open Internet |
//! | [`Engine`] | runs a host of `knee-quic` over sockets |
//! | [`flows`] | UDP of a client's host and house |
//! | [`quota`] | counts the traffic of links with a cap |
//! | [`judge`] | detects harmful links |
//! | [`status`], [`page`] | show the state of an end |
//! | [`record`] | records a running end for the laboratory |
//!
//! TCP is terminated at both ends, so that one connection uses all links; a UDP flow stays on one
//! link for as long as it works. All of an end runs on one thread.
//!
//! What this crate never does: accept data from an unknown end, connect to what its rules deny,
//! show a secret, hold a host over an await, use further threads except to watch for changes of
//! links and addresses, to resolve names and to write the counts of caps.

mod client;
pub mod config;
mod datagrams;
pub mod dns;
pub mod egress;
mod engine;
pub mod flows;
pub mod judge;
pub mod key;
mod links;
pub mod meter;
pub mod page;
pub mod proxy;
pub mod quota;
pub mod record;
pub mod request;
mod resolver;
mod server;
mod settings;
pub mod status;
mod stream;
mod streams;
mod transparent;
mod tuning;

pub use client::{Client, ClientHandle, Tried, check_transparent, try_links};
pub use config::{ClientConfig, ConfigError, Forward, ServerConfig};
pub use engine::{Engine, EngineEvent};
pub use server::Server;
pub use stream::{Broken, BundleStream};

use key::KeyFileError;
use knee_host::HostError;
use quota::QuotaError;

/// Why an end cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BondError {
    /// Its key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Its QUIC host cannot be created.
    #[error(transparent)]
    Quic(#[from] knee_quic::HostError),
    /// The links of this machine cannot be listed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port or socket cannot be bound.
    #[error("cannot listen at {at}: {source}{}", advice(source))]
    Listen {
        /// Address or path.
        at: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The caps of links cannot be counted.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The system gives no random bytes.
    #[error("the system provides no random bytes")]
    Random,
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            ": another process uses it; end that process, or choose another address"
        }
        std::io::ErrorKind::AddrNotAvailable => ": this machine has no such address",
        std::io::ErrorKind::PermissionDenied => {
            ": choose a place that this user can write to, or a port above 1023"
        }
        std::io::ErrorKind::NotFound => ": its folder does not exist",
        _ => "",
    }
}
