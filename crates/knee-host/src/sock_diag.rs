//! TCP connections as reported by the kernel over sock_diag (sock_diag(7)): a report when a socket
//! is destroyed, and a dump of existing ones. Neither needs a privilege. Both cover the network
//! namespace of the calling thread.

use crate::system::{DATAGRAMS_MAX, receive_many, set_option, socket_option};
use crate::{HostError, TcpInfo};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr as Address};
use std::time::Duration;

// include/uapi/linux/sock_diag.h and inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_TCP_DESTROY: u32 = 1;
const INET6_TCP_DESTROY: u32 = 3;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_MARK: u16 = 15;
const INET_DIAG_CGROUP_ID: u16 = 21;
/// Sizes of `struct nlmsghdr`, `struct inet_diag_msg`, `struct inet_diag_req_v2`.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
const REQUEST: usize = 56;
/// Size of `struct nlattr`.
const ATTRIBUTE: usize = 4;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Cookie of a socket that has none (`INET_DIAG_NOCOOKIE`).
const NO_COOKIE: [u8; 8] = [0xff; 8];
/// States with a connection (include/net/tcp_states.h): all except SYN_RECV, TIME_WAIT, CLOSE and
/// LISTEN.
const CONNECTED: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Index of the drops in `SO_MEMINFO` (`SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8;
/// Buffer for pending reports, as far as the host permits.
const BUFFER_BYTES: u32 = 32 << 20;
/// Maximum size of a message of a dump.
const DUMP_BYTES: usize = 64 << 10;
/// Buffer for a report, which has some 400 bytes.
const REPORT_BYTES: usize = 2 << 10;

/// State of a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpSocket<'a> {
    /// Local address.
    pub local: Address,
    /// Peer's address; the port is 0 if there was no peer, as for a listening socket.
    pub remote: Address,
    /// The kernel's number for the socket, unique until the next boot.
    pub cookie: u64,
    /// `TCP_INFO`, final if the socket was destroyed; `None` if it had no connection.
    pub info: Option<TcpInfo>,
    /// Congestion controller; `None` for a destroyed socket, whose report over sock_diag does not
    /// include it.
    pub controller: Option<&'a str>,
    /// Mark of an existing socket (`SO_MARK`), 0 if it has none; `None` without CAP_NET_ADMIN.
    pub mark: Option<u32>,
    /// Number of the control group of an existing socket (inode of its folder, version 2).
    pub cgroup: Option<u64>,
    /// When it was opened, since the boot; `None` if not seen, as always over sock_diag.
    pub opened: Option<Duration>,
    /// When its handshake was over, since the boot; likewise.
    pub established: Option<Duration>,
    /// When it ended, since the boot; likewise.
    pub ended: Option<Duration>,
}

/// Reports on every TCP socket that is destroyed in the network namespace of the thread that opened
/// this, including those that were closed immediately.
#[derive(Debug)]
pub struct ClosedSockets {
    socket: Socket,
    /// A buffer for each report of a reading.
    buffer: Vec<u8>,
    dropped: u32,
}

/// Result of reading reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Reports read.
    pub reports: u64,
    /// Exact number of reports that the kernel dropped for lack of room since the last call.
    pub dropped: u64,
    /// Whether none was left: those of the next call are younger than the begin of this one.
    pub emptied: bool,
}

impl ClosedSockets {
    /// Starts listening.
    ///
    /// # Errors
    ///
    /// If this kernel has no sock_diag.
    pub fn listen() -> Result<ClosedSockets, HostError> {
        let refused = |error| {
            let advice =
                "use a kernel with CONFIG_INET_DIAG (modprobe tcp_diag), from Linux 4.2 on";
            HostError::refused("receive reports of closed connections", error, advice)
        };
        ClosedSockets::open().map_err(refused)
    }

    fn open() -> io::Result<ClosedSockets> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        // Beyond the limit of the host if permitted, else up to it.
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES).is_err() {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)?;
        }
        // Otherwise, once the kernel had no room, it would report nothing more until everything is
        // read (net/netlink/af_netlink.c, netlink_overrun). The drops are counted.
        socket.set_no_enobufs(true)?;
        socket.bind_auto()?;
        socket.add_membership(INET_TCP_DESTROY)?;
        socket.add_membership(INET6_TCP_DESTROY)?;
        let mut closed =
            ClosedSockets { socket, buffer: vec![0; DATAGRAMS_MAX * REPORT_BYTES], dropped: 0 };
        closed.dropped = closed.drops()?;
        Ok(closed)
    }

    /// Returns the size of the buffer for reports, in which the kernel includes its own overhead.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn buffer_bytes(&self) -> io::Result<usize> {
        self.socket.get_rx_buf_sz()
    }

    /// Waits up to `patience` for a destroyed socket, then passes it and all others so far to the
    /// callback, at most `most`.
    ///
    /// # Errors
    ///
    /// If reading fails.
    pub fn hear(
        &mut self,
        patience: Duration,
        most: u64,
        mut each: impl FnMut(TcpSocket<'_>),
    ) -> io::Result<Heard> {
        let mut heard = Heard::default();
        let mut lens = [0; DATAGRAMS_MAX];
        let mut are_pending = is_readable(&self.socket, patience)?;
        while are_pending && heard.reports < most {
            let wanted = usize::try_from(most - heard.reports).unwrap_or(DATAGRAMS_MAX);
            let wanted = wanted.min(DATAGRAMS_MAX);
            let buffers = self.buffer.chunks_exact_mut(REPORT_BYTES).take(wanted);
            let received = some(receive_many(&self.socket, buffers, &mut lens))?.unwrap_or(0);
            for (buffer, len) in self.buffer.chunks_exact(REPORT_BYTES).zip(&lens[..received]) {
                for (kind, body) in messages(&buffer[..*len]) {
                    if kind == SOCK_DIAG_BY_FAMILY
                        && let Some(one) = TcpSocket::decode(body)
                    {
                        heard.reports += 1;
                        each(one);
                    }
                }
            }
            // Fewer than asked for are all that there were.
            are_pending = received == wanted;
        }
        let dropped = self.drops()?;
        heard.dropped = dropped.wrapping_sub(self.dropped).into();
        heard.emptied = !are_pending;
        self.dropped = dropped;
        Ok(heard)
    }

    /// Returns the kernel's count of reports lost by this socket, which wraps.
    fn drops(&self) -> io::Result<u32> {
        let mut bytes = [0; 64];
        let len = socket_option(&self.socket, libc::SO_MEMINFO, &mut bytes)?;
        let at = MEMINFO_DROPS * 4;
        if len < at + 4 {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(u32::from_ne_bytes(array(&bytes, at)))
    }
}

/// Passes every TCP socket of the namespace with a connection to `each`, IPv4 and IPv6.
///
/// # Errors
///
/// If the kernel refuses.
pub fn each_connection(mut each: impl FnMut(TcpSocket<'_>)) -> Result<(), HostError> {
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(family as u8, &mut each).map_err(|error| {
            let advice = "use a kernel with CONFIG_INET_DIAG (modprobe tcp_diag)";
            HostError::refused("list connections", error, advice)
        })?;
    }
    Ok(())
}

fn dump(family: u8, each: &mut impl FnMut(TcpSocket<'_>)) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    let mut request = Vec::with_capacity(HEADER + REQUEST);
    request.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family, libc::IPPROTO_TCP as u8, extensions, 0]);
    request.extend(CONNECTED.to_ne_bytes());
    request.resize(HEADER + REQUEST, 0);
    socket.send(&request, 0)?;
    let mut buffer = vec![0; DUMP_BYTES];
    loop {
        let Some(len) = receive(&socket, &mut buffer, DUMP_PATIENCE)? else {
            return Err(ErrorKind::TimedOut.into());
        };
        for (kind, body) in messages(&buffer[..len]) {
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR if body.len() >= 4 => {
                    return Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(array(body, 0))));
                }
                _ => TcpSocket::decode(body).into_iter().for_each(&mut *each),
            }
        }
    }
}

/// Time limit for a dump. The kernel answers at once, except in a namespace that is going away.
const DUMP_PATIENCE: Duration = Duration::from_secs(5);

/// Reads a datagram, waiting up to the given time; `None` if there was none.
fn receive(socket: &Socket, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
    if !is_readable(socket, patience)? {
        return Ok(None);
    }
    let mut free: &mut [u8] = buffer;
    some(socket.recv(&mut free, libc::MSG_DONTWAIT))
}

/// Waits up to the given time until a datagram is pending, and returns whether one is.
fn is_readable(socket: &Socket, patience: Duration) -> io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let wait = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    let mut watched = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut watched, wait) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Turns the errors of a reading that found nothing into `None`.
fn some<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// Iterates over the netlink messages in a datagram that are complete, as type and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(array(bytes.get(..HEADER)?, 0)) as usize;
        let message = bytes.get(..len).filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes(array(message, 4)), &message[HEADER..]))
    })
}

impl TcpSocket<'_> {
    /// Returns the same without the controller, to keep it.
    pub fn without_controller(self) -> TcpSocket<'static> {
        let TcpSocket {
            local, remote, cookie, info, mark, cgroup, opened, established, ended, ..
        } = self;
        let controller = None;
        TcpSocket {
            local,
            remote,
            cookie,
            info,
            controller,
            mark,
            cgroup,
            opened,
            established,
            ended,
        }
    }
}

impl<'a> TcpSocket<'a> {
    /// Parses `struct inet_diag_msg` and its attributes. Returns `None` if it is truncated, or
    /// neither IPv4 nor IPv6.
    pub fn decode(body: &'a [u8]) -> Option<TcpSocket<'a>> {
        let (message, mut attributes) = body.split_at_checked(MESSAGE)?;
        let address = |at: usize| match i32::from(message[0]) {
            libc::AF_INET => Some(IpAddr::V4(Ipv4Addr::from(array::<4>(message, at)))),
            // A dual-stack socket has IPv4-mapped addresses for an IPv4 peer.
            libc::AF_INET6 => {
                Some(IpAddr::V6(Ipv6Addr::from(array::<16>(message, at))).to_canonical())
            }
            _ => None,
        };
        let port = |at: usize| u16::from_be_bytes(array(message, at));
        let cookie = array::<8>(message, 44);
        let mut socket = TcpSocket {
            local: Address::new(address(8)?, port(4)),
            remote: Address::new(address(24)?, port(6)),
            // Two words, the low one first on every host.
            cookie: u64::from(u32::from_ne_bytes(array(message, 44)))
                | u64::from(u32::from_ne_bytes(array(message, 48))) << 32,
            info: None,
            controller: None,
            mark: None,
            cgroup: None,
            opened: None,
            established: None,
            ended: None,
        };
        if cookie == NO_COOKIE {
            return None;
        }
        while attributes.len() >= ATTRIBUTE {
            let len = usize::from(u16::from_ne_bytes(array(attributes, 0)));
            let Some(value) = attributes.get(ATTRIBUTE..len) else { break };
            match u16::from_ne_bytes(array(attributes, 2)) {
                INET_DIAG_INFO => socket.info = Some(TcpInfo::decode(value)),
                INET_DIAG_CONG => {
                    let name = value.split(|byte| *byte == 0).next().unwrap_or(value);
                    socket.controller = std::str::from_utf8(name).ok();
                }
                INET_DIAG_MARK if value.len() >= 4 => {
                    socket.mark = Some(u32::from_ne_bytes(array(value, 0)));
                }
                INET_DIAG_CGROUP_ID if value.len() >= 8 => {
                    socket.cgroup = Some(u64::from_ne_bytes(array(value, 0)));
                }
                _ => {}
            }
            attributes = attributes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Some(socket)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any input, nothing is read beyond its end.
        #[test]
        fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..400), family in 0..12u8) {
            for (_, body) in messages(&bytes) {
                let _ = TcpSocket::decode(body);
            }
            if let Some(first) = bytes.first_mut() {
                *first = family;
            }
            if let Some(socket) = TcpSocket::decode(&bytes) {
                prop_assert!(bytes.len() >= MESSAGE);
                prop_assert!(matches!(i32::from(family), libc::AF_INET | libc::AF_INET6));
                prop_assert!(socket.local.is_ipv4() || i32::from(family) == libc::AF_INET6);
            }
        }
    }
}
