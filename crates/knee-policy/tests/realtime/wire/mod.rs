//! A host for the tests, in a namespace of its own, with routes that lead nowhere.

use knee_host::{Namespace, Routing};
use knee_policy::PolicyError;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, socket, sockopt,
};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Runs ip-route(8), which is independent of Knee.
pub fn ip(line: &str) -> String {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A namespace with a device `wire` that leads nowhere, with a default route for IPv4.
pub fn wired<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let namespace = Namespace::create().unwrap();
    let done = namespace.within(|| -> Result<T, PolicyError> {
        Routing::open()?.bring_up_loopback()?;
        ip("tuntap add dev wire mode tun");
        ip("link set wire up");
        ip("address add 192.0.2.1/24 dev wire");
        ip("address add 2001:db8::1/64 dev wire nodad");
        ip("route add default via 192.0.2.254");
        // The kernel makes the local route of an IPv6 address later, in a work queue.
        while !ip("-6 route show table local").contains("local 2001:db8::1") {
            std::thread::yield_now();
        }
        Ok(work())
    });
    done.unwrap()
}

/// The controller of a new connection to this address from this local port.
pub fn controller(to: SocketAddr, port: u16) -> String {
    let (family, any) = match to {
        SocketAddr::V4(_) => (AddressFamily::Inet, SocketAddr::from(([0, 0, 0, 0], port))),
        SocketAddr::V6(_) => (AddressFamily::Inet6, SocketAddr::from(([0u16; 8], port))),
    };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrStorage::from(any)).unwrap();
    // Nobody answers: the handshake continues indefinitely, with its controller.
    let _ = connect(socket.as_raw_fd(), &SockaddrStorage::from(to));
    let name = getsockopt(&socket, sockopt::TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_string()
}
