//! The receiving host: accepts every flow and throws away what it gets.

use super::{PORT, SLEEP_MAX_MS, Shared, TAKE_BYTES, at_port, tcp_socket};
use crate::KernelError;
use crate::hosts::{End, address};
use crate::settings::{FlowSettings, Settings};
use knee_emulator::timespec;
use knee_host::{mptcp, set_option};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{Backlog, MsgFlags, bind, listen, recv};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// All receiving sockets.
pub struct Receiver {
    connections: Vec<Connection>,
    buffer: Vec<u8>,
}

struct Connection {
    flow: usize,
    /// Stays open: subflows join through it.
    listener: TcpListener,
    /// None before the sender has come.
    stream: Option<TcpStream>,
    ended: bool,
}

impl Receiver {
    /// Listens for every flow, in the namespace of the calling thread.
    pub fn listen(settings: &Settings) -> Result<Receiver, KernelError> {
        let flows = settings.flows.iter().enumerate().filter(|(_, flow)| flow.is_stream());
        let connections = flows.map(|(index, flow)| listener(index, flow));
        Ok(Receiver {
            connections: connections.collect::<Result<_, _>>()?,
            buffer: vec![0; TAKE_BYTES],
        })
    }

    /// Receives until told to stop.
    pub fn run(mut self, shared: &Shared) -> Result<(), KernelError> {
        while !shared.stop.load(Ordering::Relaxed) {
            for index in self.ready()? {
                self.serve(index, shared);
            }
        }
        Ok(())
    }

    fn ready(&self) -> Result<Vec<usize>, KernelError> {
        let open: Vec<usize> =
            (0..self.connections.len()).filter(|index| !self.connections[*index].ended).collect();
        let mut polled: Vec<PollFd<'_>> = open
            .iter()
            .map(|index| PollFd::new(self.connections[*index].awaited(), PollFlags::POLLIN))
            .collect();
        match ppoll(&mut polled, Some(timespec(Time::from_millis(SLEEP_MAX_MS))), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(KernelError::call("wait for sockets", error)),
        }
        let ready = open.iter().zip(&polled).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|(index, _)| *index).collect())
    }

    /// Takes what one flow has. A flow whose connection breaks has ended: its
    /// sender tells why.
    fn serve(&mut self, index: usize, shared: &Shared) {
        let connection = &mut self.connections[index];
        let Some(stream) = &connection.stream else { return connection.accept() };
        // Discarded in the kernel: nothing is copied.
        match recv(stream.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
            Ok(0) => connection.ended = true,
            Ok(len) => {
                shared.delivered[connection.flow].fetch_add(len as u64, Ordering::Relaxed);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => connection.ended = true,
        }
    }
}

impl Connection {
    /// What to wait for next: the sender, then its data.
    fn awaited(&self) -> BorrowedFd<'_> {
        self.stream.as_ref().map_or(self.listener.as_fd(), TcpStream::as_fd)
    }

    fn accept(&mut self) {
        let accepted = self.listener.accept();
        self.stream = accepted.ok().and_then(|(stream, _)| {
            stream.set_nonblocking(true).ok()?;
            Some(stream)
        });
    }
}

fn listener(index: usize, flow: &FlowSettings) -> Result<Connection, KernelError> {
    let address = address(flow.path, End::Receiver, flow.family);
    let multipath = flow.is_multipath();
    let socket = if multipath { mptcp::socket(address)? } else { tcp_socket(address)? };
    receiving_options(&socket, flow)?;
    // Subflows join at the addresses of the other paths.
    let at = match address {
        IpAddr::V4(_) if multipath => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) if multipath => Ipv6Addr::UNSPECIFIED.into(),
        one => one,
    };
    let listener = listen_at(socket, at, PORT + index as u16)?;
    Ok(Connection { flow: index, listener, stream: None, ended: false })
}

/// What the receiving end of a flow is set to; a listener hands it on to what
/// it accepts.
pub fn receiving_options(socket: &OwnedFd, flow: &FlowSettings) -> Result<(), KernelError> {
    if let Some(window) = flow.receive_window {
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window)
            .map_err(|source| KernelError::call("bound the receive window", source))?;
    }
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, flow.max_segment)
        .map_err(|source| KernelError::call("set the segment size", source))
}

/// Makes a socket a listener.
pub fn listen_at(socket: OwnedFd, address: IpAddr, port: u16) -> Result<TcpListener, KernelError> {
    bind(socket.as_raw_fd(), &at_port(address, port))
        .and_then(|()| listen(&socket, Backlog::MAXCONN))
        .map_err(|source| KernelError::call("listen for a flow", source))?;
    Ok(TcpListener::from(socket))
}
