//! The applications of a scenario over real sockets: bulk and files on one
//! thread on the sender's host and one on the receiver's, all others on a
//! third.

mod applications;
mod exchange;
mod flow;
mod receiver;
mod sampling;
mod sender;
mod subflows;

pub use applications::{Applications, Applied};
pub use receiver::Receiver;
pub use sender::{Sender, Sent};

use crate::KernelError;
use knee_units::Time;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Flow number `n` is received on this port plus `n`.
const PORT: u16 = 10_000;
/// Flows that have a port.
pub const FLOWS_MAX: usize = (u16::MAX - PORT) as usize;
/// Bytes given to a socket in one call.
const GIVE_BYTES: usize = 1 << 18;
/// Bytes taken from a socket in one call.
const TAKE_BYTES: usize = 1 << 20;
/// How often the end of what was sent is looked for.
const COMPLETION_PERIOD: Time = Time::from_micros(500);
/// The longest sleep of a thread: how soon a request to stop is seen.
const SLEEP_MAX_MS: u64 = 20;

/// What the threads of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Bytes that each flow's receiving application got.
    pub delivered: Vec<AtomicU64>,
    /// Set: everybody ends.
    pub stop: AtomicBool,
}

impl Shared {
    pub fn new(flows: usize) -> Shared {
        let delivered = (0..flows).map(|_| AtomicU64::new(0)).collect();
        Shared { delivered, stop: AtomicBool::new(false) }
    }
}

fn tcp_socket(address: IpAddr) -> Result<OwnedFd, KernelError> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(family, SockType::Stream, flags, None)
        .map_err(|source| KernelError::call("open a TCP socket", source))
}

fn at_port(address: IpAddr, port: u16) -> SockaddrStorage {
    SockaddrStorage::from(SocketAddr::new(address, port))
}
