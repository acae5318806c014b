//! UDP ASSOCIATE of SOCKS5 (RFC 1928, section 7): the datagrams of one application, as messages of
//! one flow. Ends with the connection that asked for it.

use super::socks::{self, BEFORE_TARGET};
use crate::client::Way;
use crate::stream::BundleStream;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// Maximum size of a datagram; those larger than the links carry are lost.
const DATAGRAM: usize = 1 << 16;

/// Relays datagrams until the application closes the connection.
pub async fn associate(
    mut connection: TcpStream,
    stream: BundleStream,
    way: &Way,
) -> io::Result<()> {
    let at = SocketAddr::new(connection.local_addr()?.ip(), 0);
    let whose = connection.peer_addr()?.ip();
    let socket = UdpSocket::bind(at).await?;
    let bound = socket.local_addr()?;
    connection.write_all(&socks::reply(0, Some(bound))).await?;
    let mut messages = way.engine.messages(stream.bundle(), stream.flow());
    let mut buffer = vec![0; DATAGRAM];
    let mut told = [0; 64];
    // The application's address, known from its first datagram.
    let mut application = None;
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((count, from)) = received else { continue };
                if from.ip() != whose || *application.get_or_insert(from) != from {
                    continue;
                }
                if let Some(inner) = socks::datagram(&buffer[..count]) {
                    stream.send(Bytes::copy_from_slice(inner), way.duplicate_udp);
                }
            }
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                if let Some(to) = application {
                    // What the application has no room for is lost, as on any network.
                    let _ = socket.send_to(&[&BEFORE_TARGET[..], &message].concat(), to).await;
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
