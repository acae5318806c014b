//! A sender's request for its receiver's ACKs, in sixteen bits that each segment carries.

use crate::config::AckFrequency;
use knee_units::Time;

/// Packets that an ACK may cover, and how long it may be delayed (Ack-Eliciting
/// Threshold and Requested Max Ack Delay of draft-ietf-quic-ack-frequency-10,
/// section 4), each rounded down by at most an eighth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckRequest(u16);

impl AckRequest {
    /// No request.
    pub const NONE: AckRequest = AckRequest(0);

    /// Creates a request for a window of `window` segments and a smoothed RTT.
    pub fn new(frequency: &AckFrequency, window: u64, srtt: Time) -> AckRequest {
        let parts = u64::from(frequency.per_round);
        // RFC 9000, section 13.2.2: one ACK for two packets is the default.
        let packets = (window / parts).max(2);
        let delay = (srtt / parts).max(frequency.min_delay);
        AckRequest(u16::from_be_bytes([short(packets), short(delay.as_micros())]))
    }

    /// Returns the packets that an ACK may cover; `None` without a request.
    pub fn packets(self) -> Option<u32> {
        let packets = long(self.0.to_be_bytes()[0]);
        (packets > 0).then(|| u32::try_from(packets).unwrap_or(u32::MAX))
    }

    /// Returns how long an ACK may be delayed.
    pub fn delay(self) -> Time {
        Time::from_micros(long(self.0.to_be_bytes()[1]))
    }

    /// Returns the sixteen bits; zero for [`NONE`](Self::NONE).
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Creates a request from its sixteen bits.
    pub fn from_bits(bits: u16) -> AckRequest {
        AckRequest(bits)
    }
}

/// Number of bits kept after the leading one.
const MANTISSA: u32 = 3;

/// Encodes a value with five bits of exponent and three of mantissa.
fn short(value: u64) -> u8 {
    let exponent = value.checked_ilog2().unwrap_or(0).saturating_sub(MANTISSA);
    if exponent >= 31 {
        return u8::MAX;
    }
    // Below sixteen the exponent is zero and the value is exact.
    ((u64::from(exponent) << MANTISSA) + (value >> exponent)) as u8
}

fn long(code: u8) -> u64 {
    let (exponent, rest) = (code >> MANTISSA, u64::from(code & 7));
    if exponent == 0 { rest } else { (8 + rest) << (exponent - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_is_lost_at_most() {
        for value in (0..2_000).chain((11..35).map(|bits| (1 << bits) - 1)) {
            let kept = long(short(value));
            assert!(kept <= value && value - kept <= value / 8, "{value} became {kept}");
        }
        assert!((0..16).all(|value| long(short(value)) == value));
        assert_eq!(long(short(u64::MAX)), 15 << 30);
    }

    /// A window of 80 segments and an RTT of 40 ms, with four ACKs per round.
    #[test]
    fn a_part_of_the_window_and_of_the_rtt() {
        let min_delay = Time::from_millis(1);
        let frequency = AckFrequency { per_round: 4, min_delay, reordering: 1 };
        let request = AckRequest::new(&frequency, 80, Time::from_millis(40));
        assert_eq!(request.packets(), Some(20));
        let lost = Time::from_millis(10) - request.delay();
        assert!(lost < Time::from_micros(1_250), "{lost}");
        let least = AckRequest::new(&frequency, 3, Time::from_micros(80));
        assert_eq!(least.packets(), Some(2));
        assert!(least.delay() > Time::from_micros(870));
        assert_eq!(AckRequest::NONE.packets(), None);
    }
}
