//! UDP ASSOCIATE of SOCKS5 (RFC 1928, section 7): the datagrams of one application, as messages of
//! one flow. Ends with the connection that asked for it.

use super::socks::{self, BEFORE_TARGET};
use crate::client::ClientHandle;
use crate::request::Target;
use crate::stream::BundleStream;
use bytes::Bytes;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// Maximum size of a datagram; those larger than the links carry are lost.
const DATAGRAM: usize = 1 << 16;

/// Returns the address from which datagrams will come, if the application declared it: one without an
/// address is that of its connection (RFC 1928, section 4).
fn declared(target: &Target, whose: IpAddr) -> Option<SocketAddr> {
    match target {
        Target::Address(_, 0) | Target::Name(..) => None,
        Target::Address(address, port) if address.is_unspecified() => {
            Some(SocketAddr::new(whose, *port))
        }
        Target::Address(address, port) => Some(SocketAddr::new(address.to_canonical(), *port)),
    }
}

/// Relays datagrams until the application closes the connection. `target` is the address that it
/// declared; without one, the first datagram from its host shows it.
pub async fn associate(
    mut connection: TcpStream,
    target: &Target,
    stream: BundleStream,
    handle: &ClientHandle,
) -> io::Result<()> {
    let at = SocketAddr::new(connection.local_addr()?.ip(), 0);
    let whose = connection.peer_addr()?.ip().to_canonical();
    let socket = UdpSocket::bind(at).await?;
    let bound = socket.local_addr()?;
    connection.write_all(&socks::reply(0, Some(bound))).await?;
    let mut messages = handle.engine.messages(stream.bundle(), stream.flow());
    let mut buffer = vec![0; DATAGRAM];
    let mut told = [0; 64];
    let mut application = declared(target, whose);
    // A socket for IPv6 has the IPv4 addresses of its peers in IPv6's form.
    let form = |to: SocketAddr| match to {
        SocketAddr::V4(to) if at.is_ipv6() => {
            SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port())
        }
        to => to,
    };
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((count, from)) = received else { continue };
                let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                if application.is_none() && from.ip() == whose {
                    application = Some(from);
                }
                if application != Some(from) {
                    continue;
                }
                if let Some(inner) = socks::datagram(&buffer[..count]) {
                    stream.send(Bytes::copy_from_slice(inner), handle.duplicate_udp);
                }
            }
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                if let Some(to) = application {
                    // What the application has no room for is lost, as on any network.
                    let _ = socket.send_to(&[&BEFORE_TARGET[..], &message].concat(), form(to)).await;
                }
            }
            read = connection.read(&mut told) => {
                if read? == 0 {
                    return Ok(());
                }
            }
            ended = stream.read(1) => {
                if !matches!(ended, Ok(Some(_))) {
                    return Ok(());
                }
            }
        }
    }
}
