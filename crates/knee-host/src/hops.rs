//! Probes with a limited TTL within a TCP connection of one's own (as in paratrace and 0trace):
//! segments with bytes that the peer has had, so that it discards them and acknowledges at once
//! (RFC 9293, section 3.10.7.4), and routers treat them as those of any connection, also where a
//! firewall or several ways depend on that. A router at which the TTL ends reports it by ICMP (RFC
//! 792), with the sequence number of the segment, which numbers the probe.

use crate::HostError;
use crate::checksum::transport_checksum;
use crate::system::{set_option, tcp_option};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, socket,
};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Exclusive upper bound of the numbers of probes; they differ from those a while ago.
pub const PROBES_MAX: u32 = 4096;
/// Largest payload of a probe, bytes; smaller if the connection's segments are.
const PAYLOAD_MAX: u32 = 1400;
/// Headers without options (RFC 791, RFC 9293).
const IP: usize = 20;
const TCP: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
const ACK: u8 = 0x10;
/// Type and code of an ICMP message: time to live exceeded in transit.
const TIME_EXCEEDED: [u8; 2] = [11, 0];
// linux/tcp.h.
const TCP_REPAIR: i32 = 19;
const TCP_REPAIR_QUEUE: i32 = 20;
const TCP_QUEUE_SEQ: i32 = 21;
const TCP_RECV_QUEUE: u32 = 1;
const TCP_SEND_QUEUE: u32 = 2;
const REPAIR_ON: u32 = 1;
const REPAIR_OFF_NO_PROBE: u32 = u32::MAX;
/// Offsets in `struct tcp_info`: `tcpi_snd_mss` and `tcpi_segs_in`.
const SND_MSS: usize = 16;
const SEGS_IN: usize = 140;
const ROOT: &str = "run as root: it needs CAP_NET_ADMIN and CAP_NET_RAW";

/// A router's report that the TTL of a probe ended there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Number of the probe.
    pub number: u32,
    /// Address of the router.
    pub router: Ipv4Addr,
}

/// A TCP connection that carries nothing but probes.
#[derive(Debug)]
pub struct HopProbe {
    connection: TcpStream,
    out: OwnedFd,
    reports: OwnedFd,
    local: SocketAddrV4,
    remote: SocketAddrV4,
    /// The next sequence numbers to send and to receive.
    next: u32,
    expected: u32,
    payload: u32,
}

impl HopProbe {
    /// Connects to a peer, in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// A peer that does not answer, missing privileges.
    pub fn connect(to: SocketAddrV4, patience: Duration) -> Result<HopProbe, HostError> {
        let raw = |protocol| {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let opened = socket(AddressFamily::Inet, SockType::Raw, flags, protocol);
            opened.map_err(|error| HostError::refused("open a raw socket", error, ROOT))
        };
        let out = raw(Some(SockProtocol::Raw))?;
        let reports = raw(Some(SockProtocol::Icmp))?;
        let connection = TcpStream::connect_timeout(&to.into(), patience).map_err(|error| {
            let advice = "name an address and a port that accept TCP connections";
            HostError::refused(format!("connect to {to}"), error, advice)
        })?;
        let call = |error| HostError::call("prepare the connection for probes", error);
        connection.set_nonblocking(true).map_err(call)?;
        let local = match connection.local_addr().map_err(call)? {
            SocketAddr::V4(local) => local,
            SocketAddr::V6(_) => return Err(call(ErrorKind::Unsupported.into())),
        };
        let [next, expected] = sequence_numbers(&connection)
            .map_err(|error| HostError::refused("read the state of a connection", error, ROOT))?;
        let payload = info_word(&connection, SND_MSS).map_err(call)?.clamp(1, PAYLOAD_MAX);
        Ok(HopProbe { connection, out, reports, local, remote: to, next, expected, payload })
    }

    /// Sends a probe that passes `ttl` - 1 routers.
    ///
    /// # Errors
    ///
    /// If the system refuses, for example without a route.
    ///
    /// # Panics
    ///
    /// If the number is [`PROBES_MAX`] or more.
    pub fn send(&self, ttl: u8, number: u32) -> io::Result<()> {
        assert!(number < PROBES_MAX, "{number} is no number of a probe");
        // All of it has been received, whatever the number.
        let sequence = self.next.wrapping_sub(self.payload + number);
        let packet = packet(self.local, self.remote, ttl, [sequence, self.expected], self.payload);
        let to = SockaddrIn::from(SocketAddrV4::new(*self.remote.ip(), 0));
        match sendto(self.out.as_raw_fd(), &packet, &to, MsgFlags::MSG_DONTWAIT) {
            // Lost here: as if it was lost on the way.
            Ok(_) | Err(nix::errno::Errno::ENOBUFS | nix::errno::Errno::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes the reports that have arrived to `each`.
    ///
    /// # Errors
    ///
    /// If reading fails.
    pub fn reports(&self, mut each: impl FnMut(Exceeded)) -> io::Result<()> {
        let mut buffer = [0; 1500];
        loop {
            match recv(self.reports.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => {
                    let found = report(&buffer[..len], self.local, self.remote);
                    let number = |sequence: u32| {
                        let before = self.next.wrapping_sub(self.payload);
                        Some(before.wrapping_sub(sequence)).filter(|number| *number < PROBES_MAX)
                    };
                    let one = found.and_then(|(sequence, router)| {
                        Some(Exceeded { number: number(sequence)?, router })
                    });
                    one.into_iter().for_each(&mut each);
                }
                Err(nix::errno::Errno::EAGAIN) => return Ok(()),
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Number of segments that came from the peer, which wraps: one for each probe that arrived there
    /// and whose acknowledgement arrived here, if the peer sends nothing by itself.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn received_segments(&self) -> io::Result<u32> {
        info_word(&self.connection, SEGS_IN)
    }

    /// Whether the peer has not closed the connection; what it sent is discarded.
    pub fn is_open(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.connection.read(&mut buffer) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

/// The next sequence numbers to send and to receive of an idle connection.
fn sequence_numbers(connection: &TcpStream) -> io::Result<[u32; 2]> {
    let set = |name, value| set_option(connection, libc::IPPROTO_TCP, name, value);
    set(TCP_REPAIR, REPAIR_ON)?;
    let read = [TCP_SEND_QUEUE, TCP_RECV_QUEUE].map(|queue| {
        set(TCP_REPAIR_QUEUE, queue)?;
        let mut bytes = [0; 4];
        tcp_option(connection, TCP_QUEUE_SEQ, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    });
    // In any case: a connection under repair sends nothing.
    set(TCP_REPAIR, REPAIR_OFF_NO_PROBE)?;
    let [next, expected]: [io::Result<u32>; 2] = read;
    Ok([next?, expected?])
}

/// A word of `TCP_INFO`.
fn info_word(connection: &TcpStream, at: usize) -> io::Result<u32> {
    let mut bytes = [0; 256];
    let len = tcp_option(connection, libc::TCP_INFO, &mut bytes)?;
    let word = bytes[..len].get(at..at + 4).ok_or(ErrorKind::Unsupported)?;
    Ok(u32::from_ne_bytes(std::array::from_fn(|index| word[index])))
}

/// An IPv4 packet with a TCP segment; the kernel adds identification, length and checksum of the
/// former.
fn packet(
    local: SocketAddrV4,
    remote: SocketAddrV4,
    ttl: u8,
    [sequence, acknowledged]: [u32; 2],
    payload: u32,
) -> Vec<u8> {
    let len = IP + TCP + payload as usize;
    let mut packet = vec![0; len];
    packet[0] = 4 << 4 | (IP / 4) as u8;
    packet[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    packet[8] = ttl;
    packet[9] = libc::IPPROTO_TCP as u8;
    packet[12..16].copy_from_slice(&local.ip().octets());
    packet[16..20].copy_from_slice(&remote.ip().octets());
    let segment = &mut packet[IP..];
    segment[0..2].copy_from_slice(&local.port().to_be_bytes());
    segment[2..4].copy_from_slice(&remote.port().to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledged.to_be_bytes());
    segment[12] = ((TCP / 4) as u8) << 4;
    segment[13] = ACK;
    segment[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    let sum = checksum(local, remote, segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Checksum of a segment, if its field is zero; zero if it is right.
fn checksum(local: SocketAddrV4, remote: SocketAddrV4, segment: &[u8]) -> u16 {
    let protocol = libc::IPPROTO_TCP as u8;
    transport_checksum((*local.ip()).into(), (*remote.ip()).into(), protocol, &[segment])
}

/// Reads a report about a segment of this connection, an IPv4 packet: the segment's sequence number,
/// and who sent it. `None` if it is anything else.
fn report(packet: &[u8], local: SocketAddrV4, remote: SocketAddrV4) -> Option<(u32, Ipv4Addr)> {
    let after_header = |packet: &[u8]| usize::from(packet.first()? & 0xf).checked_mul(4);
    let router = array::<4>(packet, 12)?;
    let message = packet.get(after_header(packet)?..)?;
    if message.get(..2)? != TIME_EXCEEDED {
        return None;
    }
    let about = message.get(8..)?;
    if i32::from(*about.get(9)?) != libc::IPPROTO_TCP {
        return None;
    }
    let ends = [array::<4>(about, 12)?, array::<4>(about, 16)?].map(Ipv4Addr::from);
    let segment = about.get(after_header(about)?..)?;
    let ports = [array::<2>(segment, 0)?, array::<2>(segment, 2)?].map(u16::from_be_bytes);
    let is_ours = ends == [*local.ip(), *remote.ip()] && ports == [local.port(), remote.port()];
    let sequence = u32::from_be_bytes(array(segment, 4)?);
    is_ours.then(|| (sequence, Ipv4Addr::from(router)))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 40_000);
    const REMOTE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 7), 443);

    /// The report of a router (RFC 792): the header of the packet, and eight bytes of the segment.
    fn reported(about: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45; IP];
        packet[12..16].copy_from_slice(&[203, 0, 113, 9]);
        packet.extend([11, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(&about[..IP + 8]);
        packet
    }

    #[test]
    fn a_report_names_the_segment_and_the_router() {
        let about = packet(LOCAL, REMOTE, 3, [0xfedc_ba98, 7], 9);
        assert_eq!(checksum(LOCAL, REMOTE, &about[IP..]), 0);
        let found = report(&reported(&about), LOCAL, REMOTE);
        assert_eq!(found, Some((0xfedc_ba98, Ipv4Addr::new(203, 0, 113, 9))));
        let other = SocketAddrV4::new(*LOCAL.ip(), 40_001);
        assert_eq!(report(&reported(&about), other, REMOTE), None);
        let mut unreachable = reported(&about);
        unreachable[IP] = 3;
        assert_eq!(report(&unreachable, LOCAL, REMOTE), None);
    }

    proptest! {
        /// For any input, nothing is read beyond its end.
        #[test]
        fn any_report(mut bytes in prop::collection::vec(any::<u8>(), 0..100), whole: bool) {
            if whole && bytes.len() > IP + 2 {
                bytes[0] = 0x45;
                bytes[IP..IP + 2].copy_from_slice(&TIME_EXCEEDED);
            }
            let _ = report(&bytes, LOCAL, REMOTE);
        }
    }
}
