//! Sockets for diverted traffic: those to which the rules hand connections and datagrams with their
//! destination, and those that answer in the name of that destination (IP_TRANSPARENT, ip(7)).

use super::local::REPLY_MARK;
use crate::checksum::{icmp_checksum, transport_checksum};
use crate::system::{set_option, socket_of};
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage,
    recvmsg, sendmsg, setsockopt, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// `IPV6_TRANSPARENT` of linux/in6.h.
const IPV6_TRANSPARENT: i32 = 75;
/// Bytes of the headers of UDP and of an echo.
const HEADER: usize = 8;
/// Largest payload of UDP over IPv4 (RFC 768, RFC 791).
const PAYLOAD_MAX: usize = 65_507;
/// Where a socket that only sends is bound, so that the kernel gives it no copies of what arrives.
const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 107, 110, 101), 0);

/// A datagram that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Length of the payload, bytes.
    pub len: usize,
    /// Sender.
    pub from: SocketAddr,
    /// Destination; for a diverted datagram that which its sender meant.
    pub to: Option<SocketAddr>,
    /// Type of service or traffic class: DSCP and ECN (RFC 2474, RFC 3168).
    pub tos: u8,
}

/// Makes a socket accept what was sent to other hosts, and answer in their name.
///
/// # Errors
/// The process lacks CAP_NET_ADMIN and CAP_NET_RAW.
pub fn set_transparent(socket: &impl AsFd) -> io::Result<()> {
    // Valid for sockets of both families, except for raw ones.
    Ok(setsockopt(socket, sockopt::IpTransparent, &true)?)
}

/// Makes a UDP socket report type of service or traffic class of what it receives.
///
/// # Errors
/// The kernel refuses.
pub fn report_tos(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    let set = if is_v6 {
        setsockopt(socket, sockopt::Ipv6RecvTClass, &true)
    } else {
        setsockopt(socket, sockopt::IpRecvTos, &true)
    };
    Ok(set?)
}

/// Binds a UDP socket to a port of loopback, to which rules may divert datagrams.
///
/// # Errors
/// The host lacks the family, or the process the privileges.
pub fn diverted_udp(is_v6: bool) -> io::Result<UdpSocket> {
    let host: IpAddr = if is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    let socket = UdpSocket::bind((host, 0))?;
    set_transparent(&socket)?;
    report_tos(&socket, is_v6)?;
    if is_v6 {
        setsockopt(&socket, sockopt::Ipv6OrigDstAddr, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn v4(address: libc::sockaddr_in) -> SocketAddr {
    SocketAddrV4::from(SockaddrIn::from(address)).into()
}

fn v6(address: libc::sockaddr_in6) -> SocketAddr {
    SocketAddrV6::from(SockaddrIn6::from(address)).into()
}

fn storage(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || address.as_sockaddr_in().map(|address| SocketAddrV4::from(*address).into());
    v4().or_else(|| address.as_sockaddr_in6().map(|address| SocketAddrV6::from(*address).into()))
}

/// Receives a datagram of a UDP socket into `buffer`, without waiting.
///
/// # Errors
/// `WouldBlock` if there is none, or an error of the system.
pub fn receive_datagram(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Datagram> {
    let mut space = cmsg_space!(libc::sockaddr_in6, libc::c_int);
    let mut into = [IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut into,
        Some(&mut space),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let from = received.address.as_ref().and_then(storage).ok_or(io::ErrorKind::InvalidData)?;
    let (mut to, mut tos) = (None, 0);
    for message in received.cmsgs()? {
        match message {
            ControlMessageOwned::Ipv4OrigDstAddr(address) => to = Some(v4(address)),
            ControlMessageOwned::Ipv6OrigDstAddr(address) => to = Some(v6(address)),
            ControlMessageOwned::Ipv4Tos(value) => tos = value,
            ControlMessageOwned::Ipv6TClass(value) => tos = value as u8,
            _ => {}
        }
    }
    Ok(Datagram { len: received.bytes, from, to, tos })
}

/// Sends a datagram with a type of service or traffic class, without waiting.
///
/// # Errors
/// The network does not accept it, or there is no room (`WouldBlock`).
pub fn send_datagram(
    socket: &impl AsRawFd,
    to: SocketAddr,
    tos: u8,
    bytes: &[u8],
) -> io::Result<()> {
    send(socket.as_raw_fd(), to, tos, None, &[IoSlice::new(bytes)])
}

fn send(
    socket: RawFd,
    to: SocketAddr,
    tos: u8,
    from: Option<IpAddr>,
    parts: &[IoSlice<'_>],
) -> io::Result<()> {
    let (class, to_storage) = (i32::from(tos), SockaddrStorage::from(to));
    let mut control = Vec::with_capacity(2);
    let (info_4, info_6);
    match from {
        Some(IpAddr::V4(from)) => {
            let spec = libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
            info_4 = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec, ipi_addr: spec };
            control.push(ControlMessage::Ipv4PacketInfo(&info_4));
        }
        Some(IpAddr::V6(from)) => {
            let addr = libc::in6_addr { s6_addr: from.octets() };
            info_6 = libc::in6_pktinfo { ipi6_addr: addr, ipi6_ifindex: 0 };
            control.push(ControlMessage::Ipv6PacketInfo(&info_6));
        }
        None => {}
    }
    control.push(if to.is_ipv4() {
        ControlMessage::Ipv4Tos(&tos)
    } else {
        ControlMessage::Ipv6TClass(&class)
    });
    sendmsg(socket, parts, &control, MsgFlags::MSG_DONTWAIT, Some(&to_storage))?;
    Ok(())
}

/// Sends datagrams in the name of other hosts. The kernel cuts those that are larger than a packet
/// into fragments.
#[derive(Debug)]
pub struct Impersonator {
    v4: OwnedFd,
    /// A host may lack IPv6.
    v6: Option<OwnedFd>,
}

impl Impersonator {
    /// Opens the sockets.
    ///
    /// # Errors
    /// The process lacks CAP_NET_RAW and CAP_NET_ADMIN.
    pub fn open() -> io::Result<Impersonator> {
        Ok(Impersonator { v4: raw(false)?, v6: raw(true).ok() })
    }

    /// Sends a datagram from `from` to `to`.
    ///
    /// # Errors
    /// The addresses are of different families, no route leads there, or there is no room.
    pub fn send(&self, from: SocketAddr, to: SocketAddr, tos: u8, bytes: &[u8]) -> io::Result<()> {
        let socket = match (from, to) {
            (SocketAddr::V4(_), SocketAddr::V4(_)) => self.v4.as_fd(),
            (SocketAddr::V6(_), SocketAddr::V6(_)) => self.v6()?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        if bytes.len() > PAYLOAD_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&from.port().to_be_bytes());
        header[2..4].copy_from_slice(&to.port().to_be_bytes());
        header[4..6].copy_from_slice(&((HEADER + bytes.len()) as u16).to_be_bytes());
        let protocol = libc::IPPROTO_UDP as u8;
        let sum = transport_checksum(from.ip(), to.ip(), protocol, &[&header, bytes]);
        // Zero says that there is no checksum (RFC 768).
        let sum = if sum == 0 { u16::MAX } else { sum };
        header[6..].copy_from_slice(&sum.to_be_bytes());
        // A raw socket has no ports.
        let mut host = to;
        host.set_port(0);
        let parts = [IoSlice::new(&header), IoSlice::new(bytes)];
        send(socket.as_raw_fd(), host, tos, Some(from.ip()), &parts)
    }

    fn v6(&self) -> io::Result<BorrowedFd<'_>> {
        let missing = || io::Error::from_raw_os_error(libc::EAFNOSUPPORT);
        self.v6.as_ref().map(AsFd::as_fd).ok_or_else(missing)
    }
}

/// Opens a raw socket of a protocol that sends in the name of others.
fn raw_of(is_v6: bool, protocol: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
    let socket = socket_of(family, kind, protocol)?;
    if is_v6 {
        set_option(&socket, libc::SOL_IPV6, IPV6_TRANSPARENT, 1)?;
    } else {
        set_transparent(&socket)?;
    }
    Ok(socket)
}

/// Opens a raw socket whose packets contain UDP.
fn raw(is_v6: bool) -> io::Result<OwnedFd> {
    let socket = raw_of(is_v6, libc::IPPROTO_UDP)?;
    setsockopt(&socket, sockopt::RcvBuf, &0)?;
    let at: SocketAddr =
        if is_v6 { SocketAddrV6::new(Ipv6Addr::LOCALHOST, 0, 0, 0).into() } else { NOWHERE.into() };
    nix::sys::socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(at))?;
    Ok(socket)
}

/// An echo request that was diverted (RFC 792; RFC 4443, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoRequest {
    /// Sender.
    pub from: IpAddr,
    /// Destination.
    pub to: IpAddr,
    /// Identifier, by which the sender knows its own.
    pub id: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Type of service or traffic class.
    pub tos: u8,
    /// First byte of the data in the buffer, which lasts until `end`.
    pub begin: usize,
    /// Byte after the data.
    pub end: usize,
}

/// Types of echo request and reply.
const ECHO_4: (u8, u8) = (8, 0);
const ECHO_6: (u8, u8) = (128, 129);
/// `ICMP_FILTER` of linux/icmp.h.
const ICMP_FILTER: i32 = 1;

/// Opens a raw socket that receives the echo requests of this host, and sends replies in the name of
/// their destination. The kernel answers those to its own addresses itself.
///
/// # Errors
/// The host lacks the family, or the process CAP_NET_RAW and CAP_NET_ADMIN.
pub fn echo_socket(is_v6: bool) -> io::Result<UdpSocket> {
    let protocol = if is_v6 { libc::IPPROTO_ICMPV6 } else { libc::IPPROTO_ICMP };
    let socket = raw_of(is_v6, protocol)?;
    setsockopt(&socket, sockopt::Mark, &REPLY_MARK)?;
    if is_v6 {
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
    } else {
        // Blocks all other types.
        set_option(&socket, libc::SOL_RAW, ICMP_FILTER, !(1 << ECHO_4.0))?;
    }
    // The type for any socket with datagrams.
    Ok(UdpSocket::from(socket))
}

/// Receives from an [`echo_socket`] without waiting; `None` if it is no echo request to another host.
///
/// # Errors
/// `WouldBlock` if there is none, or an error of the system.
pub fn receive_echo(
    socket: &impl AsRawFd,
    is_v6: bool,
    buffer: &mut [u8],
) -> io::Result<Option<EchoRequest>> {
    let mut space = cmsg_space!(libc::in6_pktinfo, libc::c_int);
    let mut into = [IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut into,
        Some(&mut space),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let end = received.bytes;
    let from = received.address.as_ref().and_then(storage).ok_or(io::ErrorKind::InvalidData)?;
    let (mut to, mut tos) = (None, 0);
    for message in received.cmsgs()? {
        match message {
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                to = Some(IpAddr::from(info.ipi6_addr.s6_addr));
            }
            ControlMessageOwned::Ipv6TClass(value) => tos = value as u8,
            _ => {}
        }
    }
    let mut begin = 0;
    if !is_v6 {
        // Over IPv4 the header comes with it.
        let Some(header) = buffer.get(..20.min(end)).filter(|header| header.len() == 20) else {
            return Ok(None);
        };
        begin = usize::from(header[0] & 15) * 4;
        tos = header[1];
        to = Some(IpAddr::from([header[16], header[17], header[18], header[19]]));
    }
    let wanted = if is_v6 { ECHO_6.0 } else { ECHO_4.0 };
    let message = buffer.get(begin..end).unwrap_or_default();
    let (Some(to), [kind, 0, _, _, id_high, id_low, high, low, ..]) = (to, message) else {
        return Ok(None);
    };
    // Only a neighbour answers these, and without a scope they cannot be bound.
    let of_link = to.is_multicast() || matches!(to, IpAddr::V6(to) if to.is_unicast_link_local());
    // The kernel answers for itself.
    if *kind != wanted || of_link || UdpSocket::bind((to, 0)).is_ok() {
        return Ok(None);
    }
    let (id, sequence) =
        (u16::from_be_bytes([*id_high, *id_low]), u16::from_be_bytes([*high, *low]));
    let begin = begin + HEADER;
    Ok(Some(EchoRequest { from: from.ip(), to, id, sequence, tos, begin, end }))
}

/// Sends the reply to a request by an [`echo_socket`], with this data.
///
/// # Errors
/// No route leads to the sender, or there is no room.
pub fn reply_to_echo(socket: &impl AsRawFd, request: &EchoRequest, data: &[u8]) -> io::Result<()> {
    let mut header = [0; HEADER];
    header[0] = if request.from.is_ipv6() { ECHO_6.1 } else { ECHO_4.1 };
    header[4..6].copy_from_slice(&request.id.to_be_bytes());
    header[6..].copy_from_slice(&request.sequence.to_be_bytes());
    if request.from.is_ipv4() {
        // Over IPv6 the kernel computes it (RFC 3542, section 3.1).
        let sum = icmp_checksum(&[&header, data]);
        header[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    let parts = [IoSlice::new(&header), IoSlice::new(data)];
    let to = SocketAddr::new(request.from, 0);
    send(socket.as_raw_fd(), to, request.tos, Some(request.to), &parts)
}

/// Opens a socket that sends echo requests and receives their replies, without privileges
/// (`net.ipv4.ping_group_range`, icmp(7)). Messages have the header of ICMP, in which the kernel sets
/// identifier and checksum.
///
/// # Errors
/// The system does not permit it to this user.
pub fn ping_socket(is_v6: bool) -> io::Result<UdpSocket> {
    let (family, protocol) = if is_v6 {
        (libc::AF_INET6, libc::IPPROTO_ICMPV6)
    } else {
        (libc::AF_INET, libc::IPPROTO_ICMP)
    };
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    Ok(UdpSocket::from(socket_of(family, kind, protocol)?))
}

/// Returns the header of an echo request to be sent by a [`ping_socket`].
pub fn echo_header(is_v6: bool, sequence: u16) -> [u8; HEADER] {
    let [high, low] = sequence.to_be_bytes();
    [if is_v6 { ECHO_6.0 } else { ECHO_4.0 }, 0, 0, 0, 0, 0, high, low]
}

/// Reads what a [`ping_socket`] received: the sequence number of a reply, and its data; `None` if it
/// is none.
pub fn read_reply(is_v6: bool, message: &[u8]) -> Option<(u16, &[u8])> {
    let wanted = if is_v6 { ECHO_6.1 } else { ECHO_4.1 };
    match message {
        [kind, 0, _, _, _, _, high, low, data @ ..] if *kind == wanted => {
            Some((u16::from_be_bytes([*high, *low]), data))
        }
        _ => None,
    }
}
