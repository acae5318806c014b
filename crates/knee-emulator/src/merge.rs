//! Merges consecutive packets of a connection before they are written, like a network card's
//! receive offload (GRO): each write runs the host's whole receive path, so high rates require one
//! write for many packets.
//!
//! The rules are those of Linux's `tcp_gro_receive`: sequence numbers without a gap; the same
//! addresses, acknowledgement, window, options (including timestamps), TTL and ECN field; all
//! segments full except the last; no SYN, RST, URG; CWR only at the beginning. Datagrams are merged
//! only if their host sent them as one, because nothing in them marks their boundaries.

use crate::arena::{Arena, Place};
use crate::packet::{HEADERS_MAX, IpPacket};
use crate::wire::{Kind, VnetHeader, complete, get32, tcp};
use knee_units::Time;
use std::io::{self, IoSlice};

/// Maximum IP bytes of a merged packet, the limit of its length field.
const MERGED_BYTES_MAX: usize = 65_535;
/// Maximum number of connections merged at a time; beyond it the oldest is written.
const RUNS_MAX: usize = 32;

/// Destination of packets.
pub trait Sink {
    /// Writes one packet, given in parts. Returns false if it was not accepted.
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<bool>;
}

/// Packets for one device that wait to be merged.
#[derive(Debug, Default)]
pub struct Output {
    runs: Vec<Run>,
    spare: Vec<Run>,
}

/// A packet that was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// When its first packet was due.
    pub due: Time,
    pub packets: u32,
    /// Whether the host did not accept it.
    pub refused: bool,
}

/// Consecutive packets of one connection.
#[derive(Debug)]
struct Run {
    header: [u8; HEADERS_MAX],
    first: IpPacket,
    /// Last packet that was merged.
    latest: IpPacket,
    /// Pieces of payload: position, bytes, packets.
    pieces: Vec<(Place, usize, u32)>,
    payload: usize,
    packets: u32,
    /// Whether nothing may follow.
    closed: bool,
}

impl Output {
    /// Adds a packet, and writes what cannot be merged with it.
    pub fn push(
        &mut self,
        packet: IpPacket,
        arena: &mut Arena,
        sink: &impl Sink,
        report: &mut impl FnMut(Written),
    ) -> io::Result<()> {
        let hash = packet.headers.flow_hash;
        if let Some(at) = self.runs.iter().position(|run| run.first.headers.flow_hash == hash) {
            if self.runs[at].join(&packet, arena) {
                return Ok(());
            }
            self.write(at, arena, sink, report)?;
        } else if self.runs.len() == RUNS_MAX {
            self.write(0, arena, sink, report)?;
        }
        let run = match self.spare.pop() {
            Some(spare) => spare.begin(packet, arena),
            None => Run::new(packet).begin(packet, arena),
        };
        self.runs.push(run);
        Ok(())
    }

    /// Writes everything that waits.
    pub fn flush(
        &mut self,
        arena: &mut Arena,
        sink: &impl Sink,
        report: &mut impl FnMut(Written),
    ) -> io::Result<()> {
        while !self.runs.is_empty() {
            self.write(0, arena, sink, report)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        at: usize,
        arena: &mut Arena,
        sink: &impl Sink,
        report: &mut impl FnMut(Written),
    ) -> io::Result<()> {
        let mut run = self.runs.remove(at);
        let written = run.write(arena, sink);
        for (place, _, packets) in run.pieces.drain(..) {
            arena.release(place.chunk, packets);
        }
        let report_run =
            |taken: bool| Written { due: run.first.due, packets: run.packets, refused: !taken };
        let outcome = written.map(|taken| report(report_run(taken)));
        self.spare.push(run);
        outcome
    }
}

impl Run {
    fn new(packet: IpPacket) -> Run {
        Run {
            header: [0; HEADERS_MAX],
            first: packet,
            latest: packet,
            pieces: Vec::with_capacity(64),
            payload: 0,
            packets: 0,
            closed: false,
        }
    }

    fn begin(mut self, packet: IpPacket, arena: &Arena) -> Run {
        packet.write_headers(arena, &mut self.header);
        self.first = packet;
        self.latest = packet;
        self.payload = usize::from(packet.payload_len);
        self.packets = 1;
        self.pieces.clear();
        self.pieces.push((payload_of(&packet), self.payload, 1));
        let flags = self.flags();
        let never = tcp::FIN | tcp::SYN | tcp::RST | tcp::PSH | tcp::URG;
        self.closed = packet.headers.kind == Kind::Other
            || packet.payload_len == 0
            || !packet.partial_checksum
            || flags & never != 0;
        self
    }

    fn flags(&self) -> u8 {
        let at = usize::from(self.first.headers.ip) + tcp::FLAGS;
        if self.first.headers.kind.is_tcp() { self.header[at] } else { 0 }
    }

    /// Appends the packet if the rules allow it.
    fn join(&mut self, packet: &IpPacket, arena: &Arena) -> bool {
        let len = usize::from(packet.payload_len);
        let all = usize::from(self.first.headers.all);
        let fits = !self.closed
            && len > 0
            && len <= usize::from(self.first.payload_len)
            && all + self.payload + len <= MERGED_BYTES_MAX
            && packet.headers == self.first.headers
            && packet.partial_checksum;
        if !fits {
            return false;
        }
        let flags = if self.latest.precedes(packet) {
            packet.flags(arena)
        } else if packet.headers.kind == Kind::Udp {
            return false;
        } else {
            let mut header = [0; HEADERS_MAX];
            packet.write_headers(arena, &mut header);
            if !self.follows(&header[..all]) {
                return false;
            }
            header[usize::from(self.first.headers.ip) + tcp::FLAGS]
        };
        let ends = flags & (tcp::PSH | tcp::FIN);
        if ends != 0 {
            self.header[usize::from(self.first.headers.ip) + tcp::FLAGS] |= ends;
        }
        self.closed = len < usize::from(self.first.payload_len) || ends != 0;
        self.append(packet, len);
        true
    }

    /// Returns whether a packet with this header continues the run.
    fn follows(&self, header: &[u8]) -> bool {
        let ip = usize::from(self.first.headers.ip);
        let sequence = get32(&self.header, ip + tcp::SEQUENCE).wrapping_add(self.payload as u32);
        let ours = &self.header[..header.len()];
        let lasting = !(tcp::PSH | tcp::FIN | tcp::CWR);
        let (flags, our_flags) = (header[ip + tcp::FLAGS], ours[ip + tcp::FLAGS]);
        get32(header, ip + tcp::SEQUENCE) == sequence
            && flags & tcp::CWR == 0
            && flags & lasting == our_flags & lasting
            && same_connection(ours, header, ip)
    }

    fn append(&mut self, packet: &IpPacket, len: usize) {
        let place = payload_of(packet);
        match self.pieces.last_mut() {
            Some((last, bytes, packets))
                if last.chunk == place.chunk && last.start + *bytes as u32 == place.start =>
            {
                *bytes += len;
                *packets += 1;
            }
            _ => self.pieces.push((place, len, 1)),
        }
        self.payload += len;
        self.packets += 1;
        self.latest = *packet;
    }

    fn write(&mut self, arena: &Arena, sink: &impl Sink) -> io::Result<bool> {
        let headers = self.first.headers;
        let (all, ip) = (usize::from(headers.all), usize::from(headers.ip));
        let segment = if self.packets > 1 { self.first.payload_len } else { 0 };
        let cwr = self.flags() & tcp::CWR != 0;
        let partial = self.first.partial_checksum && headers.kind != Kind::Other;
        let vnet = VnetHeader { partial_checksum: partial, segment };
        let vnet = vnet.write(headers.kind, ip, all, cwr);
        let header = &mut self.header[..all];
        complete(header, headers.kind, ip, self.payload, partial);
        let mut parts = Vec::with_capacity(self.pieces.len() + 2);
        parts.push(IoSlice::new(&vnet));
        parts.push(IoSlice::new(header));
        let pieces = self.pieces.iter();
        parts.extend(pieces.map(|(place, len, _)| IoSlice::new(arena.bytes(*place, *len))));
        sink.write(&parts)
    }
}

fn payload_of(packet: &IpPacket) -> Place {
    Place { chunk: packet.template.chunk, start: packet.payload }
}

/// Returns whether two TCP headers differ only where segments of one super-packet may: length,
/// identification and checksum of IP; sequence number, flags and checksum of TCP.
fn same_connection(one: &[u8], other: &[u8], ip: usize) -> bool {
    let alike = |from: usize, to: usize| one[from..to] == other[from..to];
    let addresses = if one[0] >> 4 == 4 {
        alike(0, 2) && alike(6, 10) && alike(12, ip)
    } else {
        alike(0, 4) && alike(6, ip)
    };
    addresses
        && alike(ip, ip + tcp::SEQUENCE)
        && alike(ip + 8, ip + tcp::FLAGS)
        && alike(ip + tcp::FLAGS + 1, ip + tcp::CHECKSUM)
        && alike(ip + tcp::CHECKSUM + 2, one.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::split;
    use proptest::prelude::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Written(RefCell<Vec<Vec<u8>>>);

    impl Sink for Written {
        fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<bool> {
            let bytes = parts.iter().flat_map(|part| part.iter().copied());
            self.0.borrow_mut().push(bytes.collect());
            Ok(true)
        }
    }

    const VNET: usize = VnetHeader::BYTES;
    const MSS: usize = 1448;
    /// Length of the headers of IPv4 and TCP with timestamps.
    const HEADERS: usize = 52;

    /// Makes a super-packet like the kernel's by hand.
    fn super_packet(sequence: u32, timestamp: u32, flags: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; VNET + HEADERS];
        bytes[0] = 1;
        if payload > MSS {
            bytes[1] = if flags & tcp::CWR == 0 { 1 } else { 0x81 };
            bytes[2..4].copy_from_slice(&(HEADERS as u16).to_ne_bytes());
            bytes[4..6].copy_from_slice(&(MSS as u16).to_ne_bytes());
        }
        bytes[6..8].copy_from_slice(&20_u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let header = &mut bytes[VNET..];
        header[..10].copy_from_slice(&[0x45, 2, 0, 0, 0x12, 0x34, 0x40, 0, 64, 6]);
        header[12..20].copy_from_slice(&[10, 64, 0, 1, 10, 64, 0, 2]);
        header[20..24].copy_from_slice(&[0x80, 0x01, 0x27, 0x10]);
        header[24..28].copy_from_slice(&sequence.to_be_bytes());
        header[32..34].copy_from_slice(&[0x80, flags]);
        header[40..44].copy_from_slice(&[1, 1, 8, 10]);
        header[44..48].copy_from_slice(&timestamp.to_be_bytes());
        complete(header, Kind::Tcp4, 20, payload, true);
        bytes.extend((0..payload).map(|at| ((sequence as usize + at) * 7 % 251) as u8));
        bytes
    }

    /// Reads super-packets, passes on the packets selected by `kept`, and returns what is written.
    fn pass(reads: &[Vec<u8>], kept: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
        let (mut arena, mut output, sink) =
            (Arena::default(), Output::default(), Written::default());
        let mut number = 0;
        for bytes in reads {
            arena.room()[..bytes.len()].copy_from_slice(bytes);
            let place = arena.keep(bytes.len());
            let mut packets = split(&mut arena, place, bytes.len(), 0).unwrap();
            while let Some(packet) = packets.next(&mut arena) {
                if kept(number) {
                    output.push(packet, &mut arena, &sink, &mut |_| {}).unwrap();
                } else {
                    arena.release(packet.template.chunk, 1);
                }
                number += 1;
            }
        }
        output.flush(&mut arena, &sink, &mut |_| {}).unwrap();
        sink.0.into_inner()
    }

    /// Returns sequence number and payload.
    fn content(written: &[u8]) -> (u32, &[u8]) {
        (get32(written, VNET + 24), &written[VNET + HEADERS..])
    }

    proptest! {
        /// Without changes on the way, the output is the input.
        #[test]
        fn a_whole_super_packet_is_restored(
            sequence: u32,
            packets in 1_usize..44,
            rest in 1_usize..=MSS,
            flags in prop::sample::select(vec![0x10_u8, 0x18, 0x90, 0x11]),
        ) {
            let original = super_packet(sequence, 7, flags, (packets - 1) * MSS + rest);
            prop_assert_eq!(pass(std::slice::from_ref(&original), |_| true), vec![original]);
        }

        /// Whatever is lost, the rest arrives, each byte once, in order.
        #[test]
        fn bytes_are_conserved(lost in prop::collection::vec(any::<bool>(), 30)) {
            let reads = [super_packet(5, 7, 0x10, 10 * MSS), super_packet(5 + 10 * MSS as u32, 7, 0x10, 20 * MSS)];
            let written = pass(&reads, |number| !lost[number]);
            let mut expected = Vec::new();
            let stream: Vec<u8> = reads.iter().flat_map(|read| read[VNET + HEADERS..].to_vec()).collect();
            for (number, lost) in lost.iter().enumerate() {
                if !lost {
                    expected.extend_from_slice(&stream[number * MSS..(number + 1) * MSS]);
                }
            }
            let mut arrived = Vec::new();
            for packet in &written {
                let (sequence, payload) = content(packet);
                let at = (sequence - 5) as usize;
                prop_assert_eq!(payload, &stream[at..at + payload.len()]);
                arrived.extend_from_slice(payload);
            }
            prop_assert_eq!(arrived, expected);
        }
    }

    #[test]
    fn neighbours_of_two_super_packets_are_joined() {
        let reads =
            [super_packet(0, 7, 0x10, 2 * MSS), super_packet(2 * MSS as u32, 7, 0x18, 2 * MSS)];
        let written = pass(&reads, |_| true);
        assert_eq!(written, [super_packet(0, 7, 0x18, 4 * MSS)]);
    }

    /// A different timestamp, a gap, a push in between, more than 64 kB: each begins a new packet.
    #[test]
    fn what_the_rules_forbid_is_not_joined() {
        let second = 2 * MSS as u32;
        let other_time =
            [super_packet(0, 7, 0x10, 2 * MSS), super_packet(second, 8, 0x10, 2 * MSS)];
        assert_eq!(pass(&other_time, |_| true), other_time);
        let gap = [super_packet(0, 7, 0x10, 2 * MSS), super_packet(second + 1, 7, 0x10, 2 * MSS)];
        assert_eq!(pass(&gap, |_| true), gap);
        let push = [super_packet(0, 7, 0x18, 2 * MSS), super_packet(second, 7, 0x10, 2 * MSS)];
        assert_eq!(pass(&push, |_| true), push);
        let long =
            [super_packet(0, 7, 0x10, 40 * MSS), super_packet(40 * MSS as u32, 7, 0x10, 40 * MSS)];
        let written = pass(&long, |_| true);
        assert!(written.len() == 2 && written.iter().all(|packet| packet.len() <= VNET + 65_535));
    }

    /// Datagrams of 1000 bytes over IPv4 that were sent in one call.
    fn datagrams(bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; VNET + 28];
        packet[0] = 1;
        packet[1] = 5;
        packet[2..4].copy_from_slice(&28_u16.to_ne_bytes());
        packet[4..6].copy_from_slice(&1000_u16.to_ne_bytes());
        packet[6..8].copy_from_slice(&20_u16.to_ne_bytes());
        packet[8..10].copy_from_slice(&6_u16.to_ne_bytes());
        let header = &mut packet[VNET..];
        header[..10].copy_from_slice(&[0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, 17]);
        header[12..20].copy_from_slice(&[10, 64, 0, 1, 10, 64, 0, 2]);
        header[20..24].copy_from_slice(&[0x80, 0x01, 0x23, 0x28]);
        complete(header, Kind::Udp, 20, bytes, true);
        packet.extend((0..bytes).map(|at| (at % 251) as u8));
        packet
    }

    /// Boundaries of datagrams are preserved: those of one call stay together, those of two calls
    /// are not merged.
    #[test]
    fn datagrams_keep_their_bounds() {
        let reads = [datagrams(2500), datagrams(3000)];
        assert_eq!(pass(&reads, |_| true), reads);
        let without_second = pass(&reads[1..], |number| number != 1);
        let lengths: Vec<usize> = without_second.iter().map(|one| one.len() - VNET - 28).collect();
        assert_eq!(lengths, [1000, 1000]);
        assert!(without_second.iter().all(|one| one[1] == 0));
    }

    /// A packet that was marked on its way stays separate, with its mark.
    #[test]
    fn a_mark_is_kept() {
        use knee_link::Packet as _;
        let bytes = super_packet(0, 7, 0x10, 3 * MSS);
        let (mut arena, mut output, sink) =
            (Arena::default(), Output::default(), Written::default());
        arena.room()[..bytes.len()].copy_from_slice(&bytes);
        let place = arena.keep(bytes.len());
        let mut packets = split(&mut arena, place, bytes.len(), 0).unwrap();
        let mut number = 0;
        while let Some(mut packet) = packets.next(&mut arena) {
            if number == 1 {
                packet.mark();
            }
            number += 1;
            output.push(packet, &mut arena, &sink, &mut |_| {}).unwrap();
        }
        output.flush(&mut arena, &sink, &mut |_| {}).unwrap();
        let codepoints: Vec<u8> =
            sink.0.borrow().iter().map(|packet| packet[VNET + 1] & 3).collect();
        assert_eq!(codepoints, [2, 3, 2]);
    }
}
