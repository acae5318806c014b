//! Rows about packets: position and content.

use crate::checker::Checker;
use crate::flow::News;
use crate::journey::{Blocks, Packet, Place};
use crate::link::{Ecn, Offered};
use crate::parse::{AckSend, Kind, Reason, Repeat, Seen, Send};
use crate::report::Rule;

impl Checker {
    pub(crate) fn send(&mut self, send: &Send) {
        self.report.data_packets_sent += 1;
        let jitter = self.flows.get(&send.flow).map_or(0, |flow| flow.head.send_jitter);
        let packet = Packet {
            flow: send.flow,
            kind: Kind::Data,
            number: send.number,
            sent_at: self.time,
            payload: send.bytes,
            bytes: None,
            hops: 0,
            place: Place::Between,
            leaves_by: self.time + jitter,
            ecn_capable: send.ecn_capable,
            marked: false,
            blocks: (Blocks::default(), 0),
            data: None,
        };
        self.begin(send.id, packet);
        let (mut first, mut is_new, time) = (None, false, self.time);
        self.check_alive(send.flow);
        self.on_flow(send.flow, |flow, faults| {
            first = flow.first_sent_at();
            is_new = flow.is_new(send.number);
            // A handshake has no payload, and its number does not count.
            if send.repeat != Repeat::Syn {
                flow.send(time, send, faults);
            }
            flow.check_in_flight(send.in_flight, faults);
        });
        let is_first = self.flows.get(&send.flow).is_some_and(|flow| flow.is_first(send.number));
        self.on_sender(send.flow, |sender, time, faults| {
            sender.send(time, send, first, faults);
            // A probe restarts the timeout as well (RFC 8985, section 7.3).
            if is_first || send.repeat == Repeat::Probe {
                sender.liveness.restart(time);
            }
        });
        self.note_waiting(send.flow);
        let connection = self.flows.get(&send.flow).and_then(|flow| flow.head.connection);
        if let (Some(connection), Some(offset)) = (connection, send.offset) {
            let act = |books: &mut crate::connection::Connection, faults: &mut _| {
                books.send(offset, send.bytes, is_new, faults);
            };
            self.on_connection(connection, act);
        }
    }

    pub(crate) fn ack_send(&mut self, ack: &AckSend) {
        let AckSend { flow, id, number, ref blocks, data, .. } = *ack;
        self.report.acks_sent += 1;
        let kept = blocks.len().min(Blocks::default().len());
        let packet = Packet {
            flow,
            kind: Kind::Ack,
            number,
            sent_at: self.time,
            payload: 0,
            bytes: None,
            hops: 0,
            place: Place::Between,
            leaves_by: self.time,
            ecn_capable: false,
            marked: false,
            blocks: (std::array::from_fn(|at| blocks.get(at).copied().unwrap_or_default()), kept),
            data,
        };
        self.begin(id, packet);
        let mut connection = None;
        self.on_flow(flow, |flow, faults| {
            connection = flow.head.connection;
            flow.ack_send(ack, faults);
        });
        if let (Some(connection), Some(data)) = (connection, data) {
            self.on_connection(connection, |books, faults| books.ack_send(data, faults));
        }
    }

    fn begin(&mut self, id: u64, packet: Packet) {
        if let Some(flow) = self.flows.get_mut(&packet.flow) {
            flow.under_way += 1;
        }
        if !self.journeys.begin(id, packet) {
            self.add(Rule::Identity, format!("packet {id} is not numbered above all before it"));
        }
    }

    /// Ends a journey.
    fn end_journey(&mut self, id: u64, packet: &Packet) {
        self.journeys.end(id);
        if let Some(flow) = self.flows.get_mut(&packet.flow) {
            flow.under_way = flow.under_way.saturating_sub(1);
            self.forget_flow(packet.flow);
        }
    }

    pub(crate) fn enter(&mut self, link: usize, seen: &Seen, bytes: u64) {
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
        let Packet { ecn_capable, marked, flow, kind, .. } = packet;
        let (line, time, owner) = (self.line, self.time, (flow, kind));
        let path = self.flows.get(&flow).map(|flow| &self.head.paths[flow.head.path]);
        let tunnel = path.and_then(|path| path.tunnel);
        let offered = Offered { line, time, bytes, owner, tunnel, ecn_capable, marked };
        let mut name = 0;
        self.on_link(link, |link, _, findings| name = link.enter(offered, findings));
        packet.place = Place::Inside { link, name };
        self.journeys.put(seen.id, packet);
    }

    pub(crate) fn leave(&mut self, link: usize, seen: &Seen) {
        let Some((mut packet, name)) = self.inside(link, seen) else { return };
        packet.place = Place::Between;
        let ecn = Ecn { capable: seen.ecn_capable, marked: seen.marked };
        (packet.ecn_capable, packet.marked) = (ecn.capable, ecn.marked);
        self.journeys.put(seen.id, packet);
        self.on_link(link, |link, time, findings| link.leave(time, name, ecn, findings));
    }

    pub(crate) fn drop(&mut self, link: usize, seen: &Seen, reason: Reason) {
        let Some((packet, name)) = self.inside(link, seen) else { return };
        self.end_journey(seen.id, &packet);
        let line = self.line;
        self.on_link(link, |link, time, findings| link.drop((line, time), name, reason, findings));
    }

    /// Returns the packet and its name at the link that it must be in.
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

    pub(crate) fn receive(&mut self, seen: &Seen, old: bool) {
        self.report.data_packets_received += 1;
        let Some(packet) = self.arrive(seen, Kind::Data) else { return };
        self.touch(packet.flow);
        self.on_flow(packet.flow, |flow, faults| {
            if old {
                flow.discard(packet.sent_at, faults);
            } else if packet.payload > 0 {
                flow.receive((packet.number, packet.payload, packet.marked), packet.sent_at);
            } else {
                flow.opened.get_or_insert(packet.sent_at);
            }
        });
        self.end_journey(seen.id, &packet);
    }

    pub(crate) fn ack_receive(&mut self, seen: &Seen, number: u64, in_flight: i128) {
        self.report.acks_received += 1;
        let Some(packet) = self.arrive(seen, Kind::Ack) else { return };
        let (mut news, mut connection, time) = (News::default(), None, self.time);
        let mut opened = None;
        self.check_alive(seen.flow);
        let blocks = &packet.blocks.0[..packet.blocks.1];
        self.on_flow(seen.flow, |flow, faults| {
            news = flow.ack_receive(time, number, blocks, faults);
            flow.check_in_flight(in_flight, faults);
            connection = flow.head.connection;
            opened = flow.opened;
        });
        self.on_sender(seen.flow, |sender, time, _| {
            if let (Some(opened), false) = (opened, sender.liveness.has_measured()) {
                sender.liveness.measure(time - opened);
            }
            if !blocks.is_empty() {
                sender.on_report();
            }
            if let Some(rtt) = news.rtt {
                sender.liveness.measure(rtt);
            }
            if news.progress || news.older {
                sender.liveness.restart(time);
            }
            if news.progress {
                sender.on_progress(time);
            } else if number == 0 {
                sender.on_established();
            }
        });
        self.note_waiting(seen.flow);
        if let (Some(connection), Some(data)) = (connection, packet.data) {
            self.on_connection(connection, |books, _| books.ack_receive(data));
        }
        self.end_journey(seen.id, &packet);
    }

    /// Processes a packet that reached an end that is gone.
    pub(crate) fn discard(&mut self, seen: &Seen) {
        let Some(packet) = self.arrive(seen, seen.kind) else { return };
        if self.flows.get(&packet.flow).is_some_and(|flow| !flow.has_ended) {
            let text = format!("packet {} is discarded, flow {} is there", seen.id, packet.flow);
            self.add(Rule::Ended, text);
        }
        self.end_journey(seen.id, &packet);
    }

    /// Checks a packet that reached its receiver.
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
        Some(packet)
    }

    /// Returns the packet of a row, if it is in flight.
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
        // A flow is known for as long as packets of it are in flight.
        let Some(flow) = self.flows.get(&packet.flow) else { return &[] };
        let path = &self.head.paths[flow.head.path];
        match packet.kind {
            Kind::Data => &path.forward,
            Kind::Ack => &path.reverse,
        }
    }
}
