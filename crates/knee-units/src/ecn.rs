//! Explicit Congestion Notification.

/// ECN codepoint of a packet, with its bits in the IP header (RFC 3168, section 5; RFC 9331 for the
/// current meaning of ECT(1)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: dropped instead of marked.
    #[default]
    NotCapable = 0b00,
    /// ECT(1): a low-latency service (L4S).
    Ect1 = 0b01,
    /// ECT(0): classic.
    Ect0 = 0b10,
    /// Congestion Experienced: marked by the network.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint of the two lowest bits.
    #[inline]
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns the two bits in the IP header.
    #[inline]
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// Returns whether the packet may be marked instead of dropped.
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotCapable
    }

    /// Returns whether the packet was marked.
    #[inline]
    pub fn is_marked(self) -> bool {
        self == Ecn::Ce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3168, figure 1: ECT bit, CE bit.
    #[test]
    fn the_bits_are_those_of_the_ip_header() {
        let figure =
            [(0b00, Ecn::NotCapable), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce)];
        for (bits, codepoint) in figure {
            assert_eq!(Ecn::from_bits(bits), codepoint);
            assert_eq!(Ecn::from_bits(0xfc | bits), codepoint);
            assert_eq!(codepoint.bits(), bits);
            assert_eq!(codepoint.is_capable(), bits != 0);
            assert_eq!(codepoint.is_marked(), bits == 3);
        }
    }
}
