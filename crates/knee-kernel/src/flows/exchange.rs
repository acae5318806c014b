//! One connection of an application, both its ends.
//!
//! The end that wants the first byte opens the connection: a page's client, whose request follows
//! the handshake, or the sender of pushed data. A request is a message of eight bytes, the number
//! of bytes wanted; its real size is not modelled, as in the simulator.

use super::sampling::Observed;
use knee_host::{TcpInfo, mptcp};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, Shutdown, getsockopt, recv, send, setsockopt, shutdown, sockopt};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const REQUEST_BYTES: usize = 8;

/// Both ends of a connection, as far as they exist.
pub struct Exchange {
    pub number: u32,
    pub started: Time,
    /// Socket of the end that opened the connection, and its port.
    pub opener: OwnedFd,
    pub port: u16,
    /// Socket of the end that accepted it.
    pub accepted: Option<OwnedFd>,
    /// Whether the opener is the receiving end.
    pub fetches: bool,
    /// Requests that have not been sent.
    requests: VecDeque<u64>,
    /// Bytes of an incomplete request.
    partial: Vec<u8>,
    /// Bytes that the sending end has to give now.
    owed: u64,
    /// Bytes requested until a stop cut some off, if it did.
    cut: Option<u64>,
    /// Bytes requested, given to the sending socket, and received by the application.
    pub asked: u64,
    pub given: u64,
    pub delivered: u64,
    closing: bool,
    ended: bool,
    /// When all data was seen to be acknowledged.
    pub completed: Option<Time>,
    /// Whether the end of the stream was acknowledged too, after which no counter changes.
    pub settled: bool,
    pub observed: Observed,
    /// The receiving end, if it is on another machine.
    remote: Option<RemoteEnd>,
}

/// The receiving end of a connection on another machine. Only its kernel says what has arrived.
struct RemoteEnd {
    port: u16,
    /// Bytes before the data, and how many of them were sent.
    greeting: Vec<u8>,
    greeted: usize,
}

impl Exchange {
    pub fn new(number: u32, started: Time, opener: OwnedFd, port: u16, fetches: bool) -> Exchange {
        Exchange {
            number,
            started,
            opener,
            port,
            accepted: None,
            fetches,
            requests: VecDeque::new(),
            partial: Vec::new(),
            owed: 0,
            cut: None,
            asked: 0,
            given: 0,
            delivered: 0,
            closing: false,
            ended: false,
            completed: None,
            settled: false,
            observed: Observed::default(),
            remote: None,
        }
    }

    /// Makes a connection to `remote_port` of another machine, which accepts it and asks for nothing.
    /// Closing it before its end sends a reset: what is still unsent must not outlive the run.
    pub fn remote(
        number: u32,
        started: Time,
        opener: OwnedFd,
        port: u16,
        remote_port: u16,
        greeting: Vec<u8>,
    ) -> Exchange {
        let remote = Some(RemoteEnd { port: remote_port, greeting, greeted: 0 });
        resets_when_closed(&opener, true);
        Exchange { remote, ..Exchange::new(number, started, opener, port, false) }
    }

    pub fn remote_port(&self) -> Option<u16> {
        self.remote.as_ref().map(|remote| remote.port)
    }

    /// Returns the bytes that the kernel counts as acknowledged and that are no data: the SYN of the
    /// connecting end (the FIN comes last), and a greeting.
    pub fn overhead(&self) -> u64 {
        let greeting = self.remote.as_ref().map_or(0, |remote| remote.greeting.len() as u64);
        u64::from(!self.fetches) + greeting
    }

    /// Counts what another machine has acknowledged since the last call as delivered, and returns it;
    /// 0 on the testbed, where the receiving end counts.
    pub fn newly_acknowledged(&mut self) -> u64 {
        if self.remote.is_none() {
            return 0;
        }
        let acked = self.observed.info.acked_bytes.saturating_sub(self.overhead()).min(self.given);
        let new = acked.saturating_sub(self.delivered);
        self.delivered += new;
        new
    }

    pub fn sending(&self) -> Option<&OwnedFd> {
        if self.fetches { self.accepted.as_ref() } else { Some(&self.opener) }
    }

    pub fn receiving(&self) -> Option<&OwnedFd> {
        if self.fetches { Some(&self.opener) } else { self.accepted.as_ref() }
    }

    pub fn push(&mut self, bytes: u64) {
        self.asked = self.asked.saturating_add(bytes);
        self.owed = self.owed.saturating_add(bytes);
    }

    pub fn request(&mut self, bytes: u64) {
        self.asked += bytes;
        self.requests.push_back(bytes);
    }

    /// Closes the connection to new requests.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Stops the connection: data that was not given yet is dropped.
    pub fn stop(&mut self) {
        self.requests.clear();
        if self.given < self.asked {
            self.cut = Some(self.asked);
        }
        (self.owed, self.asked, self.closing) = (0, self.given, true);
    }

    /// Returns the bytes requested, also if a stop cut some off.
    pub fn size(&self) -> u64 {
        self.cut.unwrap_or(self.asked)
    }

    /// Returns the events that the sending end waits for.
    pub fn sending_events(&self) -> PollFlags {
        let has_more = self.owed > 0 || !self.is_greeted();
        let out = if has_more { PollFlags::POLLOUT } else { PollFlags::empty() };
        out | if self.fetches && !self.ended { PollFlags::POLLIN } else { PollFlags::empty() }
    }

    /// Returns the events that the receiving end waits for.
    pub fn receiving_events(&self) -> PollFlags {
        let out = if self.requests.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
        out | if self.delivered < self.asked { PollFlags::POLLIN } else { PollFlags::empty() }
    }

    /// Serves the sending end: reads requests, and gives the data owed.
    pub fn serve_sending(&mut self, payload: &[u8]) -> io::Result<()> {
        self.take_requests()?;
        self.greet()?;
        let Some(socket) = self.sending().filter(|_| self.is_greeted()) else { return Ok(()) };
        let part = &payload[..self.owed.min(payload.len() as u64) as usize];
        if !part.is_empty() {
            let given = allowed(send(socket.as_raw_fd(), part, MsgFlags::MSG_NOSIGNAL))?;
            self.given += given as u64;
            // An endless push has no countdown.
            if self.owed != u64::MAX {
                self.owed -= given as u64;
            }
        }
        Ok(())
    }

    fn is_greeted(&self) -> bool {
        self.remote.as_ref().is_none_or(|remote| remote.greeted == remote.greeting.len())
    }

    fn greet(&mut self) -> io::Result<()> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let rest = &remote.greeting[remote.greeted..];
        if !rest.is_empty() {
            // Leaves together with the first data, if there is any.
            let more = if self.owed > 0 { libc::MSG_MORE } else { 0 };
            let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::from_bits_retain(more);
            remote.greeted += allowed(send(self.opener.as_raw_fd(), rest, flags))?;
        }
        Ok(())
    }

    fn take_requests(&mut self) -> io::Result<()> {
        let Some(socket) = self.sending().filter(|_| self.fetches && !self.ended) else {
            return Ok(());
        };
        let mut bytes = [0; 64 * REQUEST_BYTES];
        let len = allowed(recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT))?;
        self.partial.extend_from_slice(&bytes[..len]);
        while let Some((request, rest)) = self.partial.split_first_chunk::<REQUEST_BYTES>() {
            // Requests that were in flight at a stop are void.
            let wanted = u64::from_ne_bytes(*request);
            self.owed += wanted.min(self.asked - self.given - self.owed);
            self.partial = rest.to_vec();
        }
        Ok(())
    }

    /// Serves the receiving end: sends requests, and takes what has arrived. Returns the number of
    /// bytes.
    pub fn serve_receiving(&mut self, buffer: &mut [u8]) -> io::Result<u64> {
        let Some(socket) = self.receiving().map(AsRawFd::as_raw_fd) else { return Ok(0) };
        while let Some(wanted) = self.requests.front() {
            let sent = send(socket, &wanted.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL);
            if allowed(sent)? < REQUEST_BYTES {
                break;
            }
            self.requests.pop_front();
        }
        // The kernel discards the data without copying it.
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        let len = allowed(recv(socket, buffer, flags))? as u64;
        self.delivered += len;
        Ok(len)
    }

    /// Ends the stream after its last byte, once that is given.
    pub fn end_stream(&mut self) {
        if self.ended || !self.is_given() {
            return;
        }
        if let Some(socket) = self.sending() {
            // Fails if not connected yet, and is then retried.
            self.ended = shutdown(socket.as_raw_fd(), Shutdown::Write).is_ok();
        }
    }

    fn is_given(&self) -> bool {
        self.closing && self.given == self.asked && self.is_greeted()
    }

    /// Returns whether everything has arrived, so that its acknowledgement must be polled for: no
    /// event announces it.
    pub fn awaits_end(&self) -> bool {
        let has_arrived = self.remote.is_some() || self.delivered >= self.asked;
        !self.settled && self.is_given() && has_arrived
    }

    /// Looks at what is acknowledged, if everything has arrived. Returns whether all data is for
    /// the first time, and then whether the end of the stream is for the first time.
    pub fn look_for_end(&mut self, multipath: bool, now: Time) -> io::Result<(bool, bool)> {
        let Some(socket) = self.sending().filter(|_| self.awaits_end()) else {
            return Ok((false, false));
        };
        let (is_acked, is_end_acked) = if multipath {
            // Subflows end on their own.
            let is_acked = mptcp::acknowledged_bytes(socket)? >= self.given;
            (is_acked, is_acked)
        } else {
            let info = TcpInfo::of(socket)?;
            if self.remote.is_some() {
                check_alive(socket)?;
            }
            self.observed.note(&info);
            let acked = info.acked_bytes.saturating_sub(self.overhead());
            // The FIN counts as a byte.
            (acked >= self.given, acked > self.given)
        };
        let is_first = is_acked && self.completed.is_none();
        if is_first {
            self.completed = Some(now);
        }
        self.settled = is_end_acked;
        if self.settled && self.remote.is_some() {
            resets_when_closed(&self.opener, false);
        }
        Ok((is_first, is_end_acked))
    }
}

/// Sets whether closing a connection discards what is unsent and sends a reset.
fn resets_when_closed(socket: &OwnedFd, resets: bool) {
    let linger = libc::linger { l_onoff: resets.into(), l_linger: 0 };
    // If it fails, the kernel sends what it has.
    let _ = setsockopt(socket, sockopt::Linger, &linger);
}

/// Reports a reset, which nothing else does once all data is given.
fn check_alive(socket: &OwnedFd) -> io::Result<()> {
    match getsockopt(socket, sockopt::SocketError)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Treats a call that has nothing to do now as zero bytes.
fn allowed(result: nix::Result<usize>) -> io::Result<usize> {
    match result {
        Ok(len) => Ok(len),
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOTCONN | Errno::EINPROGRESS) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// What the kernel acknowledges begins with the SYN and the greeting, and ends with the FIN.
    #[test]
    fn a_greeting_is_not_delivered() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut exchange = Exchange::remote(0, Time::ZERO, socket, 1, 2, vec![0; 40]);
        exchange.given = 1000;
        for (acked, new) in [(0, 0), (41, 0), (141, 100), (141, 0), (1041, 900), (1042, 0)] {
            exchange.observed.info.acked_bytes = acked;
            assert_eq!(exchange.newly_acknowledged(), new, "{acked}");
        }
        assert_eq!(exchange.delivered, 1000);
    }
}
