//! Packets exchanged between the two ends.

use crate::ack_request::AckRequest;
use knee_units::Ecn;

/// A segment as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// SYN or data.
    pub kind: SegmentKind,
    /// Number of the segment: segments are cut once, when first sent, and
    /// counted from zero; sequence arithmetic is in segments.
    pub number: u32,
    /// Payload bytes; zero for a SYN.
    pub len: u16,
    /// The sender's clock in microseconds, wrapping (TSval, RFC 7323).
    pub timestamp: u32,
    /// Whether the segment was sent before.
    pub retransmission: bool,
    /// Congestion Window Reduced (RFC 3168).
    pub window_reduced: bool,
    /// Whether this is the last of a burst, or of the application's data (PSH,
    /// RFC 9293, section 3.9.1.2), so that nothing follows soon.
    pub push: bool,
    /// The sender's request for the frequency of ACKs.
    pub ack_request: AckRequest,
}

/// Kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Opens the connection.
    Syn,
    /// Carries payload.
    Data,
}

/// An acknowledgement from the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Whether it acknowledges a SYN.
    pub syn: bool,
    /// Number of the next segment expected.
    pub number: u32,
    /// Timestamp echoed (TSecr, RFC 7323).
    pub timestamp_echo: u32,
    /// ECN-Echo (RFC 3168).
    pub congestion_echo: bool,
}

/// Largest number of SACK blocks on an ACK: three with the timestamp option
/// (RFC 2018); the first may be for a duplicate (RFC 2883).
pub const SACK_BLOCKS_MAX: usize = 3;

/// Payload bytes that arrived with each ECN codepoint except Not-ECT, as
/// counted by the AccECN option (draft-ietf-tcpm-accurate-ecn, section 3.2.3);
/// wrapping at 32 bits, whereas the option has 24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    /// With ECT(0).
    pub ect0: u32,
    /// With ECT(1).
    pub ect1: u32,
    /// With Congestion Experienced.
    pub ce: u32,
}

impl EcnBytes {
    /// Counts the bytes of an arrival.
    pub fn count(&mut self, codepoint: Ecn, bytes: u32) {
        let counter = match codepoint {
            Ecn::NotCapable => return,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        };
        *counter = counter.wrapping_add(bytes);
    }
}

/// The part of an ACK that most ACKs do not need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckDetails {
    /// Half-open ranges of segments received out of order, latest first; unused
    /// entries are zero.
    pub sack: [(u32, u32); SACK_BLOCKS_MAX],
    /// Number of ranges used.
    pub sack_count: u8,
    /// A segment that arrived twice (D-SACK, RFC 2883).
    pub duplicate: Option<u32>,
    /// Total payload bytes that arrived with each codepoint.
    pub ecn: EcnBytes,
}

impl AckDetails {
    /// Returns the ranges in use.
    #[inline]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_count)]
    }

    /// Returns the bytes that the SACK option adds to the ACK: two NOPs, kind,
    /// length, and eight for each block (RFC 2018).
    pub fn option_bytes(&self) -> u32 {
        let blocks = u32::from(self.sack_count) + u32::from(self.duplicate.is_some());
        if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }
}
