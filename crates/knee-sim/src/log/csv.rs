//! The log as CSV; the format is described in `docs/packet-log.md`.

use super::{Event, PacketLog, Permission, Timeout, head};
use crate::packet::Packet;
use knee_link::{DropReason, Packet as _};
use knee_scenario::Scenario;
use knee_transport::multipath::DataAck;
use knee_units::{Ecn, Rate, Time};
use std::io::{self, Write};

/// Writes the log as CSV.
pub struct CsvLog<W: Write> {
    out: W,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl<W: Write> CsvLog<W> {
    /// Starts a log with the topology.
    pub fn new(mut out: W, scenario: &Scenario) -> io::Result<CsvLog<W>> {
        crate::topology::describe(&mut out, scenario)?;
        writeln!(
            out,
            "time_ns,event,link,flow,kind,id,number,bytes,in_flight,window,pacing_bps,burst,\
             offset,ecn,detail"
        )?;
        Ok(CsvLog { out, failed: None })
    }

    /// Finishes the log.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.out.flush()
    }

    fn write(&mut self, now: Time, flow: u32, event: Event<'_>) -> io::Result<()> {
        let at = now.as_nanos();
        let out = &mut self.out;
        match event {
            Event::Open { path, config, connection, of, send_jitter } => {
                head::describe_flow(out, (flow, of), path, config, connection, send_jitter)
            }
            Event::OpenConnection { window } => {
                writeln!(out, "# connection,{flow},receive_window={window}")
            }
            Event::Send { packet, payload, permission } => {
                send(out, (at, flow), packet, payload, &permission)
            }
            Event::Enter { link, packet } => on_link(out, (at, flow), "enter", link, packet, ""),
            Event::Leave { link, packet } => on_link(out, (at, flow), "leave", link, packet, ""),
            Event::Drop { link, packet, reason } => {
                on_link(out, (at, flow), "drop", link, packet, word(reason))
            }
            Event::Pause { link, pause } => {
                let event = if pause { "pause" } else { "resume" };
                writeln!(out, "{at},{event},{link},,,,,,,,,,,,")
            }
            Event::Receive { packet: p, old } => {
                let detail = if old { "old" } else { "" };
                writeln!(out, "{at},receive,,{flow},data,{},{},,,,,,,,{detail}", p.id, p.number)
            }
            Event::Discard { packet: p } => {
                let (kind, id) = (kind(p), p.id);
                writeln!(out, "{at},discard,,{flow},{kind},{id},{},,,,,,,,", p.number)
            }
            Event::Deliver { first, segments, bytes } => {
                writeln!(out, "{at},deliver,,{flow},,,{first},{bytes},,,,,,,{segments}")
            }
            Event::DeliverData { offset, bytes } => {
                writeln!(out, "{at},deliver_data,,{flow},,,,{bytes},,,,,{offset},,")
            }
            Event::AckSend { packet, blocks, marked, data } => {
                ack_send(out, (at, flow), packet, blocks, (marked, data))
            }
            Event::AckReceive { packet: p, in_flight } => {
                let (id, number) = (p.id, p.number);
                writeln!(out, "{at},ack_receive,,{flow},ack,{id},{number},,{in_flight},,,,,,")
            }
            Event::Timeout(what) => {
                let what = match what {
                    Timeout::Handshake => "syn",
                    Timeout::Probe => "probe",
                    Timeout::Retransmission => "rto",
                };
                writeln!(out, "{at},timeout,,{flow},,,,,,,,,,,{what}")
            }
            Event::Complete { bytes } => {
                writeln!(out, "{at},complete,,{flow},,,,{bytes},,,,,,,")
            }
            Event::End => writeln!(out, "{at},end,,{flow},,,,,,,,,,,"),
        }
    }
}

impl<W: Write> PacketLog for CsvLog<W> {
    fn event(&mut self, now: Time, flow: u32, event: Event<'_>) {
        if self.failed.is_none() {
            self.failed = self.write(now, flow, event).err();
        }
    }
}

fn send(
    out: &mut impl Write,
    (at, flow): (u64, u32),
    packet: &Packet,
    payload: u16,
    permission: &Permission,
) -> io::Result<()> {
    let Permission { in_flight, window, pacing, burst, probe, offset } = *permission;
    let (id, number) = (packet.id, packet.number);
    let segment = packet.to_segment();
    let why = match segment.kind {
        knee_transport::SegmentKind::Syn => "syn",
        _ if probe => "probe",
        _ if segment.retransmission => "again",
        _ => "new",
    };
    let pacing = cell(pacing.map(Rate::as_bits_per_second));
    let (offset, ecn) = (cell(offset), ecn(packet));
    writeln!(
        out,
        "{at},send,,{flow},data,{id},{number},{payload},{in_flight},{window},{pacing},{burst},\
         {offset},{ecn},{why}"
    )
}

fn ack_send(
    out: &mut impl Write,
    (at, flow): (u64, u32),
    packet: &Packet,
    blocks: &[(u32, u32)],
    (marked, data): (Option<u32>, Option<DataAck>),
) -> io::Result<()> {
    let marked = cell(marked.map(u64::from));
    let (id, number) = (packet.id, packet.number);
    let window = cell(data.map(|data| data.window_end - data.next));
    let offset = cell(data.map(|data| data.next));
    let blocks: Vec<String> = blocks.iter().map(|(a, b)| format!("{a}-{b}")).collect();
    let blocks = blocks.join(";");
    writeln!(out, "{at},ack_send,,{flow},ack,{id},{number},,,{window},,,{offset},{marked},{blocks}")
}

fn on_link(
    out: &mut impl Write,
    (at, flow): (u64, u32),
    event: &str,
    link: usize,
    packet: &Packet,
    detail: &str,
) -> io::Result<()> {
    let (kind, id, number) = (kind(packet), packet.id, packet.number);
    let (bytes, ecn) = (packet.size(), ecn(packet));
    writeln!(out, "{at},{event},{link},{flow},{kind},{id},{number},{bytes},,,,,,{ecn},{detail}")
}

fn cell(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn kind(packet: &Packet) -> &'static str {
    if packet.is_ack() { "ack" } else { "data" }
}

fn ecn(packet: &Packet) -> &'static str {
    match packet.ecn() {
        Ecn::Ce => "ce",
        Ecn::Ect0 => "ect",
        Ecn::Ect1 => "ect1",
        Ecn::NotCapable => "",
    }
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Loss => "loss",
        DropReason::Down => "down",
        DropReason::Policer => "policer",
        DropReason::Queue => "queue",
        DropReason::Aqm => "aqm",
        DropReason::Breaker => "breaker",
    }
}
