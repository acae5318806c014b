//! The kernel's MPTCP: sockets, what it tells of their subflows, and its path
//! manager, over generic netlink, in the namespace of the calling thread.
//!
//! The server announces the addresses of all paths but the first, and the
//! client joins each (RFC 8684, 3.4.1): so a subflow takes the path to which
//! its addresses belong, without routing by source.

use crate::HostError;
use crate::system::{TCP_INFO_BYTES, mptcp_option, socket_of};
use crate::tcp_info::TcpInfo;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
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
/// The kernel's limit of subflows is eight.
const SUBFLOWS_MAX: usize = 8;
/// Bytes of `struct mptcp_subflow_data` and of an address.
const HEADER_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 128;

/// Opens a socket of the address's family that does not block.
///
/// # Errors
///
/// Where the kernel has no MPTCP.
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

/// Bytes of the connection, in order, that the peer has acknowledged.
///
/// # Errors
///
/// `Unsupported` before Linux 6.5; else what the kernel says.
pub fn acknowledged_bytes(socket: &impl AsFd) -> io::Result<u64> {
    /// Of `mptcpi_bytes_acked`, which came with Linux 6.5.
    const PLACE: usize = 72;
    let mut bytes = [0; 96];
    let len = mptcp_option(socket, MPTCP_INFO, &mut bytes)?;
    let field = bytes[..len].get(PLACE..PLACE + 8);
    let field = field.and_then(|field| field.try_into().ok());
    field.map(u64::from_ne_bytes).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The subflows that are there now, each with its local address.
///
/// # Errors
///
/// What the kernel says, for one of a connection that has fallen back to TCP.
pub fn subflows(socket: &impl AsFd) -> io::Result<Vec<(IpAddr, TcpInfo)>> {
    let addresses = entries::<{ 2 * ADDRESS_BYTES }>(socket, MPTCP_SUBFLOW_ADDRS)?;
    let infos = entries::<TCP_INFO_BYTES>(socket, MPTCP_TCPINFO)?;
    // One may have come or gone between the two answers: then what is left
    // is known the next time.
    if addresses.len() != infos.len() {
        return Ok(Vec::new());
    }
    let pairs = addresses.iter().zip(&infos);
    Ok(pairs.filter_map(|(at, info)| Some((local(at)?, TcpInfo::decode(info)))).collect())
}

/// An array of what the kernel tells of each subflow, `N` bytes each.
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

/// The local address: a `sockaddr_in` or `sockaddr_in6`.
fn local(addresses: &[u8]) -> Option<IpAddr> {
    match i32::from(u16::from_ne_bytes([addresses[0], addresses[1]])) {
        libc::AF_INET => <[u8; 4]>::try_from(&addresses[4..8]).ok().map(IpAddr::from),
        libc::AF_INET6 => <[u8; 16]>::try_from(&addresses[8..24]).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Lets connections of this namespace have as many subflows as there can be.
///
/// # Errors
///
/// Where the kernel has no MPTCP, or the process lacks CAP_NET_ADMIN.
pub fn allow_subflows() -> Result<(), HostError> {
    let mut manager = PathManager::open()?;
    let most = (SUBFLOWS_MAX - 1) as u32;
    let mut limits = Vec::new();
    attribute(&mut limits, pm::ATTR_RCV_ADD_ADDRS, &most.to_ne_bytes());
    attribute(&mut limits, pm::ATTR_SUBFLOWS, &most.to_ne_bytes());
    manager.command(pm::SET_LIMITS, &limits)
}

/// Tells the peers of this namespace's connections that they can be reached
/// at these addresses as well.
///
/// # Errors
///
/// As [`allow_subflows`], and where one of them is announced already.
pub fn announce(addresses: &[IpAddr]) -> Result<(), HostError> {
    let mut manager = PathManager::open()?;
    for (index, address) in addresses.iter().enumerate() {
        let mut endpoint = Vec::new();
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        attribute(&mut endpoint, pm::ADDR_FAMILY, &(family as u16).to_ne_bytes());
        attribute(&mut endpoint, pm::ADDR_ID, &[index as u8 + 1]);
        match address {
            IpAddr::V4(v4) => attribute(&mut endpoint, pm::ADDR_V4, &v4.octets()),
            IpAddr::V6(v6) => attribute(&mut endpoint, pm::ADDR_V6, &v6.octets()),
        }
        attribute(&mut endpoint, pm::ADDR_FLAGS, &pm::SIGNAL.to_ne_bytes());
        let mut message = Vec::new();
        attribute(&mut message, pm::ATTR_ADDR | pm::NESTED, &endpoint);
        manager.command(pm::ADD_ADDR, &message)?;
    }
    Ok(())
}

/// Numbers of include/uapi/linux/mptcp_pm.h, genetlink.h and netlink.h.
mod pm {
    pub const FAMILY: &[u8] = b"mptcp_pm\0";
    pub const VERSION: u8 = 1;
    pub const ADD_ADDR: u8 = 1;
    pub const SET_LIMITS: u8 = 5;
    pub const ATTR_ADDR: u16 = 1;
    pub const ATTR_RCV_ADD_ADDRS: u16 = 2;
    pub const ATTR_SUBFLOWS: u16 = 3;
    pub const ADDR_FAMILY: u16 = 1;
    pub const ADDR_ID: u16 = 2;
    pub const ADDR_V4: u16 = 3;
    pub const ADDR_V6: u16 = 4;
    pub const ADDR_FLAGS: u16 = 6;
    pub const SIGNAL: u32 = 1;
    pub const NESTED: u16 = 1 << 15;

    pub const CONTROLLER: u16 = 16;
    pub const GET_FAMILY: u8 = 3;
    pub const CONTROLLER_VERSION: u8 = 2;
    pub const ATTR_FAMILY_ID: u16 = 1;
    pub const ATTR_FAMILY_NAME: u16 = 2;

    pub const REQUEST: u16 = 1;
    pub const ACK: u16 = 4;
    pub const ERROR: u16 = 2;
}

/// A message to a family of generic netlink: nlmsghdr, genlmsghdr, attributes.
const MESSAGE_BYTES: usize = 16;
const COMMAND_BYTES: usize = 4;

struct PathManager {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl PathManager {
    fn open() -> Result<PathManager, HostError> {
        let open = || -> io::Result<PathManager> {
            let mut socket = Socket::new(NETLINK_GENERIC)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            let mut manager = PathManager { socket, family: pm::CONTROLLER, sequence: 0 };
            let mut name = Vec::new();
            attribute(&mut name, pm::ATTR_FAMILY_NAME, pm::FAMILY);
            let answer = manager.ask(pm::GET_FAMILY, pm::CONTROLLER_VERSION, pm::REQUEST, &name)?;
            let attributes = answer.get(MESSAGE_BYTES + COMMAND_BYTES..).unwrap_or_default();
            let id = find(attributes, pm::ATTR_FAMILY_ID).and_then(|id| id.try_into().ok());
            manager.family = id.map(u16::from_ne_bytes).ok_or(io::ErrorKind::InvalidData)?;
            Ok(manager)
        };
        open().map_err(|source| {
            HostError::refused("reach the kernel's MPTCP", source, "use one with CONFIG_MPTCP")
        })
    }

    fn command(&mut self, command: u8, attributes: &[u8]) -> Result<(), HostError> {
        self.ask(command, pm::VERSION, pm::REQUEST | pm::ACK, attributes).map(drop).map_err(
            |source| {
                HostError::refused("set up MPTCP's paths", source, "run as root (CAP_NET_ADMIN)")
            },
        )
    }

    /// Sends a request and waits for the answer to it.
    fn ask(
        &mut self,
        command: u8,
        version: u8,
        flags: u16,
        attributes: &[u8],
    ) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let len = (MESSAGE_BYTES + COMMAND_BYTES + attributes.len()) as u32;
        let mut message = Vec::new();
        message.extend(len.to_ne_bytes());
        message.extend(self.family.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend([command, version, 0, 0]);
        message.extend(attributes);
        self.socket.send(&message, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let half = |at: usize| Some(u16::from_ne_bytes([*answer.get(at)?, *answer.get(at + 1)?]));
        if half(4) == Some(pm::ERROR) {
            let code = answer.get(16..20).and_then(|code| code.try_into().ok());
            let code = code.map_or(0, i32::from_ne_bytes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(-code));
            }
        }
        Ok(answer)
    }
}

/// Appends an attribute: length, kind, value, padding to four bytes.
fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The value of an attribute.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let [a, b, c, d, ..] = *attributes {
        let len = usize::from(u16::from_ne_bytes([a, b])).max(4);
        if u16::from_ne_bytes([c, d]) == kind {
            return attributes.get(4..len);
        }
        attributes = attributes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laid out by hand after netlink(7).
    #[test]
    fn attributes_are_padded_and_found() {
        let mut message = Vec::new();
        attribute(&mut message, 2, &[7]);
        attribute(&mut message, 3, &[1, 2, 3, 4]);
        assert_eq!(message.len(), 16);
        assert_eq!(message[..8], [5, 0, 2, 0, 7, 0, 0, 0]);
        assert_eq!(find(&message, 3), Some(&[1, 2, 3, 4][..]));
        assert_eq!(find(&message, 4), None);
        assert_eq!(find(&[9, 0, 1, 0], 1), None);
    }
}
