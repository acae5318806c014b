//! Leads each row to the books that it touches.

use crate::flow::{Fault, Flow};
use crate::journey::{Journeys, Packet, Place};
use crate::link::{Finding, Link};
use crate::parse::{Event, Head, Kind, Row, Seen};
use crate::report::{Report, Rule};

/// The state of a check.
pub struct Checker {
    head: Head,
    links: Vec<Link>,
    flows: Vec<Flow>,
    journeys: Journeys,
    report: Report,
    line: u64,
    time: u64,
}

impl Checker {
    pub fn new(head: Head) -> Checker {
        let links = head.links.iter().map(|link| Link::new(link.clone())).collect();
        let flows = head.flows.iter().map(Flow::new).collect();
        Checker {
            head,
            links,
            flows,
            journeys: Journeys::default(),
            report: Report::default(),
            line: 0,
            time: 0,
        }
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Takes up a flow that begins among the rows.
    pub fn open(&mut self, line: &str) -> Result<(), String> {
        self.head.add_flow(line)?;
        self.flows.extend(self.head.flows.last().map(Flow::new));
        Ok(())
    }

    /// Takes up one row.
    pub fn row(&mut self, line: u64, row: &Row) {
        self.line = line;
        self.report.rows += 1;
        self.advance(row.time);
        match &row.event {
            Event::Send { flow, id, number, bytes, in_flight } => {
                self.send(*flow, *id, *number, *bytes, *in_flight);
            }
            Event::Enter { link, packet, bytes } => self.enter(*link, packet, *bytes),
            Event::Drop { link, packet, went_down } => self.drop(*link, packet, *went_down),
            Event::Leave { link, packet } => self.leave(*link, packet),
            Event::Receive { packet } => self.receive(packet),
            Event::Deliver { flow, first, segments, bytes } => {
                self.deliver(*flow, *first, *segments, *bytes);
            }
            Event::AckSend { flow, id, number, blocks } => {
                self.ack_send(*flow, *id, *number, blocks);
            }
            Event::AckReceive { packet, number, in_flight } => {
                self.ack_receive(packet, *number, *in_flight);
            }
        }
    }

    /// Ends the check.
    pub fn finish(mut self, line: u64) -> Report {
        self.line = line;
        self.strand();
        for flow in 0..self.flows.len() {
            self.on_flow(flow, |flow, faults| flow.check_delivered(faults));
        }
        self.report.links = self.links.into_iter().map(Link::count).collect();
        self.report
    }

    fn add(&mut self, rule: Rule, text: String) {
        self.report.add(self.line, self.time, rule, text);
    }

    fn advance(&mut self, time: u64) {
        if time < self.time {
            self.add(Rule::Time, format!("{time} ns after {} ns", self.time));
        }
        if time != self.time {
            self.strand();
        }
        self.time = time;
    }

    fn strand(&mut self) {
        for id in self.journeys.strand() {
            self.add(Rule::Path, format!("before this, packet {id} went nowhere"));
        }
    }

    fn send(&mut self, flow: usize, id: u64, number: u64, bytes: u64, in_flight: i128) {
        self.report.data_packets_sent += 1;
        self.begin(id, flow, Kind::Data, number, bytes);
        self.on_flow(flow, |flow, faults| {
            // A handshake has no payload, and its number counts nothing.
            if bytes > 0 {
                flow.send(number, bytes, faults);
            }
            flow.check_in_flight(in_flight, faults);
        });
    }

    fn ack_send(&mut self, flow: usize, id: u64, number: u64, blocks: &[(u64, u64)]) {
        self.report.acks_sent += 1;
        self.begin(id, flow, Kind::Ack, number, 0);
        self.on_flow(flow, |flow, faults| flow.ack_send(number, blocks, faults));
    }

    fn begin(&mut self, id: u64, flow: usize, kind: Kind, number: u64, payload: u64) {
        let place = Place::Between;
        let packet = Packet { flow, kind, number, payload, bytes: None, hops: 0, place };
        if !self.journeys.begin(id, packet) {
            self.add(Rule::Identity, format!("packet {id} is not numbered above all before it"));
        }
    }

    fn enter(&mut self, link: usize, seen: &Seen, bytes: u64) {
        let Some(mut packet) = self.known(seen, Rule::Path) else { return };
        self.check_unchanged(&packet, seen);
        if bytes < packet.payload {
            let text = format!("{bytes} bytes carry a payload of {}", packet.payload);
            self.add(Rule::Unchanged, text);
        }
        if let Place::Inside { link: other, .. } = packet.place {
            self.add(Rule::Path, format!("packet {} is still inside link {other}", seen.id));
            return;
        }
        if self.route(&packet).get(packet.hops) != Some(&link) {
            let text = format!(
                "packet {} enters link {link}; its way is {:?}, {} of it behind it",
                seen.id,
                self.route(&packet),
                packet.hops
            );
            self.add(Rule::Path, text);
        }
        packet.hops += 1;
        packet.bytes = Some(bytes);
        let name = self.links[link].enter(self.line, self.time, bytes);
        packet.place = Place::Inside { link, name };
        self.journeys.put(seen.id, packet);
    }

    fn leave(&mut self, link: usize, seen: &Seen) {
        let Some((mut packet, name)) = self.inside(link, seen) else { return };
        packet.place = Place::Between;
        self.journeys.put(seen.id, packet);
        self.on_link(link, |link, time, findings| link.leave(time, name, findings));
    }

    fn drop(&mut self, link: usize, seen: &Seen, went_down: bool) {
        let Some((_, name)) = self.inside(link, seen) else { return };
        self.journeys.end(seen.id);
        self.on_link(link, |link, time, findings| link.drop(time, name, went_down, findings));
    }

    /// The packet and its name at the link that it must be in.
    fn inside(&mut self, link: usize, seen: &Seen) -> Option<(Packet, u64)> {
        let packet = self.known(seen, Rule::Conservation)?;
        self.check_unchanged(&packet, seen);
        match packet.place {
            Place::Inside { link: at, name } if at == link => Some((packet, name)),
            _ => {
                let text = format!("packet {} is not inside link {link}", seen.id);
                self.add(Rule::Conservation, text);
                None
            }
        }
    }

    fn receive(&mut self, seen: &Seen) {
        self.report.data_packets_received += 1;
        let Some(packet) = self.arrive(seen, Kind::Data) else { return };
        if packet.payload > 0 {
            self.flows[packet.flow].receive(packet.number);
        }
    }

    fn ack_receive(&mut self, seen: &Seen, number: u64, in_flight: i128) {
        self.report.acks_received += 1;
        if self.arrive(seen, Kind::Ack).is_none() {
            return;
        }
        self.on_flow(seen.flow, |flow, faults| {
            flow.ack_receive(number, faults);
            flow.check_in_flight(in_flight, faults);
        });
    }

    /// Ends the journey of a packet at its receiver.
    fn arrive(&mut self, seen: &Seen, kind: Kind) -> Option<Packet> {
        let packet = self.known(seen, Rule::Path)?;
        self.check_unchanged(&packet, seen);
        if seen.kind != kind {
            self.add(Rule::Unchanged, format!("packet {} arrives as {kind}", seen.id));
        }
        let early = packet.hops < self.route(&packet).len();
        if early || matches!(packet.place, Place::Inside { .. }) {
            let text = format!("packet {} arrives without leaving its last link", seen.id);
            self.add(Rule::Path, text);
        }
        self.journeys.end(seen.id);
        Some(packet)
    }

    fn deliver(&mut self, flow: usize, first: u64, segments: u64, bytes: u64) {
        self.report.segments_delivered += segments;
        self.report.bytes_delivered += bytes;
        self.on_flow(flow, |flow, faults| flow.deliver(first, segments, bytes, faults));
    }

    /// The packet of a row, if it is on its way.
    fn known(&mut self, seen: &Seen, rule: Rule) -> Option<Packet> {
        let packet = self.journeys.get(seen.id);
        if packet.is_none() {
            let past = self.journeys.is_past(seen.id);
            let what = if past { "is no longer on its way" } else { "was never sent" };
            self.add(rule, format!("packet {} {what}", seen.id));
        }
        packet
    }

    fn check_unchanged(&mut self, packet: &Packet, seen: &Seen) {
        let same_bytes = match (packet.bytes, seen.bytes) {
            (Some(before), Some(now)) => before == now,
            _ => true,
        };
        let same_number = seen.number.is_none_or(|number| number == packet.number);
        let same_owner = seen.flow == packet.flow && seen.kind == packet.kind;
        if !(same_bytes && same_number && same_owner) {
            let text = format!(
                "packet {} was {} {} of flow {} with {:?} bytes",
                seen.id, packet.kind, packet.number, packet.flow, packet.bytes
            );
            self.add(Rule::Unchanged, text);
        }
    }

    fn route(&self, packet: &Packet) -> &[usize] {
        let path = &self.head.paths[self.flows[packet.flow].path];
        match packet.kind {
            Kind::Data => &path.forward,
            Kind::Ack => &path.reverse,
        }
    }

    fn on_flow(&mut self, flow: usize, act: impl FnOnce(&mut Flow, &mut Vec<Fault>)) {
        let mut faults = Vec::new();
        act(&mut self.flows[flow], &mut faults);
        for (rule, text) in faults {
            self.add(rule, format!("flow {flow}: {text}"));
        }
    }

    fn on_link(&mut self, link: usize, act: impl FnOnce(&mut Link, u64, &mut Vec<Finding>)) {
        let mut findings = Vec::new();
        act(&mut self.links[link], self.time, &mut findings);
        for Finding { rule, text, place } in findings {
            let (line, time) = place.unwrap_or((self.line, self.time));
            let text = format!("link {link} ({}): {text}", self.head.links[link].name);
            self.report.add(line, time, rule, text);
        }
    }
}
