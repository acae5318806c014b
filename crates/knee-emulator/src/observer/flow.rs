//! One flow of the table: what its packets add up to.

use super::Delays;
use super::spin::Spin;
use crate::wire::{Headers, Kind, get16, get32, parse, tcp};
use knee_units::Time;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// IP protocol numbers (IANA, Protocol Numbers).
const TCP: u8 = 6;
const UDP: u8 = 17;

/// What packets of one direction of a connection have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FiveTuple {
    /// IP protocol number: 6 is TCP, 17 is UDP. Packets of other protocols, and fragments, have no
    /// ports: theirs are zero.
    pub protocol: u8,
    /// Where its packets come from.
    pub source: SocketAddr,
    /// Where its packets go to.
    pub destination: SocketAddr,
}

impl FiveTuple {
    /// Returns the five-tuple of the packets in the other direction.
    #[must_use]
    pub fn reversed(self) -> FiveTuple {
        FiveTuple { source: self.destination, destination: self.source, ..self }
    }

    /// Whether the packets are TCP's.
    pub fn is_tcp(self) -> bool {
        self.protocol == TCP
    }
}

/// Packets and their IP bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Volume {
    pub(super) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
}

/// One direction of a connection, or of any exchange with the same five-tuple.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Device from which its packets enter.
    pub device: usize,
    /// When its first packet entered.
    pub first: Time,
    /// When its last packet entered, was dropped or left.
    pub last: Time,
    /// Packets that entered. Those that were neither dropped nor left are in a link.
    pub entered: Volume,
    /// Packets that left at the end of their route.
    pub left: Volume,
    /// Packets that a link dropped, for any reason.
    pub dropped: Volume,
    /// Dropped packets by link.
    pub dropped_packets_at: BTreeMap<usize, u64>,
    /// Packets that left with Congestion Experienced.
    pub marked_packets: u64,
    /// Packets with payload that entered.
    pub data_packets: u64,
    /// Transport payload of the packets that entered, bytes.
    pub payload_bytes: u64,
    /// Payload that entered again by its TCP sequence numbers, bytes: what Linux counts as
    /// `tcpi_bytes_retrans`. `None` for other protocols, whose numbers are encrypted or absent.
    pub retransmitted_bytes: Option<u64>,
    /// Payload of the other direction that its TCP packets acknowledged, bytes; one more if they
    /// acknowledged a FIN. `None` for other protocols, and before the second acknowledgement.
    pub acknowledged_bytes: Option<u64>,
    /// Time of each packet beyond the shortest that its links allow: what it waited in queues.
    /// Jitter and slower moments of a link with several rates or delays count, too.
    pub queueing: Delays,
    /// The same of the last packet that left; `None` before the first.
    pub queueing_last: Option<Time>,
    pub(super) spin: Spin,
    sequence: Option<Sequence>,
    /// Highest number that its packets acknowledged.
    acknowledged: Option<u32>,
}

/// What was sent of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    /// Number of its SYN, if that was seen.
    initial: Option<u32>,
    /// First number that was not sent yet.
    next: u32,
}

/// What the table needs of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub five: FiveTuple,
    headers: Headers,
}

impl Parsed {
    /// Parses the first bytes of a packet.
    pub fn new(bytes: &[u8]) -> Option<Parsed> {
        let headers = parse(bytes)?;
        let (source, destination, protocol) = if bytes[0] >> 4 == 4 {
            (IpAddr::V4(v4(bytes, 12)), IpAddr::V4(v4(bytes, 16)), bytes[9])
        } else {
            (IpAddr::V6(v6(bytes, 8)), IpAddr::V6(v6(bytes, 24)), bytes[6])
        };
        let ip = usize::from(headers.ip);
        let ports = match headers.kind {
            Kind::Other => (0, 0),
            _ => (get16(bytes, ip), get16(bytes, ip + 2)),
        };
        let source = SocketAddr::new(source, ports.0);
        let destination = SocketAddr::new(destination, ports.1);
        Some(Parsed { five: FiveTuple { protocol, source, destination }, headers })
    }

    /// Whether the packet has Congestion Experienced (RFC 3168).
    pub fn is_marked(&self) -> bool {
        self.headers.ecn == 3
    }
}

fn v4(bytes: &[u8], at: usize) -> Ipv4Addr {
    let mut address = [0; 4];
    address.copy_from_slice(&bytes[at..at + 4]);
    address.into()
}

fn v6(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut address = [0; 16];
    address.copy_from_slice(&bytes[at..at + 16]);
    address.into()
}

impl Flow {
    /// Adds the payload of a packet that entered.
    pub(super) fn take_payload(&mut self, parsed: &Parsed, bytes: &[u8], size: u32, at: Time) {
        let Parsed { headers, five } = parsed;
        let payload = size.saturating_sub(u32::from(headers.all));
        self.data_packets += u64::from(payload > 0);
        self.payload_bytes += u64::from(payload);
        if five.protocol == UDP {
            self.spin.take(bytes.get(usize::from(headers.all)..).unwrap_or_default(), at);
        }
        if !headers.kind.is_tcp() {
            return;
        }
        let ip = usize::from(headers.ip);
        let number = get32(bytes, ip + tcp::SEQUENCE);
        let repeated = self.take_sequence(number, bytes[ip + tcp::FLAGS], payload);
        *self.retransmitted_bytes.get_or_insert(0) += u64::from(repeated);
        self.take_acknowledgement(get32(bytes, ip + tcp::ACKNOWLEDGEMENT), bytes[ip + tcp::FLAGS]);
    }

    /// Counts what a packet acknowledges beyond those before it. The first of a connection
    /// acknowledges its SYN, whose number is where counting begins.
    fn take_acknowledgement(&mut self, number: u32, flags: u8) {
        if flags & tcp::RST != 0 {
            return;
        }
        if flags & tcp::SYN != 0 {
            self.acknowledged = None;
        }
        if flags & tcp::ACK == 0 {
            return;
        }
        let Some(before) = self.acknowledged else {
            self.acknowledged = Some(number);
            return;
        };
        let beyond = number.wrapping_sub(before) as i32;
        if beyond >= 0 {
            self.acknowledged = Some(number);
            *self.acknowledged_bytes.get_or_insert(0) += beyond as u64;
        }
    }

    /// Returns how much of the payload was sent before. SYN and FIN take a number each (RFC 9293,
    /// section 3.4), and are not payload.
    fn take_sequence(&mut self, number: u32, flags: u8, payload: u32) -> u32 {
        let syn = flags & tcp::SYN != 0;
        let start = number.wrapping_add(u32::from(syn));
        let end = start.wrapping_add(payload).wrapping_add(u32::from(flags & tcp::FIN != 0));
        // A reset may have any number.
        if flags & tcp::RST != 0 {
            return 0;
        }
        let known = self.sequence.filter(|known| !syn || known.initial == Some(number));
        let Some(known) = known else {
            // The first packet, or a new connection over the same ports.
            self.sequence = Some(Sequence { initial: syn.then_some(number), next: end });
            return 0;
        };
        // Positive if it begins below what was sent; numbers wrap around.
        let below = known.next.wrapping_sub(start) as i32;
        let next = if end.wrapping_sub(known.next) as i32 > 0 { end } else { known.next };
        self.sequence = Some(Sequence { next, ..known });
        payload.min(below.max(0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ACK: u8 = tcp::ACK;

    fn repeated(packets: &[(u32, u8, u32)]) -> Vec<u32> {
        let mut flow = Flow::default();
        packets
            .iter()
            .map(|(number, flags, len)| flow.take_sequence(*number, *flags, *len))
            .collect()
    }

    /// SYN and FIN take a number and are not payload, also when they are sent again.
    #[test]
    fn syn_and_fin_are_not_payload() {
        let (syn, fin) = (tcp::SYN, ACK | tcp::FIN);
        let sent = [
            (99, syn, 0),
            (99, syn, 0),
            (100, ACK, 0),
            (100, ACK, 50),
            (150, fin, 10),
            (150, fin, 10),
            (160, fin, 0),
            // A keepalive probe of Linux: the number before the next one, without payload.
            (160, ACK, 0),
        ];
        assert_eq!(repeated(&sent), [0, 0, 0, 0, 0, 10, 0, 0]);
    }

    /// A segment that begins with old bytes and ends with new ones counts for the old ones.
    #[test]
    fn only_old_bytes_of_a_segment_are_retransmitted() {
        let sent = [(0, ACK, 100), (50, ACK, 100), (0, ACK, 30), (150, ACK, 10)];
        assert_eq!(repeated(&sent), [0, 50, 30, 0]);
    }

    /// The second connection over the same ports begins with its own numbers; a reset has any.
    #[test]
    fn a_new_connection_over_the_same_ports_repeats_nothing() {
        let sent = [
            (7_000, tcp::SYN, 0),
            (7_001, ACK, 1_000),
            (3, tcp::RST, 0),
            (1_000, tcp::SYN, 0),
            (1_001, ACK, 500),
            (1_001, ACK, 500),
        ];
        assert_eq!(repeated(&sent), [0, 0, 0, 0, 0, 500]);
    }

    /// Counting begins with the acknowledgement of the SYN, goes on across the wrap of the numbers,
    /// and never back; a second connection over the same ports begins anew.
    #[test]
    fn acknowledged_bytes_are_those_after_the_syn() {
        let mut flow = Flow::default();
        let start = u32::MAX - 99;
        let acknowledged = [(0, tcp::SYN), (start, ACK), (start.wrapping_add(200), ACK)];
        acknowledged
            .into_iter()
            .for_each(|(number, flags)| flow.take_acknowledgement(number, flags));
        assert_eq!(flow.acknowledged_bytes, Some(200));
        for (number, flags) in
            [(start, ACK), (7, tcp::RST), (0, tcp::SYN), (1000, ACK), (1500, ACK)]
        {
            flow.take_acknowledgement(number, flags);
        }
        assert_eq!(flow.acknowledged_bytes, Some(700));
    }

    proptest! {
        /// Compared with a set of all bytes that were sent, across the wrap of the numbers.
        #[test]
        fn retransmitted_bytes_are_those_sent_before(
            initial in prop_oneof![Just(u32::MAX - 300), any::<u32>()],
            steps in prop::collection::vec((0_u32..=600, 1_u32..100), 1..60),
        ) {
            let mut flow = Flow::default();
            flow.take_sequence(initial, tcp::SYN, 0);
            // A sender never leaves a gap: it sends old bytes, or goes on.
            let (mut sent, mut total) = (0_u32, 0);
            for (back, len) in steps {
                let start = sent.saturating_sub(back);
                let number = initial.wrapping_add(1).wrapping_add(start);
                let old = (start..start + len).filter(|byte| *byte < sent).count() as u32;
                prop_assert_eq!(flow.take_sequence(number, ACK, len), old);
                sent = sent.max(start + len);
                total += old;
            }
            prop_assert!(total < u32::MAX);
        }
    }
}
