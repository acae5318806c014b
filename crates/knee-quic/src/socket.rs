//! UDP sockets that send and receive many packets per call if the kernel can.

use nix::sys::socket::{setsockopt, sockopt};
use noq_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// Socket buffer, larger than what arrives while a thread is late.
const SOCKET_BYTES: usize = 16 << 20;
/// Buffer for packets that the kernel has merged.
const RECEIVE_BYTES: usize = 1 << 16;

/// Both addresses of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Address of this host; an answer must come from the address that was asked. `None` means any.
    pub local: Option<IpAddr>,
}

impl Addresses {
    /// Makes the addresses of a packet to or from `peer`, with any local address.
    pub fn to(peer: SocketAddr) -> Addresses {
        Addresses { peer, local: None }
    }

    pub(crate) fn of(transmit: &noq_proto::Transmit) -> Addresses {
        Addresses { peer: transmit.destination, local: transmit.src_ip }
    }
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// Buffers for received packets.
#[derive(Debug)]
pub struct Room(Vec<Vec<u8>>);

impl Default for Room {
    fn default() -> Room {
        Room(vec![vec![0; RECEIVE_BYTES]; BATCH_SIZE])
    }
}

impl Socket {
    /// Takes over a bound socket.
    ///
    /// # Errors
    /// Error of the system.
    pub fn new(socket: UdpSocket) -> io::Result<Socket> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // Beyond the limit of the host if allowed, otherwise up to it.
        setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BYTES))?;
        Ok(Socket { socket, state })
    }

    /// Returns its local address.
    ///
    /// # Errors
    /// Error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends packets of `packet` bytes each. What the socket has no room for is lost, as in any
    /// full queue.
    ///
    /// # Errors
    /// Error of the system, such as that no route leads there.
    pub fn send(&self, ends: Addresses, bytes: &[u8], packet: usize) -> io::Result<()> {
        let most = self.state.max_gso_segments().get() * packet;
        for contents in bytes.chunks(most.max(packet)) {
            let transmit = Transmit {
                destination: ends.peer,
                ecn: None,
                contents,
                segment_size: (contents.len() > packet).then_some(packet),
                src_ip: ends.local,
            };
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives packets that have arrived. Returns whether there may be more.
    ///
    /// # Errors
    /// Error of the system.
    pub fn receive(
        &self,
        room: &mut Room,
        mut take: impl FnMut(Addresses, &[u8]),
    ) -> io::Result<bool> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut buffers: Vec<IoSliceMut<'_>> =
            room.0.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = self.state.recv(UdpSockRef::from(&self.socket), &mut buffers, &mut meta);
        let count = match received {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        for (meta, buffer) in meta.iter().zip(&room.0).take(count) {
            for packet in buffer[..meta.len].chunks(meta.stride.max(1)) {
                take(Addresses { peer: meta.addr, local: meta.dst_ip }, packet);
            }
        }
        Ok(count == BATCH_SIZE)
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
