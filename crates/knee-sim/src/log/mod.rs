//! The packet log: every event of every packet, for checkers that share no
//! code with the simulator.

mod csv;
mod head;

pub use csv::CsvLog;
pub use head::describe_link;

use crate::packet::Packet;
use knee_link::DropReason;
use knee_transport::Config;
use knee_transport::multipath::DataAck;
use knee_units::{Rate, Time};

/// Receives the events of a run.
pub trait PacketLog {
    /// It wants to be told: what events need is worked out.
    const WRITES: bool = true;
    /// Writes one event of a connection or of a subflow; no other of the run
    /// has its number.
    fn event(&mut self, now: Time, flow: u32, event: Event<'_>);
}

/// No log: costs nothing.
impl PacketLog for () {
    const WRITES: bool = false;
    fn event(&mut self, _: Time, _: u32, _: Event<'_>) {}
}

/// What a sender goes by when it sends a segment.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// Bytes in flight, with the segment.
    pub in_flight: u64,
    /// Congestion window in force.
    pub window: u64,
    /// Pacing rate in force; none: not paced.
    pub pacing: Option<Rate>,
    /// Segments that the burst may have.
    pub burst: u32,
    /// It is a tail loss probe.
    pub probe: bool,
    /// First byte within the connection, of a subflow's segment.
    pub offset: Option<u64>,
}

/// A timer of a sender that ran out.
#[derive(Clone, Copy, Debug)]
pub enum Timeout {
    Handshake,
    Probe,
    Retransmission,
}

/// One event of a packet, or of the flow or connection itself.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A connection over one path begins, or a subflow of one over several.
    /// `of`: the scenario's flow, by its index.
    Open { path: usize, config: &'a Config, connection: Option<u32>, of: u32 },
    /// A connection over several paths begins.
    OpenConnection { window: u64 },
    /// A sender put a segment on the wire.
    Send { packet: &'a Packet, payload: u16, permission: Permission },
    /// A packet was offered to a link.
    Enter { link: usize, packet: &'a Packet },
    /// A link dropped a packet.
    Drop { link: usize, packet: &'a Packet, reason: DropReason },
    /// A packet arrived at the far end of a link.
    Leave { link: usize, packet: &'a Packet },
    /// A segment reached its receiver.
    Receive { packet: &'a Packet },
    /// A packet reached an end that is gone.
    Discard { packet: &'a Packet },
    /// The receiver handed segments to its application, or a subflow to its
    /// connection.
    Deliver { first: u32, segments: u32, bytes: u64 },
    /// A connection over several paths handed bytes to its application.
    DeliverData { offset: u64, bytes: u64 },
    /// A receiver put an ACK on the wire.
    AckSend { packet: &'a Packet, blocks: &'a [(u32, u32)], data: Option<DataAck> },
    /// An ACK reached its sender.
    AckReceive { packet: &'a Packet, in_flight: u64 },
    /// A timer of a sender ran out.
    Timeout(Timeout),
    /// All that was written has been acknowledged.
    Complete { bytes: u64 },
    /// Both ends of a flow or connection are gone.
    End,
}
