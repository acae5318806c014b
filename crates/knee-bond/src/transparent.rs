//! Transparent mode: sends TCP, UDP and pings of this host's programs over the links, without a
//! proxy that they know of, and those of the house, for which this host forwards. The kernel hands
//! over this host's connections, whose original destination it says when asked; the connections of
//! the house have it as their local address, and datagrams come with it ([`crate::flows`]). The
//! server resolves this host's names ([`crate::dns`]). Anything that would bypass the links is
//! refused.
//!
//! The rules ([`Diversion`]) apply from before the first link is opened until the client ends,
//! however it ends.

use crate::BondError;
use crate::client::ClientHandle;
use crate::config::TransparentConfig;
use crate::dns;
use crate::flows;
use crate::proxy::{ask, next};
use crate::request::{Request, Target};
use crate::stream::{break_off, relay};
use knee_host::{
    Diversion, DiversionSettings, HostError, Impersonator, diverted_udp, echo_socket,
    set_transparent,
};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::task::spawn_local;

/// Attempts to bind the same port for UDP and TCP.
const TRIES: usize = 16;
/// Connections of the house that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Sockets for connections, datagrams and DNS questions, and the rules that divert traffic to them.
pub struct Transparent {
    taken: Vec<TcpListener>,
    of_the_house: Vec<TcpListener>,
    datagrams: Vec<UdpSocket>,
    replies: Impersonator,
    echoes: [Option<UdpSocket>; 2],
    questions: Vec<(UdpSocket, TcpListener)>,
    diversion: Diversion,
}

impl Transparent {
    /// Installs the rules. They let UDP to the server pass, and all packets to the excepted
    /// prefixes.
    ///
    /// # Errors
    /// The process lacks CAP_NET_ADMIN or CAP_NET_RAW, the kernel lacks a feature, or another client
    /// has installed the rules.
    pub async fn begin(
        server: SocketAddr,
        config: &TransparentConfig,
    ) -> Result<Transparent, BondError> {
        let (mut taken, mut of_the_house) = (Vec::new(), Vec::new());
        let (mut datagrams, mut questions) = (Vec::new(), Vec::new());
        let mut settings = settings(server, config);
        let hosts = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        for (family, host) in hosts.into_iter().enumerate() {
            let at = SocketAddr::new(host, 0);
            let made = async {
                let datagrams = UdpSocket::from_std(diverted_udp(host.is_ipv6())?)?;
                let own = (TcpListener::bind(at).await?, both(at).await?);
                io::Result::Ok((own, listen_transparent(at)?, datagrams))
            };
            let ((own, (socket, others)), house, udp) = match made.await {
                Ok(made) => made,
                // A host may lack IPv6; what is sent over it is refused then.
                Err(_) if host.is_ipv6() => continue,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(lacking(error).into());
                }
                Err(source) => return Err(BondError::Listen { at: at.to_string(), source }),
            };
            let port = |at: io::Result<SocketAddr>| at.ok().map(|at| at.port());
            settings.tcp[family] = port(own.local_addr());
            settings.dns[family] = port(socket.local_addr());
            settings.udp[family] = port(udp.local_addr());
            settings.lan_tcp[family] = port(house.local_addr());
            taken.push(own);
            of_the_house.push(house);
            datagrams.push(udp);
            questions.push((socket, others));
        }
        let replies = Impersonator::open().map_err(lacking)?;
        let echoes = [false, true].map(|is_v6| UdpSocket::from_std(echo_socket(is_v6).ok()?).ok());
        let diversion = Diversion::begin(&settings)?;
        Ok(Transparent { taken, of_the_house, datagrams, replies, echoes, questions, diversion })
    }

    /// Checks whether [`begin`](Self::begin) would succeed, apart from another client's rules.
    ///
    /// # Errors
    /// What the host or the process lacks.
    pub fn check(server: SocketAddr, config: &TransparentConfig) -> Result<(), HostError> {
        Impersonator::open().map_err(lacking)?;
        let (tcp, dns, udp, lan_tcp) = ([Some(1); 2], [Some(1); 2], [Some(1); 2], [Some(1); 2]);
        Diversion::check(&DiversionSettings { tcp, dns, udp, lan_tcp, ..settings(server, config) })
    }

    /// Serves diverted traffic. The rules apply until the returned value is dropped.
    pub fn serve(self, handle: &Rc<ClientHandle>) -> Diversion {
        for listener in self.taken {
            spawn_local(take(listener, handle.clone(), original));
        }
        for listener in self.of_the_house {
            spawn_local(take(listener, handle.clone(), meant));
        }
        spawn_local(flows::run(self.datagrams, self.replies, self.echoes, handle.clone()));
        for (socket, listener) in self.questions {
            spawn_local(dns::serve_datagrams(socket, handle.clone()));
            spawn_local(dns::serve_connections(listener, handle.clone()));
        }
        self.diversion
    }
}

fn settings(server: SocketAddr, config: &TransparentConfig) -> DiversionSettings {
    let TransparentConfig { except, lan } = config.clone();
    let server = Some(server);
    DiversionSettings { server, except, lan, ping: true, ..DiversionSettings::default() }
}

fn lacking(error: io::Error) -> HostError {
    let advice = "run it as root, or give it CAP_NET_ADMIN and CAP_NET_RAW";
    HostError::refused("answer in the name of other hosts", error, advice)
}

/// Listens for connections that were meant for other hosts.
fn listen_transparent(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    set_transparent(&socket)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
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

/// Relays connections; `destination` finds that of each, or `None` if it was not diverted.
async fn take(
    listener: TcpListener,
    handle: Rc<ClientHandle>,
    destination: impl Fn(&TcpStream) -> Option<SocketAddr>,
) {
    let own = listener.local_addr().ok();
    while let Some(connection) = next(&listener).await {
        let handle = handle.clone();
        let to = destination(&connection).filter(|to| Some(*to) != own);
        spawn_local(async move {
            // Connected to this port directly instead of being diverted.
            let Some(to) = to else { return break_off(&connection) };
            match ask(&handle, &Request::Tcp(Target::Address(to.ip(), to.port())), &[]).await {
                Ok(stream) => relay(connection, stream, &[], |_| true).await,
                Err(_) => break_off(&connection),
            }
        });
    }
}

/// Returns the destination of a connection of the house, which is this end's address.
fn meant(connection: &TcpStream) -> Option<SocketAddr> {
    connection.local_addr().ok()
}

/// Returns the original destination of a connection of this host, or `None` if it was not diverted.
fn original(connection: &TcpStream) -> Option<SocketAddr> {
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
