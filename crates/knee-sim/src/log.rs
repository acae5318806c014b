//! The packet log: every event of every packet, for checkers that share no
//! code with the simulator.

use crate::packet::Packet;
use knee_link::{DropReason, Packet as _};
use knee_scenario::Scenario;
use knee_units::Time;
use std::io::{self, Write};

/// Receives the events of a run.
pub trait PacketLog {
    /// Writes one event.
    fn event(&mut self, now: Time, event: Event<'_>);
    /// Numbers of flows may be used again when nothing of them is left; a
    /// reader could not tell them apart.
    fn may_reuse_slots(&self) -> bool {
        false
    }
}

/// No log: costs nothing.
impl PacketLog for () {
    #[inline(always)]
    fn event(&mut self, _: Time, _: Event<'_>) {}
    fn may_reuse_slots(&self) -> bool {
        true
    }
}

/// One event of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A connection, or a subflow of one, begins.
    Open { slot: u32, path: usize, mss: u32 },
    /// A sender put a segment on the wire.
    Send { packet: &'a Packet, payload: u16, in_flight: u64 },
    /// A packet was offered to a link.
    Enter { link: usize, packet: &'a Packet },
    /// A link dropped a packet.
    Drop { link: usize, packet: &'a Packet, reason: DropReason },
    /// A packet arrived at the far end of a link.
    Leave { link: usize, packet: &'a Packet },
    /// A segment reached its receiver.
    Receive { packet: &'a Packet },
    /// The receiver handed segments to its application.
    Deliver { flow: u32, first: u32, segments: u32, bytes: u64 },
    /// A receiver put an ACK on the wire.
    AckSend { packet: &'a Packet, blocks: &'a [(u32, u32)] },
    /// An ACK reached its sender.
    AckReceive { packet: &'a Packet, in_flight: u64 },
}

/// Writes the log as CSV; the format is described in `docs/packet-log.md`.
pub struct CsvLog<W: Write> {
    out: W,
    /// The first failure; nothing is written after it.
    failed: Option<io::Error>,
}

impl<W: Write> CsvLog<W> {
    /// Begins a log with the topology.
    pub fn new(mut out: W, scenario: &Scenario) -> io::Result<CsvLog<W>> {
        crate::topology::describe(&mut out, scenario)?;
        writeln!(out, "time_ns,event,link,flow,kind,id,number,bytes,detail")?;
        Ok(CsvLog { out, failed: None })
    }

    /// Ends the log.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.out.flush()
    }

    fn write(&mut self, now: Time, event: Event<'_>) -> io::Result<()> {
        let at = now.as_nanos();
        let out = &mut self.out;
        match event {
            Event::Open { slot, path, mss } => writeln!(out, "# flow,{slot},path={path},mss={mss}"),
            Event::Send { packet: p, payload, in_flight } => writeln!(
                out,
                "{at},send,,{},data,{},{},{payload},{in_flight}",
                p.flow, p.id, p.number
            ),
            Event::Enter { link, packet } => on_link(out, at, "enter", link, packet, ""),
            Event::Leave { link, packet } => on_link(out, at, "leave", link, packet, ""),
            Event::Drop { link, packet, reason } => {
                on_link(out, at, "drop", link, packet, word(reason))
            }
            Event::Receive { packet: p } => {
                writeln!(out, "{at},receive,,{},data,{},{},,", p.flow, p.id, p.number)
            }
            Event::Deliver { flow, first, segments, bytes } => {
                writeln!(out, "{at},deliver,,{flow},,,{first},{bytes},{segments}")
            }
            Event::AckSend { packet: p, blocks } => {
                let blocks: Vec<String> = blocks.iter().map(|(a, b)| format!("{a}-{b}")).collect();
                let blocks = blocks.join(";");
                writeln!(out, "{at},ack_send,,{},ack,{},{},,{blocks}", p.flow, p.id, p.number)
            }
            Event::AckReceive { packet: p, in_flight } => {
                writeln!(out, "{at},ack_receive,,{},ack,{},{},,{in_flight}", p.flow, p.id, p.number)
            }
        }
    }
}

impl<W: Write> PacketLog for CsvLog<W> {
    fn event(&mut self, now: Time, event: Event<'_>) {
        if self.failed.is_none() {
            self.failed = self.write(now, event).err();
        }
    }
}

fn on_link(
    out: &mut impl Write,
    at: u64,
    event: &str,
    link: usize,
    packet: &Packet,
    detail: &str,
) -> io::Result<()> {
    let kind = if packet.is_ack() { "ack" } else { "data" };
    let (flow, id, bytes) = (packet.flow, packet.id, packet.size());
    writeln!(out, "{at},{event},{link},{flow},{kind},{id},{},{bytes},{detail}", packet.number)
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Loss => "loss",
        DropReason::Down => "down",
        DropReason::Policer => "policer",
        DropReason::Queue => "queue",
        DropReason::Aqm => "aqm",
    }
}
