//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// Returns the checksum of a segment or datagram with its pseudo header (RFC 9293, section 3.1; RFC
/// 8200, section 8.1), if its field is zero; zero if the field is right. All parts but the last have
/// an even number of bytes.
pub(crate) fn transport_checksum(from: IpAddr, to: IpAddr, protocol: u8, segment: &[&[u8]]) -> u16 {
    let addresses = |address: IpAddr| match address {
        IpAddr::V4(address) => sum(&address.octets()),
        IpAddr::V6(address) => sum(&address.octets()),
    };
    let len: usize = segment.iter().map(|part| part.len()).sum();
    let pseudo = addresses(from) + addresses(to) + u64::from(protocol) + len as u64;
    folded(pseudo, segment)
}

/// Returns the checksum of an ICMP message (RFC 792), which has no pseudo header, under the same
/// conditions.
pub(crate) fn icmp_checksum(message: &[&[u8]]) -> u16 {
    folded(0, message)
}

fn folded(start: u64, parts: &[&[u8]]) -> u16 {
    let mut sum = parts.iter().fold(start, |total, part| total + sum(part));
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let all: u64 =
        words.by_ref().map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    // An odd byte is padded with zero.
    all + words.remainder().first().map_or(0, |last| u64::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of RFC 1071, section 3; and an echo request of ping(8) as Linux sends it, captured.
    #[test]
    fn checksums_are_those_of_the_rfc_and_of_linux() {
        assert_eq!(icmp_checksum(&[&[0, 1, 0xf2, 3], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(icmp_checksum(&[&[8, 0, 0, 0, 0, 0, 0, 0]]), 0xf7ff);
        assert_eq!(icmp_checksum(&[&[8, 0, 0xf7, 0xff], &[0, 0, 0, 0]]), 0);
    }
}
