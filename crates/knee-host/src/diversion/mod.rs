//! Rules of nf_tables that divert the traffic of this host's programs to ports of one process and
//! refuse the rest, in the namespace of the calling thread.
//!
//! The rules are in a table owned by the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12):
//! nobody else can change it, and the kernel removes it with the socket, however the process ends.
//! So no cleanup is needed, except of what routes marked packets, which has no effect without them.
//!
//! The chain `divert` translates destinations, of this host's new connections only: TCP goes to a
//! port of this process, which asks the kernel for the original destination (`SO_ORIGINAL_DST`),
//! and DNS goes to another port. UDP has no such question, and what is forwarded must keep its
//! addresses: the chain `marking` marks this host's UDP and pings, which are then [routed to this
//! host](local), and the chain `take` hands UDP, and TCP of the house, to transparent sockets
//! (TPROXY). The chains `gate` and `passage` see every packet after that: anything that leaves this
//! host and is not listed is rejected, so that the program gets an error immediately.

mod local;
mod message;
mod rules;
mod sockets;

pub use rules::DiversionSettings;
pub use sockets::{
    Datagram, EchoRequest, Impersonator, diverted_udp, echo_header, echo_socket, ping_socket,
    read_reply, receive_datagram, receive_echo, reply_to_echo, report_tos, send_datagram,
    set_transparent,
};

use crate::HostError;
use crate::privileges::{NET_ADMIN, capabilities};
use local::LocalDelivery;
use message::{Batch, answers};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use rules::Writer;
use std::io;

/// Name of the table, and of the one that is only for checking.
const TABLE: &str = "knee-bond";
const CHECKED: &str = "knee-bond-check";
/// Flags: the table is owned by its socket; the table is dormant.
const OWNED: u32 = 2;
const DORMANT: u32 = 1;

/// Rules that apply until this is dropped.
pub struct Diversion {
    /// The table is removed when this socket closes.
    _owner: Socket,
    /// Dropped after the table, for the same reason as it is made before.
    _local: Option<LocalDelivery>,
}

impl std::fmt::Debug for Diversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diversion").finish_non_exhaustive()
    }
}

impl Diversion {
    /// Installs the rules atomically.
    ///
    /// # Errors
    /// The process lacks CAP_NET_ADMIN, another process has such a table, or the kernel lacks
    /// nf_tables with owned tables.
    pub fn begin(settings: &DiversionSettings) -> Result<Diversion, HostError> {
        // First, so that marked packets never lack their route and leave by a link.
        let DiversionSettings { udp, lan_tcp, ping, .. } = settings;
        let marks = *ping || *udp != [None; 2] || *lan_tcp != [None; 2];
        let mut local = if marks { Some(LocalDelivery::begin()?) } else { None };
        let diversion = Diversion::make(settings, TABLE, OWNED)?;
        if let Some(local) = &mut local {
            local.take_over();
        }
        Ok(Diversion { _local: local, ..diversion })
    }

    /// Checks whether the rules could be installed, without diverting anything even briefly.
    ///
    /// # Errors
    /// The errors of [`begin`](Self::begin), except for a table of another process.
    pub fn check(settings: &DiversionSettings) -> Result<(), HostError> {
        Diversion::make(settings, CHECKED, OWNED | DORMANT).map(drop)
    }

    fn make(settings: &DiversionSettings, table: &str, flags: u32) -> Result<Diversion, HostError> {
        let what = "divert the traffic of programs";
        if capabilities() & NET_ADMIN == 0 {
            let advice = "run it as root, or give it CAP_NET_ADMIN";
            return Err(HostError::refused(what, io::ErrorKind::PermissionDenied, advice));
        }
        let owner = make(settings, table, flags).map_err(|error| {
            let advice = match error.raw_os_error() {
                Some(libc::EEXIST | libc::EPERM | libc::EBUSY) => {
                    "another process of this host already does so: end that process"
                }
                _ => "this needs Linux 5.12 or newer with nf_tables, NAT, TPROXY, fib and reject",
            };
            HostError::refused(what, error, advice)
        })?;
        Ok(Diversion { _owner: owner, _local: None })
    }
}

/// Makes the table, and returns the socket that owns it.
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
