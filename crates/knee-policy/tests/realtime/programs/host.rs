//! A host for the tests: it is its own client, in a namespace of its own.

use knee_host::{Namespace, Routing, sysctl};
use knee_policy::{PolicyError, programs_lack};
use knee_trials::{Pauses, Skipped, Turn, turn};
use nix::sys::socket::{getsockopt, sockopt};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;

pub fn ready() -> Result<Turn, Skipped> {
    let turn = turn(Pauses::UpToMs(50))?;
    match programs_lack() {
        Some(lack) => Err(Skipped::lack(lack)),
        None => Ok(turn),
    }
}

pub fn ip(line: &str) {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {errors}");
}

/// A host that is its own client, with these addresses among others.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let namespace = Namespace::create().unwrap();
    let done = namespace.within(|| -> Result<T, PolicyError> {
        Routing::open()?.bring_up_loopback()?;
        ip("address add 2001:db8::1/128 dev lo nodad");
        for last in 1..=9 {
            ip(&format!("address add 2001:db8:5::{last}/128 dev lo nodad"));
        }
        Ok(work())
    });
    done.unwrap()
}

/// A server that accepts connections from given addresses.
pub struct Server(pub TcpListener);

impl Server {
    pub fn on(address: &str) -> Server {
        Server(TcpListener::bind(address).unwrap())
    }

    pub fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Connects from an address; returns the client's and the server's end.
    pub fn from(&self, client: &str, to: &str) -> (TcpStream, TcpStream) {
        self.prepared(client, to, |_| {})
    }

    /// Does the same, with a socket that was prepared.
    pub fn prepared(
        &self,
        client: &str,
        to: &str,
        prepare: impl FnOnce(&OwnedFd),
    ) -> (TcpStream, TcpStream) {
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket,
        };
        use std::os::fd::AsRawFd;
        let client: IpAddr = client.parse().unwrap();
        let family = if client.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let socket = socket(family, SockType::Stream, SockFlag::empty(), None).unwrap();
        prepare(&socket);
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(client, 0))).unwrap();
        let to = SocketAddr::new(to.parse().unwrap(), self.port());
        connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).unwrap();
        (TcpStream::from(socket), self.0.accept().unwrap().0)
    }
}

pub fn controller(of: &TcpStream) -> String {
    let name = getsockopt(of, sockopt::TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_string()
}

pub fn default() -> String {
    sysctl("net.ipv4.tcp_congestion_control").unwrap()
}

/// A controller other than the default.
pub fn other() -> &'static str {
    if default() == "reno" { "cubic" } else { "reno" }
}
