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
    /// Whether the log is used: only then is the data for events computed.
    const WRITES: bool = true;
    /// Writes one event of a connection or subflow; `flow` is its number,
    /// unique in the run.
    fn event(&mut self, now: Time, flow: u32, event: Event<'_>);
}

/// No log, at no cost.
impl PacketLog for () {
    const WRITES: bool = false;
    fn event(&mut self, _: Time, _: u32, _: Event<'_>) {}
}

/// Conditions under which a sender sends a segment.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// Bytes in flight, including the segment.
    pub in_flight: u64,
    /// Current congestion window.
    pub window: u64,
    /// Current pacing rate; `None` if not paced.
    pub pacing: Option<Rate>,
    /// Segments of the burst.
    pub burst: u32,
    /// Whether it is a tail loss probe.
    pub probe: bool,
    /// First byte within the connection, for a subflow's segment.
    pub offset: Option<u64>,
}

/// An expired timer of a sender.
#[derive(Clone, Copy, Debug)]
pub enum Timeout {
    Handshake,
    Probe,
    Retransmission,
}

/// One event of a packet, or of the flow or connection itself.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A plain connection begins, or a subflow of a multipath connection. `of`
    /// is the index of the scenario's flow.
    Open { path: usize, config: &'a Config, connection: Option<u32>, of: u32, send_jitter: Time },
    /// A multipath connection begins.
    OpenConnection { window: u64 },
    /// A sender put a segment on the wire.
    Send { packet: &'a Packet, payload: u16, permission: Permission },
    /// A packet was offered to a link.
    Enter { link: usize, packet: &'a Packet },
    /// A link dropped a packet.
    Drop { link: usize, packet: &'a Packet, reason: DropReason },
    /// A link asked those before it to pause, or to go on; it is no event of a flow.
    Pause { link: usize, pause: bool },
    /// A packet arrived at the far end of a link.
    Leave { link: usize, packet: &'a Packet },
    /// A segment reached its receiver, which discards it if it is `old`.
    Receive { packet: &'a Packet, old: bool },
    /// A packet reached an end that no longer exists.
    Discard { packet: &'a Packet },
    /// The receiver handed segments to its application, or a subflow to its
    /// connection.
    Deliver { first: u32, segments: u32, bytes: u64 },
    /// A multipath connection handed bytes to its application.
    DeliverData { offset: u64, bytes: u64 },
    /// A receiver put an ACK on the wire. `marked` are the payload bytes that it says arrived with
    /// Congestion Experienced.
    AckSend {
        packet: &'a Packet,
        blocks: &'a [(u32, u32)],
        marked: Option<u32>,
        data: Option<DataAck>,
    },
    /// An ACK reached its sender.
    AckReceive { packet: &'a Packet, in_flight: u64 },
    /// A sender's timer expired.
    Timeout(Timeout),
    /// Everything written has been acknowledged.
    Complete { bytes: u64 },
    /// Both ends of a flow or connection have been removed.
    End,
}
