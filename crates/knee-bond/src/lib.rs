//! Several links as one: a client that offers its host a proxy, and a server that connects
//! to where the client asks for, with a bundle of QUIC connections between them, one over
//! each link.
//!
//! | part | what it does |
//! |---|---|
//! | [`key`] | the keys by which the ends know each other |
//! | [`ClientConfig`], [`ServerConfig`] | what each end is told |
//! | [`Client`] | finds links and keeps them, offers SOCKS5, CONNECT and forwarded ports, or takes all that programs send |
//! | [`Server`] | knows clients by their keys, and denies them what is not the open Internet |
//! | [`Engine`] | runs a host of `knee-quic` over sockets |
//! | [`quota`] | what links with a cap have carried |
//! | [`judge`] | which links do harm |
//! | [`status`], [`page`] | what an end shows of itself |
//! | [`record`] | what it did, for the laboratory |
//!
//! TCP ends at both ends, so that one connection uses all links; flows of UDP stay on one
//! link each as long as it works. All of an end runs on one thread.
//!
//! What this crate never does: send data of an end that it does not know, connect to what
//! its rules deny, show a secret, hold a host over an await, run on more than one thread but
//! to hear of links and to resolve names.

mod client;
pub mod config;
pub mod dns;
pub mod egress;
mod engine;
mod errand;
pub mod judge;
pub mod key;
mod links;
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
mod transparent;

pub use client::{Client, Tried, Way, check_transparent, try_links};
pub use config::{ClientConfig, ConfigError, ServerConfig};
pub use engine::{Engine, Told};
pub use server::Server;
pub use stream::{Broken, BundleStream};

use key::KeyFileError;
use knee_host::HostError;
use quota::QuotaError;

/// An end cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BondError {
    /// Its key.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Its QUIC host.
    #[error(transparent)]
    Quic(#[from] knee_quic::HostError),
    /// The links of this machine cannot be seen.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port or socket cannot be had.
    #[error("cannot listen at {at}: {source}{}", advice(source))]
    Listen {
        /// Where.
        at: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The caps of links.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// A thread cannot be had.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The system has no randomness.
    #[error("the system gives no random bytes")]
    Random,
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => ": another process has it; end that, or choose another",
        std::io::ErrorKind::AddrNotAvailable => ": this machine has no such address",
        std::io::ErrorKind::PermissionDenied => {
            ": choose a place that this user may write to, or a port above 1023"
        }
        std::io::ErrorKind::NotFound => ": its folder is not there",
        _ => "",
    }
}
