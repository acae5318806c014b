//! The kernel's MPTCP: sockets, information about subflows, and the path manager.
//!
//! A server [`announce`]s additional addresses of its own, and the client joins each (RFC 8684,
//! 3.4.1): so a subflow takes the path to which its addresses belong, without source routing.

mod path_manager;

pub use path_manager::{Announced, allow_subflows, announce};

use crate::HostError;
use crate::system::{TCP_INFO_BYTES, mptcp_option, socket_of};
use crate::tcp_info::TcpInfo;
use nix::sys::socket::SockFlag;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

/// As in include/uapi/linux/in.h.
const IPPROTO_MPTCP: i32 = 262;
/// Options of SOL_MPTCP (include/uapi/linux/mptcp.h).
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
/// The kernel's limit of the subflows of a connection (`MPTCP_PM_ADDR_MAX`, net/mptcp/protocol.h).
pub const SUBFLOWS_MAX: usize = 8;
/// Bytes of `struct mptcp_subflow_data` and of an address.
const HEADER_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 128;

/// Opens a non-blocking socket of the address's family.
///
/// # Errors
///
/// If the kernel has no MPTCP.
pub fn socket(address: IpAddr) -> Result<OwnedFd, HostError> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let flags = (SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC).bits();
    socket_of(family, libc::SOCK_STREAM | flags, IPPROTO_MPTCP).map_err(|source| {
        HostError::refused(
            "open an MPTCP socket",
            source,
            "use a kernel with CONFIG_MPTCP, and sysctl net.mptcp.enabled=1",
        )
    })
}

/// Returns the bytes of the connection, in order, that the peer has acknowledged.
///
/// # Errors
///
/// `Unsupported` before Linux 6.5, or if the kernel refuses.
pub fn acknowledged_bytes(socket: &impl AsFd) -> io::Result<u64> {
    /// Offset of `mptcpi_bytes_acked`, which Linux 6.5 added.
    const PLACE: usize = 72;
    let mut bytes = [0; 96];
    let len = mptcp_option(socket, MPTCP_INFO, &mut bytes)?;
    let field = bytes[..len].get(PLACE..PLACE + 8);
    let field = field.and_then(|field| field.try_into().ok());
    field.map(u64::from_ne_bytes).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns the current subflows, each with its local address.
///
/// # Errors
///
/// If the kernel refuses, as for a connection that has fallen back to TCP.
pub fn subflows(socket: &impl AsFd) -> io::Result<Vec<(IpAddr, TcpInfo)>> {
    let addresses = entries::<{ 2 * ADDRESS_BYTES }>(socket, MPTCP_SUBFLOW_ADDRS)?;
    let infos = entries::<TCP_INFO_BYTES>(socket, MPTCP_TCPINFO)?;
    // A subflow may have come or gone between the two answers; it is then seen the next time.
    if addresses.len() != infos.len() {
        return Ok(Vec::new());
    }
    let pairs = addresses.iter().zip(&infos);
    Ok(pairs.filter_map(|(at, info)| Some((local(at)?, TcpInfo::decode(info)))).collect())
}

/// Reads an array with `N` bytes of information per subflow.
fn entries<const N: usize>(socket: &impl AsFd, name: i32) -> io::Result<Vec<[u8; N]>> {
    let mut bytes = vec![0; HEADER_BYTES + SUBFLOWS_MAX * N];
    let word = |value: usize| (value as u32).to_ne_bytes();
    // size_subflow_data, num_subflows, size_kernel, size_user.
    bytes[0..4].copy_from_slice(&word(HEADER_BYTES));
    bytes[12..16].copy_from_slice(&word(N));
    mptcp_option(socket, name, &mut bytes)?;
    let count = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    let size = u32::from_ne_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
    let all = bytes[HEADER_BYTES..].chunks_exact(size.max(1)).take(count);
    let whole = |entry: &[u8]| {
        let mut copy = [0; N];
        let len = entry.len().min(N);
        copy[..len].copy_from_slice(&entry[..len]);
        copy
    };
    Ok(all.map(whole).collect())
}

/// Returns the local address, from a `sockaddr_in` or `sockaddr_in6`.
fn local(addresses: &[u8]) -> Option<IpAddr> {
    match i32::from(u16::from_ne_bytes([addresses[0], addresses[1]])) {
        libc::AF_INET => <[u8; 4]>::try_from(&addresses[4..8]).ok().map(IpAddr::from),
        libc::AF_INET6 => <[u8; 16]>::try_from(&addresses[8..24]).ok().map(IpAddr::from),
        _ => None,
    }
}
