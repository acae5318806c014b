//! Passes each row to the state that it concerns.

use crate::connection::Connection;
use crate::flow::{Fault, Flow};
use crate::journey::Journeys;
use crate::link::{Finding, Link};
use crate::parse::{Event, Head, Opened, Row, Timeout};
use crate::report::{Report, Rule};
use crate::sender::Sender;
use std::collections::BTreeMap;

/// State of a check.
pub struct Checker {
    pub(crate) head: Head,
    pub(crate) links: Vec<Link>,
    /// The links before each link that asks them to pause.
    before: Vec<Vec<usize>>,
    pub(crate) flows: BTreeMap<u64, Flow>,
    pub(crate) senders: BTreeMap<u64, Sender>,
    connections: BTreeMap<u64, Connection>,
    /// Flows and connections that received something at the current time.
    touched: Vec<u64>,
    pub(crate) journeys: Journeys,
    pub(crate) report: Report,
    pub(crate) line: u64,
    pub(crate) time: u64,
    /// Highest number of a flow or connection so far.
    last_number: Option<u64>,
}

impl Checker {
    pub fn new(mut head: Head) -> Checker {
        let before = head.find_pausable();
        let links = head.links.iter().map(|link| Link::new(link.clone())).collect();
        let flows = std::mem::take(&mut head.flows);
        let connections = std::mem::take(&mut head.connections);
        let mut checker = Checker {
            head,
            links,
            before,
            flows: BTreeMap::new(),
            senders: BTreeMap::new(),
            connections: BTreeMap::new(),
            touched: Vec::new(),
            journeys: Journeys::default(),
            report: Report::default(),
            line: 0,
            time: 0,
            last_number: None,
        };
        flows.into_iter().for_each(|(number, flow)| checker.take(Opened::Flow(number, flow)));
        let connections = connections.into_iter();
        connections.for_each(|(number, each)| checker.take(Opened::Connection(number, each)));
        checker
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Adds a flow or connection that begins among the rows.
    pub fn open(&mut self, line: &str) -> Result<(), String> {
        let opened = self.head.open(line)?;
        self.take(opened);
        Ok(())
    }

    fn take(&mut self, opened: Opened) {
        let number = match opened {
            Opened::Flow(number, flow) => {
                let path = &self.head.paths[flow.path];
                let links = path.forward.iter().chain(&path.reverse);
                let delay = links.map(|link| self.head.links[*link].delay_min()).sum();
                self.senders.insert(number, Sender::new(&flow, delay));
                self.flows.insert(number, Flow::new(flow));
                number
            }
            Opened::Connection(number, connection) => {
                self.connections.insert(number, Connection::new(&connection));
                number
            }
        };
        self.last_number = self.last_number.max(Some(number));
    }

    /// Checks one row.
    pub fn row(&mut self, line: u64, row: &Row) -> Result<(), String> {
        self.line = line;
        self.report.rows += 1;
        self.advance(row.time);
        let Some(number) = row.event.flow() else { return self.lead(&row.event) };
        if self.flows.contains_key(&number) || self.connections.contains_key(&number) {
            self.lead(&row.event)
        } else if self.last_number >= Some(number) {
            self.add(Rule::Ended, format!("{number} is long gone"));
            Ok(())
        } else {
            Err(format!("flow {number} is not in the head"))
        }
    }

    fn lead(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Send(send) => self.send(send),
            Event::Enter { link, packet, bytes } => self.enter(*link, packet, *bytes),
            Event::Drop { link, packet, reason } => self.drop(*link, packet, *reason),
            Event::Leave { link, packet } => self.leave(*link, packet),
            Event::Pause { link, pause } => self.pause(*link, *pause),
            Event::Receive { packet, old } => self.receive(packet, *old),
            Event::Discard { packet } => self.discard(packet),
            Event::Deliver { flow, first, segments, bytes } => {
                self.deliver(*flow, (*first, *segments, *bytes));
            }
            Event::DeliverData { connection, offset, bytes } => {
                self.report.data_delivered += bytes;
                self.on_connection(*connection, |connection, faults| {
                    connection.deliver(*offset, *bytes, faults);
                });
            }
            Event::AckSend(ack) => self.ack_send(ack),
            Event::AckReceive { packet, number, in_flight } => {
                self.ack_receive(packet, *number, *in_flight);
            }
            Event::Timeout { flow, what } => self.timeout(*flow, *what),
            Event::Complete { flow, bytes } => self.complete(*flow, *bytes),
            Event::End { flow } => self.end(*flow),
        }
        Ok(())
    }

    /// Ends the check.
    pub fn finish(mut self, line: u64) -> Report {
        self.line = line;
        self.strand(self.time);
        let flows: Vec<u64> = self.senders.keys().copied().collect();
        flows.into_iter().for_each(|flow| self.check_alive(flow));
        for link in 0..self.links.len() {
            self.on_link(link, |link, time, findings| link.finish(time, findings));
        }
        self.report.links = self.links.into_iter().map(Link::count).collect();
        self.report
    }

    pub(crate) fn add(&mut self, rule: Rule, text: String) {
        self.report.add(self.line, self.time, rule, text);
    }

    fn advance(&mut self, time: u64) {
        if time < self.time {
            self.add(Rule::Time, format!("{time} ns after {} ns", self.time));
        }
        if time > self.time {
            self.strand(time);
        }
        self.time = self.time.max(time);
    }

    /// Reports what should have happened before time moves on.
    fn strand(&mut self, time: u64) {
        for id in self.journeys.strand(time) {
            self.add(Rule::Path, format!("before this, packet {id} went nowhere"));
        }
        for number in std::mem::take(&mut self.touched) {
            if self.flows.get(&number).is_some_and(|flow| !flow.has_ended) {
                self.on_flow(number, Flow::check_delivered);
            } else if self.connections.contains_key(&number) {
                self.on_connection(number, Connection::check_delivered);
            }
        }
    }

    pub(crate) fn touch(&mut self, number: u64) {
        if self.touched.last() != Some(&number) {
            self.touched.push(number);
        }
    }

    /// Processes a request to pause or to go on, which takes the delay of each link before to reach
    /// it.
    fn pause(&mut self, link: usize, pause: bool) {
        let line = self.line;
        self.on_link(link, |link, time, findings| link.asks(line, time, pause, findings));
        for first in self.before[link].clone() {
            self.on_link(first, |link, time, _| link.is_asked(time, pause));
        }
    }

    fn deliver(&mut self, flow: u64, segments: (u64, u64, u64)) {
        self.report.segments_delivered += segments.1;
        self.report.bytes_delivered += segments.2;
        let mut data = Vec::new();
        self.on_flow(flow, |flow, faults| data = flow.deliver(segments, faults));
        let connection = self.flows.get(&flow).and_then(|flow| flow.head.connection);
        if let Some(connection) = connection {
            self.touch(connection);
            self.on_connection(connection, |connection, _| {
                data.into_iter().for_each(|(from, until)| connection.receive(from, until));
            });
        }
    }

    fn timeout(&mut self, flow: u64, what: Timeout) {
        self.check_alive(flow);
        let mut first = None;
        if what == Timeout::Retransmission {
            self.on_flow(flow, |flow, _| {
                first = flow.reordered_since();
                flow.on_timeout();
            });
        }
        self.on_sender(flow, |sender, time, faults| sender.on_timeout(time, what, first, faults));
    }

    fn complete(&mut self, number: u64, bytes: u64) {
        if self.flows.contains_key(&number) {
            self.on_flow(number, |flow, faults| flow.complete(bytes, faults));
        } else {
            self.on_connection(number, |connection, faults| connection.complete(bytes, faults));
        }
    }

    fn end(&mut self, number: u64) {
        if self.connections.contains_key(&number) {
            self.on_connection(number, |connection, faults| {
                connection.check_delivered(faults);
                connection.check_complete(faults);
            });
            self.connections.remove(&number);
            return;
        }
        self.on_flow(number, |flow, faults| {
            flow.check_delivered(faults);
            flow.check_complete(faults);
            flow.end();
        });
        self.senders.remove(&number);
        self.forget_flow(number);
    }

    /// Forgets a flow that has ended, once its last packet is gone.
    pub(crate) fn forget_flow(&mut self, number: u64) {
        if self.flows.get(&number).is_some_and(|flow| flow.has_ended && flow.under_way == 0) {
            self.flows.remove(&number);
        }
    }

    /// Checks that something happened in time to what a flow has outstanding.
    pub(crate) fn check_alive(&mut self, number: u64) {
        self.on_sender(number, Sender::check_alive);
    }

    pub(crate) fn note_waiting(&mut self, number: u64) {
        let waiting = self.flows.get(&number).is_some_and(Flow::is_waiting);
        self.on_sender(number, |sender, _, _| sender.liveness.set_waiting(waiting));
    }

    /// Calls `act` with a flow that has not ended.
    pub(crate) fn on_flow(&mut self, number: u64, act: impl FnOnce(&mut Flow, &mut Vec<Fault>)) {
        let mut faults = Vec::new();
        match self.flows.get_mut(&number) {
            Some(flow) if !flow.has_ended => act(flow, &mut faults),
            _ => faults.push((Rule::Ended, "it is gone or never was a flow".to_string())),
        }
        self.add_all("flow", number, faults);
    }

    pub(crate) fn on_sender(
        &mut self,
        number: u64,
        act: impl FnOnce(&mut Sender, u64, &mut Vec<Fault>),
    ) {
        let mut faults = Vec::new();
        if let Some(sender) = self.senders.get_mut(&number) {
            act(sender, self.time, &mut faults);
        }
        self.add_all("flow", number, faults);
    }

    pub(crate) fn on_connection(
        &mut self,
        number: u64,
        act: impl FnOnce(&mut Connection, &mut Vec<Fault>),
    ) {
        let mut faults = Vec::new();
        match self.connections.get_mut(&number) {
            Some(connection) => act(connection, &mut faults),
            None => faults.push((Rule::Ended, "it is gone or never was a connection".to_string())),
        }
        self.add_all("connection", number, faults);
    }

    fn add_all(&mut self, what: &str, number: u64, faults: Vec<Fault>) {
        for (rule, text) in faults {
            self.add(rule, format!("{what} {number}: {text}"));
        }
    }

    pub(crate) fn on_link(
        &mut self,
        link: usize,
        act: impl FnOnce(&mut Link, u64, &mut Vec<Finding>),
    ) {
        let mut findings = Vec::new();
        act(&mut self.links[link], self.time, &mut findings);
        for Finding { rule, text, place } in findings {
            let (line, time) = place.unwrap_or((self.line, self.time));
            let text = format!("link {link} ({}): {text}", self.head.links[link].name);
            self.report.add(line, time, rule, text);
        }
    }
}
