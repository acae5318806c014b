//! Requests to the kernel over netlink, and their answers.

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Flag of a listing during which something changed (linux/netlink.h).
const NLM_F_DUMP_INTR: u16 = 0x10;
/// Maximum number of attempts at a listing.
const LISTINGS_MAX: usize = 10;

/// A connection to one netlink protocol of the kernel.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    /// Whether something changed during the current listing.
    interrupted: bool,
}

impl Netlink {
    /// Opens a connection, bound to the namespace of the calling thread.
    pub fn open(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0, interrupted: false })
    }

    /// Makes the kernel check list requests strictly, which also makes it omit what was not asked
    /// for.
    pub fn strict(&self) -> io::Result<()> {
        self.socket.set_netlink_get_strict_chk(true)
    }

    /// Subscribes to a multicast group of the protocol.
    pub fn join(&mut self, group: u32) -> io::Result<()> {
        self.socket.add_membership(group)
    }

    /// Waits for notifications, reads all that are pending, and returns whether there were any.
    pub fn heard(&mut self, patience: Duration) -> io::Result<bool> {
        let wait = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, wait) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut free: &mut [u8] = &mut buffer;
            match self.socket.recv(&mut free, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                // The kernel lost notifications for lack of room, so something changed.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request, and returns the answer, or `None` for a bare acknowledgement.
    pub fn ask<M: NetlinkSerializable + NetlinkDeserializable>(
        &mut self,
        message: M,
        flags: u16,
    ) -> io::Result<Option<M>> {
        self.send(message, flags)?;
        loop {
            match self.receive::<M>()?.into_iter().next() {
                None => {}
                Some(NetlinkPayload::Error(error)) if error.code.is_some() => {
                    return Err(error.to_io());
                }
                Some(NetlinkPayload::InnerMessage(message)) => return Ok(Some(message)),
                Some(_) => return Ok(None),
            }
        }
    }

    /// Returns everything that the kernel lists for a request. Repeats the listing if something
    /// changes meanwhile.
    pub fn list<M: NetlinkSerializable + NetlinkDeserializable + Clone>(
        &mut self,
        message: M,
    ) -> io::Result<Vec<M>> {
        for _ in 0..LISTINGS_MAX {
            if let Some(whole) = self.listing(message.clone())? {
                return Ok(whole);
            }
        }
        Err(io::Error::other("it changes faster than it can be read"))
    }

    /// Makes one listing; `None` if something changed meanwhile.
    fn listing<M: NetlinkSerializable + NetlinkDeserializable>(
        &mut self,
        message: M,
    ) -> io::Result<Option<Vec<M>>> {
        self.send(message, NLM_F_DUMP)?;
        let mut found = Vec::new();
        self.interrupted = false;
        loop {
            for answer in self.receive::<M>()? {
                match answer {
                    NetlinkPayload::InnerMessage(message) => found.push(message),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(error.to_io());
                    }
                    NetlinkPayload::Done(done) if done.code < 0 => {
                        return Err(io::Error::from_raw_os_error(-done.code));
                    }
                    NetlinkPayload::Done(_) => {
                        return Ok((!self.interrupted).then_some(found));
                    }
                    _ => {}
                }
            }
        }
    }

    fn send<M: NetlinkSerializable>(&mut self, message: M, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }

    /// Returns the answers in one datagram to the last request; others belong to a request that
    /// ended early.
    fn receive<M: NetlinkDeserializable>(&mut self) -> io::Result<Vec<NetlinkPayload<M>>> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let mut rest = bytes.as_slice();
        let mut answers = Vec::new();
        while !rest.is_empty() {
            let answer = NetlinkMessage::<M>::deserialize(rest)
                .map_err(|error| io::Error::other(error.to_string()))?;
            let len = (answer.header.length as usize).next_multiple_of(4);
            rest = rest.get(len.max(1)..).unwrap_or(&[]);
            if answer.header.sequence_number == self.sequence {
                self.interrupted |= answer.header.flags & NLM_F_DUMP_INTR != 0;
                answers.push(answer.payload);
            }
        }
        Ok(answers)
    }
}
