//! Transparent mode: sends all TCP of this host's programs over the links, without a proxy that
//! they know of. The kernel hands their connections to this process, which asks it for the original
//! destination. The server resolves names ([`crate::dns`]). Anything that would bypass the links is
//! refused: other UDP, other protocols, and traffic forwarded for other hosts.
//!
//! The rules ([`Diversion`]) apply from before the first link is opened until the client ends,
//! however it ends.

use crate::BondError;
use crate::client::ClientHandle;
use crate::dns;
use crate::proxy::{ask, next};
use crate::request::{Request, Target};
use crate::stream::{break_off, relay};
use ipnet::IpNet;
use knee_host::{Diversion, DiversionSettings, HostError};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::spawn_local;

/// Attempts to bind the same port for UDP and TCP.
const TRIES: usize = 16;

/// Sockets for connections and DNS questions, and the rules that divert traffic to them.
pub struct Transparent {
    taken: Vec<TcpListener>,
    questions: Vec<(UdpSocket, TcpListener)>,
    diversion: Diversion,
}

impl Transparent {
    /// Installs the rules. They let UDP to the server pass, and all packets to the excepted
    /// prefixes.
    ///
    /// # Errors
    /// The process lacks CAP_NET_ADMIN, the kernel lacks a feature, or another client has installed
    /// the rules.
    pub async fn begin(server: SocketAddr, except: &[IpNet]) -> Result<Transparent, BondError> {
        let (mut taken, mut questions) = (Vec::new(), Vec::new());
        let (mut tcp, mut dns) = ([None; 2], [None; 2]);
        let hosts = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        for (family, host) in hosts.into_iter().enumerate() {
            let at = SocketAddr::new(host, 0);
            let made = async { io::Result::Ok((TcpListener::bind(at).await?, both(at).await?)) };
            let (listener, (socket, others)) = match made.await {
                Ok(made) => made,
                // A host may lack IPv6; what is sent over it is refused then.
                Err(_) if host.is_ipv6() => continue,
                Err(source) => return Err(BondError::Listen { at: at.to_string(), source }),
            };
            tcp[family] = listener.local_addr().ok().map(|at| at.port());
            dns[family] = socket.local_addr().ok().map(|at| at.port());
            taken.push(listener);
            questions.push((socket, others));
        }
        let except = except.to_vec();
        let settings = DiversionSettings { server, except, tcp, dns };
        let diversion = Diversion::begin(&settings)?;
        Ok(Transparent { taken, questions, diversion })
    }

    /// Checks whether [`begin`](Self::begin) would succeed, apart from another client's rules.
    ///
    /// # Errors
    /// What the host or the process lacks.
    pub fn check(server: SocketAddr, except: &[IpNet]) -> Result<(), HostError> {
        let (except, ports) = (except.to_vec(), [Some(1); 2]);
        Diversion::check(&DiversionSettings { server, except, tcp: ports, dns: ports })
    }

    /// Serves diverted traffic. The rules apply until the returned value is dropped.
    pub fn serve(self, handle: &Rc<ClientHandle>) -> Diversion {
        for listener in self.taken {
            spawn_local(take(listener, handle.clone()));
        }
        for (socket, listener) in self.questions {
            spawn_local(dns::serve_datagrams(socket, handle.clone()));
            spawn_local(dns::serve_connections(listener, handle.clone()));
        }
        self.diversion
    }
}

/// Binds sockets for UDP and TCP to the same port.
async fn both(at: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..TRIES {
        let socket = UdpSocket::bind(at).await?;
        match TcpListener::bind(socket.local_addr()?).await {
            Ok(listener) => return Ok((socket, listener)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn take(listener: TcpListener, handle: Rc<ClientHandle>) {
    while let Some(connection) = next(&listener).await {
        let handle = handle.clone();
        spawn_local(async move {
            // Connected to this port directly instead of being diverted.
            let Some(to) = destination(&connection) else { return break_off(&connection) };
            match ask(&handle, &Request::Tcp(Target::Address(to.ip(), to.port())), &[]).await {
                Ok(stream) => relay(connection, stream, &[], |_| true).await,
                Err(_) => break_off(&connection),
            }
        });
    }
}

/// Returns the original destination of a diverted connection, or `None` if it was not diverted.
fn destination(connection: &TcpStream) -> Option<SocketAddr> {
    let here = connection.local_addr().ok()?;
    let to = if here.is_ipv4() {
        let to = getsockopt(connection, sockopt::OriginalDst).ok()?;
        let address = Ipv4Addr::from(to.sin_addr.s_addr.to_ne_bytes());
        SocketAddr::new(address.into(), u16::from_be(to.sin_port))
    } else {
        let to = getsockopt(connection, sockopt::Ip6tOriginalDst).ok()?;
        let address = Ipv6Addr::from(to.sin6_addr.s6_addr);
        SocketAddr::new(address.into(), u16::from_be(to.sin6_port))
    };
    (to != here).then_some(to)
}
