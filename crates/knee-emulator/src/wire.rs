//! Headers before a payload: vnet header, IP, TCP, UDP.

use std::ops::Range;

const VNET_NEEDS_CHECKSUM: u8 = 1;
const VNET_GSO_TCP4: u8 = 1;
const VNET_GSO_TCP6: u8 = 4;
const VNET_GSO_UDP: u8 = 5;
const VNET_GSO_ECN: u8 = 0x80;

/// TCP flags.
pub mod tcp {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const CWR: u8 = 0x80;
    /// Offset of the sequence number in the TCP header.
    pub const SEQUENCE: usize = 4;
    /// Offset of the acknowledged number.
    pub const ACKNOWLEDGEMENT: usize = 8;
    pub const FLAGS: usize = 13;
    pub const CHECKSUM: usize = 16;
}

/// `struct virtio_net_hdr`, in front of every packet of a TUN device with
/// IFF_VNET_HDR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Whether the transport checksum field contains only the sum of the pseudo header.
    pub partial_checksum: bool,
    /// Payload bytes of each packet but the last; zero for a single packet.
    pub segment: u16,
}

impl VnetHeader {
    pub const BYTES: usize = 10;

    pub fn read(bytes: &[u8]) -> VnetHeader {
        let segment = u16::from_ne_bytes([bytes[4], bytes[5]]);
        VnetHeader {
            partial_checksum: bytes[0] & VNET_NEEDS_CHECKSUM != 0,
            segment: if bytes[1] == 0 { 0 } else { segment },
        }
    }

    /// Formats the header for a packet with these headers.
    pub fn write(self, kind: Kind, ip: usize, headers: usize, cwr: bool) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        if self.partial_checksum {
            bytes[0] = VNET_NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&(ip as u16).to_ne_bytes());
            bytes[8..10].copy_from_slice(&(kind.checksum_at() as u16).to_ne_bytes());
        }
        if self.segment > 0 {
            bytes[1] = match kind {
                Kind::Udp => VNET_GSO_UDP,
                _ if kind == Kind::Tcp4 => VNET_GSO_TCP4,
                _ => VNET_GSO_TCP6,
            };
            bytes[1] |= if cwr { VNET_GSO_ECN } else { 0 };
            bytes[2..4].copy_from_slice(&(headers as u16).to_ne_bytes());
            bytes[4..6].copy_from_slice(&self.segment.to_ne_bytes());
        }
        bytes
    }
}

/// Protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over either.
    Udp,
    /// Anything else, including fragments: passed on unchanged.
    Other,
}

impl Kind {
    pub fn is_tcp(self) -> bool {
        matches!(self, Kind::Tcp4 | Kind::Tcp6)
    }

    /// Returns the offset of the checksum in the transport header.
    fn checksum_at(self) -> usize {
        if self == Kind::Udp { 6 } else { tcp::CHECKSUM }
    }
}

/// Parsed headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub kind: Kind,
    /// Bytes of the IP header.
    pub ip: u8,
    /// Bytes of IP and transport header.
    pub all: u8,
    /// ECN field.
    pub ecn: u8,
    /// Hash of addresses, protocol and ports.
    pub flow_hash: u64,
}

/// Parses a packet. Returns `None` if it is not an IP packet, or is multicast, with which the
/// kernel looks for neighbours that do not exist.
pub fn parse(packet: &[u8]) -> Option<Headers> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

fn parse_v4(packet: &[u8]) -> Option<Headers> {
    let ip = usize::from(packet[0] & 15) * 4;
    if packet.len() < ip || ip < 20 || packet[16] >= 224 {
        return None;
    }
    // More fragments, or an offset.
    let fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
    let protocol = if fragment { 0 } else { packet[9] };
    headers(packet, ip, protocol, packet[1] & 3, 12..20)
}

fn parse_v6(packet: &[u8]) -> Option<Headers> {
    if packet.len() < 40 || packet[24] == 0xff {
        return None;
    }
    // Whatever follows an extension header is passed on unchanged.
    headers(packet, 40, packet[6], (packet[1] >> 4) & 3, 8..40)
}

fn headers(
    packet: &[u8],
    ip: usize,
    protocol: u8,
    ecn: u8,
    addresses: Range<usize>,
) -> Option<Headers> {
    let (kind, transport) = match protocol {
        6 if packet.len() >= ip + 20 => {
            let kind = if packet[0] >> 4 == 4 { Kind::Tcp4 } else { Kind::Tcp6 };
            (kind, usize::from(packet[ip + 12] >> 4) * 4)
        }
        17 if packet.len() >= ip + 8 => (Kind::Udp, 8),
        _ => (Kind::Other, 0),
    };
    let all = ip + transport;
    if packet.len() < all {
        return None;
    }
    let mut flow_hash = fnv(&packet[addresses], FNV_START ^ u64::from(protocol));
    if kind != Kind::Other {
        flow_hash = fnv(&packet[ip..ip + 4], flow_hash);
    }
    Some(Headers { kind, ip: ip as u8, all: all as u8, ecn, flow_hash })
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a (Fowler, Noll, Vo).
fn fnv(bytes: &[u8], start: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(start, step)
}

/// Sets the ECN field; for IPv4 the header checksum must be updated.
pub fn set_ecn(header: &mut [u8], ecn: u8) {
    if header[0] >> 4 == 4 {
        header[1] = header[1] & !3 | ecn;
    } else {
        header[1] = header[1] & !0x30 | ecn << 4;
    }
}

/// Fills in lengths and checksums of the IP header, and the pseudo header's sum for a transport
/// checksum that is `partial`.
pub fn complete(header: &mut [u8], kind: Kind, ip: usize, payload: usize, partial: bool) {
    let transport = header.len() - ip + payload;
    if header[0] >> 4 == 4 {
        put16(header, 2, (ip + transport) as u16);
        put16(header, 10, 0);
        let sum = fold(add(&header[..ip], 0));
        put16(header, 10, !sum);
    } else {
        put16(header, 4, (ip - 40 + transport) as u16);
    }
    if kind == Kind::Udp {
        put16(header, ip + 4, transport as u16);
    }
    if partial {
        let (addresses, protocol) =
            if header[0] >> 4 == 4 { (12..20, header[9]) } else { (8..40, header[6]) };
        let sum = add(&header[addresses], u64::from(protocol) + transport as u64);
        put16(header, ip + kind.checksum_at(), fold(sum));
    }
}

/// Adds 16-bit words (RFC 1071).
fn add(bytes: &[u8], start: u64) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
    bytes.chunks(2).map(word).sum::<u64>() + start
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

pub fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worked example of an IPv4 header checksum found in many textbooks: 0xb861.
    #[test]
    fn checksum_of_a_known_header() {
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        complete(&mut header, Kind::Other, 20, 0x73 - 20, false);
        assert_eq!(get16(&header, 10), 0xb861);
        assert_eq!(get16(&header, 2), 0x73);
    }

    /// RFC 3168: the two low bits of the traffic class in both.
    #[test]
    fn ecn_field_of_both_versions() {
        let mut four = [0x45, 0xba];
        set_ecn(&mut four, 3);
        assert_eq!(four, [0x45, 0xbb]);
        // Version 6, traffic class 0xba, flow label beginning with 5.
        let mut six = [0x6b, 0xa5];
        set_ecn(&mut six, 3);
        assert_eq!(six, [0x6b, 0xb5]);
    }

    #[test]
    fn what_is_no_unicast_packet_is_not_carried() {
        let mut group = [0; 40];
        group[0] = 0x60;
        group[24] = 0xff;
        assert_eq!(parse(&group), None);
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0x4f; 20]), None);
        assert_eq!(parse(&[0x10; 40]), None);
    }

    /// Ports of a fragment that is not the first are payload.
    #[test]
    fn fragments_are_passed_on_whole() {
        let mut packet = [0; 40];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[7] = 10;
        assert_eq!(
            parse(&packet).map(|headers| (headers.kind, headers.all)),
            Some((Kind::Other, 20))
        );
        packet[7] = 0;
        packet[32] = 0x50;
        assert_eq!(
            parse(&packet).map(|headers| (headers.kind, headers.all)),
            Some((Kind::Tcp4, 40))
        );
    }
}
