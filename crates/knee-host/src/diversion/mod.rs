//! Rules of nf_tables that divert what programs of this host send to ports of one process,
//! and refuse the rest, in the namespace of the calling thread.
//!
//! They are in a table that the socket owns which made it (`NFT_TABLE_F_OWNER`, Linux 5.12):
//! nobody else may change it, and the kernel removes it with the socket, however the process
//! ends. So no guard is needed, and nothing is left behind.
//!
//! Two chains. One translates destinations, of new connections only: TCP goes to a port of
//! this process, which asks the kernel for the destination (`SO_ORIGINAL_DST`), and DNS to
//! another. The other looks at every packet after that: what does not stay on this host and
//! is not listed is rejected, so that a program learns of it at once.

mod message;
mod rules;

pub use rules::DiversionSettings;

use crate::HostError;
use crate::privileges::{NET_ADMIN, capabilities};
use message::{Batch, answers};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use rules::Writer;
use std::io;

/// Name of the table, and of one that is only tried.
const TABLE: &str = "knee-bond";
const CHECKED: &str = "knee-bond-check";
/// The table goes with the socket that made it; it is not in force.
const OWNED: u32 = 2;
const DORMANT: u32 = 1;

/// Rules that are in force until this is dropped.
pub struct Diversion {
    /// Its end is the end of the table.
    _owner: Socket,
}

impl std::fmt::Debug for Diversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diversion").finish_non_exhaustive()
    }
}

impl Diversion {
    /// Puts the rules in force, all at once.
    ///
    /// # Errors
    /// The process lacks CAP_NET_ADMIN, another one has such a table, or the kernel lacks
    /// nf_tables with owned tables.
    pub fn begin(settings: &DiversionSettings) -> Result<Diversion, HostError> {
        Diversion::make(settings, TABLE, OWNED)
    }

    /// Whether the rules could be put in force; nothing is diverted, also not for a moment.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), but for another process that does it.
    pub fn check(settings: &DiversionSettings) -> Result<(), HostError> {
        Diversion::make(settings, CHECKED, OWNED | DORMANT).map(drop)
    }

    fn make(settings: &DiversionSettings, table: &str, flags: u32) -> Result<Diversion, HostError> {
        let what = "divert what programs send";
        if capabilities() & NET_ADMIN == 0 {
            let advice = "run it as root, or give it CAP_NET_ADMIN";
            return Err(HostError::refused(what, io::ErrorKind::PermissionDenied, advice));
        }
        let owner = make(settings, table, flags).map_err(|error| {
            let advice = match error.raw_os_error() {
                Some(libc::EEXIST | libc::EPERM | libc::EBUSY) => {
                    "another process of this host does it already: end that one"
                }
                _ => "this needs Linux 5.12 or newer with nf_tables, NAT, fib and reject",
            };
            HostError::refused(what, error, advice)
        })?;
        Ok(Diversion { _owner: owner })
    }
}

/// The socket that owns the table.
fn make(settings: &DiversionSettings, table: &str, flags: u32) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut batch = Batch::begin();
    Writer { table, flags, batch: &mut batch }.write(settings);
    let (bytes, requests) = batch.end();
    socket.send(&bytes, 0)?;
    let mut answered = 0;
    while answered < requests {
        let (bytes, _) = socket.recv_from_full()?;
        for code in answers(&bytes) {
            if code != 0 {
                return Err(io::Error::from_raw_os_error(-code));
            }
            answered += 1;
        }
    }
    Ok(socket)
}
