//! Sockets of a flow: options, listening and connecting.

use crate::KernelError;
use crate::settings::FlowSettings;
use knee_host::{HostError, mptcp, set_option};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, getsockname,
    listen, setsockopt, socket, sockopt,
};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};

/// Opens the socket of one end, with MPTCP if the flow has several paths.
pub fn open(plan: &FlowSettings, address: IpAddr) -> Result<OwnedFd, KernelError> {
    if plan.is_multipath() {
        return Ok(mptcp::socket(address)?);
    }
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(family, SockType::Stream, flags, None)
        .map_err(|source| KernelError::call("open a TCP socket", source))
}

/// Sets the options of one end of a flow from the scenario. Accepted sockets inherit those of the
/// listener.
pub fn set_up(socket: &OwnedFd, plan: &FlowSettings, sends: bool) -> Result<(), KernelError> {
    if !plan.workload.properties().pushes {
        // A short request or answer does not wait for more data (RFC 1122, 4.2.3.4). The last
        // segment of a push is sent when its stream ends.
        setsockopt(socket, sockopt::TcpNoDelay, &true)
            .map_err(|source| KernelError::call("switch Nagle's algorithm off", source))?;
    }
    if sends { sending_options(socket, plan) } else { receiving_options(socket, plan) }
}

fn sending_options(socket: &OwnedFd, plan: &FlowSettings) -> Result<(), KernelError> {
    setsockopt(socket, sockopt::TcpCongestion, &OsString::from(&plan.controller)).map_err(
        |source| {
            let what = format!("choose the controller \"{}\"", plan.controller);
            HostError::refused(what, source, "load its module as root")
        },
    )?;
    let mut options = vec![
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG, plan.max_segment),
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, plan.ready_bytes),
    ];
    if plan.paced {
        // Any bound makes TCP pace; this one never limits: 34 Gbit/s.
        options.push((libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u32::MAX - 1));
    }
    for (level, name, value) in options {
        set_option(socket, level, name, value)
            .map_err(|source| KernelError::call("set an option of a TCP socket", source))?;
    }
    Ok(())
}

fn receiving_options(socket: &OwnedFd, flow: &FlowSettings) -> Result<(), KernelError> {
    if let Some(window) = flow.receive_window {
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window)
            .map_err(|source| KernelError::call("limit the receive window", source))?;
    }
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, flow.max_segment)
        .map_err(|source| KernelError::call("set the segment size", source))
}

/// Makes a socket a listener. Subflows of MPTCP join at the addresses of the other paths.
pub fn listen_at(
    socket: OwnedFd,
    plan: &FlowSettings,
    address: IpAddr,
    port: u16,
) -> Result<TcpListener, KernelError> {
    let at = match address {
        IpAddr::V4(_) if plan.is_multipath() => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) if plan.is_multipath() => Ipv6Addr::UNSPECIFIED.into(),
        one => one,
    };
    bind(socket.as_raw_fd(), &at_port(at, port))
        .and_then(|()| listen(&socket, Backlog::MAXCONN))
        .map_err(|source| KernelError::call("listen for a flow", source))?;
    Ok(TcpListener::from(socket))
}

/// Begins the handshake.
pub fn connect_to(
    socket: &OwnedFd,
    plan: &FlowSettings,
    to: SocketAddr,
) -> Result<(), KernelError> {
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
        Err(error) => Err(broken(plan, error.into())),
    }
}

/// Returns the local port.
pub fn local_port(socket: &OwnedFd) -> io::Result<u16> {
    let name: SockaddrStorage = getsockname(socket.as_raw_fd())?;
    let v4 = name.as_sockaddr_in().map(|name| name.port());
    let port = v4.or_else(|| name.as_sockaddr_in6().map(|name| name.port()));
    port.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

pub fn broken(plan: &FlowSettings, source: io::Error) -> KernelError {
    KernelError::Flow { flow: plan.label.clone(), source }
}

fn at_port(address: IpAddr, port: u16) -> SockaddrStorage {
    SockaddrStorage::from(SocketAddr::new(address, port))
}
