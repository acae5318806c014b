//! Packets on the simulated links, and their routes.

use knee_transport::multipath::DataAck;
use knee_transport::{Ack, AckDetails, AckRequest, Segment, SegmentKind};
use knee_units::Ecn;

const SYN: u8 = 2;
/// Position of the two bits of the ECN codepoint.
const ECN_SHIFT: u32 = 2;
const ECN: u8 = 0b11 << ECN_SHIFT;
/// On an ACK: ECN-Echo; on a segment: Congestion Window Reduced.
const CONGESTION: u8 = 16;
const RETRANSMISSION: u8 = 32;
/// `extra` names a slot.
const EXTRA: u8 = 64;
const PUSH: u8 = 128;

/// A packet on the wire: a segment or an ACK, 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Slot of its subflow.
    pub flow: u32,
    /// Hash of its subflow.
    hash: u32,
    /// Segment number, or next segment expected.
    pub number: u32,
    timestamp: u32,
    /// For a segment, its payload bytes and above them its ACK request; for an
    /// ACK, the slot of its extra contents.
    extra: u32,
    /// Where it goes next, as an index into the routes.
    pub hop: u32,
    /// Number of the packet within the run.
    pub id: u32,
    size: u16,
    flags: u8,
    /// Whether it is an ACK rather than a segment. A separate byte, in which a
    /// link's ring can represent an empty place.
    ack: bool,
}

impl Packet {
    pub fn segment(
        flow: u32,
        hash: u32,
        hop: u32,
        id: u32,
        size: u32,
        ecn: Ecn,
        segment: &Segment,
    ) -> Packet {
        let mut flags = ecn.bits() << ECN_SHIFT;
        flags |= if segment.kind == SegmentKind::Syn { SYN } else { 0 };
        flags |= if segment.window_reduced { CONGESTION } else { 0 };
        flags |= if segment.retransmission { RETRANSMISSION } else { 0 };
        flags |= if segment.push { PUSH } else { 0 };
        Packet {
            flow,
            hash,
            number: segment.number,
            timestamp: segment.timestamp,
            extra: u32::from(segment.len) | u32::from(segment.ack_request.bits()) << 16,
            hop,
            id,
            size: size as u16,
            flags,
            ack: false,
        }
    }

    pub fn ack(
        flow: u32,
        hash: u32,
        hop: u32,
        id: u32,
        size: u32,
        ack: &Ack,
        stored: Option<u32>,
    ) -> Packet {
        let mut flags = 0;
        flags |= if ack.syn { SYN } else { 0 };
        flags |= if ack.congestion_echo { CONGESTION } else { 0 };
        flags |= if stored.is_some() { EXTRA } else { 0 };
        Packet {
            flow,
            hash,
            number: ack.number,
            timestamp: ack.timestamp_echo,
            extra: stored.unwrap_or(0),
            hop,
            id,
            size: size as u16,
            flags,
            ack: true,
        }
    }

    /// Returns the segment `behind` places after this one in a burst, whose
    /// segments differ only in their number, except that one may be pushed.
    #[inline(always)]
    pub fn of_burst(self, behind: u32, is_pushed: bool) -> Packet {
        Packet {
            number: self.number.wrapping_add(behind),
            id: self.id.wrapping_add(behind),
            flags: self.flags | u8::from(is_pushed) << PUSH.trailing_zeros(),
            ..self
        }
    }

    pub fn to_segment(self) -> Segment {
        Segment {
            kind: if self.flags & SYN != 0 { SegmentKind::Syn } else { SegmentKind::Data },
            number: self.number,
            len: self.extra as u16,
            timestamp: self.timestamp,
            retransmission: self.flags & RETRANSMISSION != 0,
            window_reduced: self.flags & CONGESTION != 0,
            push: self.flags & PUSH != 0,
            ack_request: AckRequest::from_bits((self.extra >> 16) as u16),
        }
    }

    pub fn to_ack(self) -> Ack {
        Ack {
            syn: self.flags & SYN != 0,
            number: self.number,
            timestamp_echo: self.timestamp,
            congestion_echo: self.flags & CONGESTION != 0,
        }
    }

    pub fn is_ack(&self) -> bool {
        self.ack
    }

    /// Returns the slot of an ACK's extra contents.
    pub fn extra(&self) -> Option<u32> {
        (self.flags & EXTRA != 0).then_some(self.extra)
    }
}

impl knee_link::Packet for Packet {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.flags >> ECN_SHIFT)
    }
    fn mark(&mut self) {
        self.flags |= ECN;
    }
    fn clear_ecn(&mut self) {
        self.flags &= !ECN;
    }
    fn flow_hash(&self) -> u64 {
        // The two directions of a flow are different flows for a queue.
        let key = u64::from(self.hash) << 1 | u64::from(self.ack);
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    #[inline(always)]
    fn sender(&self) -> u64 {
        u64::from(self.flow) << 1 | u64::from(self.ack)
    }
}

/// Contents that most ACKs of plain connections do not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckExtra {
    /// SACK blocks and other details.
    pub details: AckDetails,
    /// Whether there are details, or only earlier contents; plain ACKs carry nothing else here.
    pub has_details: bool,
    /// Acknowledgement of a multipath connection's data.
    pub data: DataAck,
}

/// Extras of the ACKs in the network, in slots that are reused.
#[derive(Debug, Default)]
pub struct ExtraStore {
    slots: Vec<AckExtra>,
    free: Vec<u32>,
}

impl ExtraStore {
    /// Returns a slot to fill; it still holds its earlier contents.
    pub fn place(&mut self) -> (u32, &mut AckExtra) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(AckExtra::default());
            self.slots.len() as u32 - 1
        });
        (slot, &mut self.slots[slot as usize])
    }

    /// Returns the contents of a filled slot.
    pub fn get(&self, slot: u32) -> &AckExtra {
        &self.slots[slot as usize]
    }

    /// Frees a slot and returns its contents, valid until the next slot is filled.
    pub fn take(&mut self, slot: u32) -> &AckExtra {
        self.free.push(slot);
        &self.slots[slot as usize]
    }
}

/// Routes of packets: for each direction of each path, a row of links and then
/// the end that gets the packet.
#[derive(Debug, Default)]
pub struct Routes {
    steps: Vec<u32>,
}

/// The next step of a packet.
pub enum Step {
    Link(usize),
    Receiver,
    Sender,
}

const TO_RECEIVER: u32 = u32::MAX;
const TO_SENDER: u32 = u32::MAX - 1;

impl Routes {
    /// Adds a row of links and returns its start.
    pub fn add(&mut self, links: &[usize], to_receiver: bool) -> u32 {
        let begin = self.steps.len() as u32;
        self.steps.extend(links.iter().map(|&link| link as u32));
        self.steps.push(if to_receiver { TO_RECEIVER } else { TO_SENDER });
        begin
    }

    #[inline]
    pub fn step(&self, hop: u32) -> Step {
        match self.steps[hop as usize] {
            TO_RECEIVER => Step::Receiver,
            TO_SENDER => Step::Sender,
            link => Step::Link(link as usize),
        }
    }
}
