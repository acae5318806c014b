//! An application, its two hosts and its connections.

use super::QuicError;
use super::records::Counted;
use super::settings::FlowSettings;
use crate::{BundleId, Host, HostEvent, HostSettings, KeyPair, Room, Socket};
use knee_bundle::{Bundle, Class, Event, StreamId};
use knee_host::HostError;
use knee_scenario::{ControllerStreams, Flow, Scenario, application_stream};
use knee_testbed::{End, Family, Hosts, TestbedError, address};
use knee_units::Time;
use knee_workload::{Action, Application};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Port of flow 0 at either end; flow `n` has this port plus `n`.
const PORT: u16 = 10_000;
/// Length of a request, which contains the number of bytes wanted. Its real size is not modelled,
/// as on the other grounds.
const REQUEST_BYTES: usize = 8;
/// Maximum bytes per write.
const GIVE_BYTES: usize = 1 << 16;

/// Both ends of a connection.
#[derive(Debug)]
pub struct Exchange {
    pub number: u32,
    pub id: BundleId,
    pub started: Time,
    stream: StreamId,
    requests: VecDeque<u64>,
    /// Bytes of an incomplete request.
    partial: Vec<u8>,
    owed: u64,
    /// Bytes requested until a stop cut some off, if it did.
    cut: Option<u64>,
    pub asked: u64,
    pub given: u64,
    pub delivered: u64,
    closing: bool,
    ended: bool,
    /// Whether everything was acknowledged, including the end.
    pub over: bool,
    pub counted: Counted,
}

impl Exchange {
    /// Returns the bytes requested, also if a stop cut some off.
    pub fn size(&self) -> u64 {
        self.cut.unwrap_or(self.asked)
    }

    fn is_given(&self) -> bool {
        self.closing && self.given == self.asked
    }
}

/// A running application.
pub struct RunningFlow<'a> {
    pub index: usize,
    pub plan: &'a Flow,
    pub settings: FlowSettings,
    pub application: Box<dyn Application>,
    /// Whether the receiving end opens connections and sends requests.
    pub fetches: bool,
    pub transient: bool,
    /// The opening host, and the accepting one.
    hosts: [Host; 2],
    sockets: [Vec<Socket>; 2],
    pub live: Vec<Exchange>,
    /// Counts of forgotten connections.
    pub gone: Counted,
    pub delivered: u64,
    pub started: bool,
    pub stopped: bool,
    pub completed: Option<Time>,
}

impl<'a> RunningFlow<'a> {
    pub fn new(
        scenario: &'a Scenario,
        hosts: &Hosts,
        index: usize,
        settings: FlowSettings,
    ) -> Result<RunningFlow<'a>, QuicError> {
        let plan = &scenario.flows[index];
        let properties = plan.workload.properties();
        let fetches = !properties.pushes;
        let defect = |error: &dyn std::fmt::Display| QuicError::Flow {
            flow: settings.label.clone(),
            problem: error.to_string(),
        };
        let keys = [KeyPair::generate(), KeyPair::generate()];
        let [ours, theirs] = keys;
        let keys = [ours.map_err(|e| defect(&e))?, theirs.map_err(|e| defect(&e))?];
        #[expect(clippy::disallowed_methods, reason = "QUIC counts from it; Knee's clock does not")]
        let start = Instant::now();
        let host = |end: usize| {
            let streams = streams(scenario, plan, end == usize::from(fetches));
            let settings = HostSettings { is_server: end == 1, ..settings.host.clone() };
            Host::with_streams(settings, &keys[end], &[keys[1 - end].public()], start, &streams)
                .map_err(|e| defect(&e))
        };
        let socket = |end: usize| -> Result<Vec<Socket>, TestbedError> {
            let (namespace, end) = place(hosts, end, fetches);
            let bind = |path: &usize| {
                let call = |source| HostError::call("open a UDP socket", source);
                let socket =
                    namespace.within(|| UdpSocket::bind(at(*path, end, index)).map_err(call))?;
                Socket::new(socket).map_err(call)
            };
            Ok(plan.paths.iter().map(bind).collect::<Result<_, _>>()?)
        };
        Ok(RunningFlow {
            index,
            plan,
            application: knee_workload::build(
                &plan.workload,
                application_stream(scenario.seed, plan),
            ),
            fetches,
            transient: properties.transient,
            hosts: [host(0)?, host(1)?],
            sockets: [socket(0)?, socket(1)?],
            live: Vec::new(),
            gone: Counted::new(plan.paths.len()),
            delivered: 0,
            started: false,
            stopped: false,
            completed: None,
            settings,
        })
    }

    /// Returns the index of the host that sends the data.
    fn sending(&self) -> usize {
        usize::from(self.fetches)
    }

    pub fn carry_out(&mut self, action: Action, now: Time) -> Result<(), QuicError> {
        match action {
            Action::Open { connection } => self.open(connection, now)?,
            Action::Push { connection, bytes } => {
                let exchange = self.exchange(connection);
                exchange.asked = exchange.asked.saturating_add(bytes);
                exchange.owed = exchange.owed.saturating_add(bytes);
            }
            Action::Request { connection, bytes } => {
                let exchange = self.exchange(connection);
                exchange.asked += bytes;
                exchange.requests.push_back(bytes);
            }
            Action::Close { connection } => self.exchange(connection).closing = true,
        }
        Ok(())
    }

    #[expect(clippy::expect_used, reason = "a defect of knee-workload")]
    fn exchange(&mut self, number: u32) -> &mut Exchange {
        let found = self.live.iter_mut().rev().find(|exchange| exchange.number == number);
        found.expect("an application speaks only of connections that it opened")
    }

    fn open(&mut self, number: u32, now: Time) -> Result<(), QuicError> {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let far = if self.fetches { End::Sender } else { End::Receiver };
        let to: Vec<(usize, SocketAddr, u8)> = self
            .plan
            .paths
            .iter()
            .enumerate()
            .map(|(place, path)| (place, at(*path, far, self.index), self.settings.costs[place]))
            .collect();
        let broken =
            |problem: String| QuicError::Flow { flow: self.settings.label.clone(), problem };
        self.hosts[0].open(now, id, &to).map_err(|error| broken(error.to_string()))?;
        let stream = self.hosts[0].bundle(&id).and_then(|bundle| bundle.open(Class::Normal));
        let stream = stream.ok_or_else(|| broken("a bundle takes no stream".to_owned()))?;
        self.live.push(Exchange {
            number,
            id,
            started: now,
            stream,
            requests: VecDeque::new(),
            partial: Vec::new(),
            owed: 0,
            cut: None,
            asked: 0,
            given: 0,
            delivered: 0,
            closing: false,
            ended: false,
            over: false,
            counted: Counted::new(self.plan.paths.len()),
        });
        Ok(())
    }

    /// Stops the flow: data that was not written yet is dropped.
    pub fn stop(&mut self) {
        for exchange in &mut self.live {
            exchange.requests.clear();
            if exchange.given < exchange.asked {
                exchange.cut = Some(exchange.asked);
            }
            (exchange.owed, exchange.asked, exchange.closing) = (0, exchange.given, true);
        }
    }

    /// Receives packets at both ends.
    pub fn receive(&mut self, now: Time, room: &mut Room) -> Result<(), QuicError> {
        for (host, sockets) in self.hosts.iter_mut().zip(&self.sockets) {
            for (path, socket) in sockets.iter().enumerate() {
                let take = |from, packet: &[u8]| host.on_packet(now, path, from, packet);
                // One batch per turn: sending must not wait until everything is received.
                socket
                    .receive(room, take)
                    .map_err(|source| QuicError::socket(&self.settings.label, &source))?;
            }
        }
        Ok(())
    }

    /// Lets both hosts do what is due.
    pub fn work(&mut self, now: Time) -> Result<(), QuicError> {
        for end in 0..2 {
            let (sockets, mut failed) = (&self.sockets[end], None);
            self.hosts[end].work(now, |path, to, bytes, packet| {
                if let Err(error) = sockets[path].send(to, bytes, packet) {
                    failed = Some(error);
                }
            });
            if let Some(error) = failed {
                return Err(QuicError::socket(&self.settings.label, &error));
            }
            while let Some(event) = self.hosts[end].poll_event() {
                let problem = match event {
                    HostEvent::Accepted(..)
                    | HostEvent::Joined(..)
                    | HostEvent::Hoarded(_)
                    | HostEvent::Ended(_) => continue,
                    HostEvent::Lost(place, _) if self.is_over(place.map(|(id, _)| id)) => continue,
                    HostEvent::Lost(_, reason) | HostEvent::Refused(.., reason) => reason,
                    HostEvent::Broken(_, violation) => violation.to_string(),
                };
                return Err(QuicError::Flow { flow: self.settings.label.clone(), problem });
            }
        }
        Ok(())
    }

    /// Returns whether a connection was closed on purpose.
    fn is_over(&self, id: Option<BundleId>) -> bool {
        let live = self.live.iter().find(|exchange| Some(exchange.id) == id);
        live.is_none_or(|exchange| exchange.over)
    }

    /// Writes data and requests, and reads; adds connection and bytes of what was delivered to
    /// `came`.
    pub fn serve(&mut self, payload: &[u8], came: &mut Vec<(u32, u64)>) {
        let (sending, receiving) = (self.sending(), 1 - self.sending());
        let fetches = self.fetches;
        for exchange in &mut self.live {
            if let Some(bundle) = self.hosts[1].bundle(&exchange.id) {
                while let Some(event) = bundle.poll_event() {
                    if let Event::Opened(stream) = event
                        && !fetches
                    {
                        bundle.finish(stream);
                    }
                }
            }
            if let Some(bundle) = self.hosts[0].bundle(&exchange.id) {
                while bundle.poll_event().is_some() {}
                while let Some(wanted) = exchange.requests.front() {
                    if bundle.write(exchange.stream, &wanted.to_be_bytes()) < REQUEST_BYTES {
                        break;
                    }
                    exchange.requests.pop_front();
                }
                if fetches && exchange.closing && exchange.requests.is_empty() {
                    bundle.finish(exchange.stream);
                }
            }
            if let Some(bundle) = self.hosts[sending].bundle(&exchange.id) {
                give(bundle, exchange, payload, fetches);
            }
            if let Some(bundle) = self.hosts[receiving].bundle(&exchange.id) {
                let mut bytes = 0;
                while let Some(read) = bundle.read(exchange.stream, usize::MAX) {
                    bytes += read.len() as u64;
                }
                if bytes > 0 {
                    exchange.delivered += bytes;
                    self.delivered += bytes;
                    came.push((exchange.number, bytes));
                }
            }
        }
    }

    /// Returns the connections that have been acknowledged to their end since the last call.
    pub fn ended(&mut self) -> Vec<u32> {
        let sending = self.sending();
        let mut over = Vec::new();
        for exchange in &mut self.live {
            let done = exchange.ended && exchange.delivered >= exchange.asked;
            if done && !exchange.over {
                let bundle = self.hosts[sending].bundle(&exchange.id);
                if bundle.is_none_or(|bundle| !bundle.has(exchange.stream)) {
                    exchange.over = true;
                    over.push(exchange.number);
                }
            }
        }
        over
    }

    /// Updates the counts of connections.
    pub fn observe(&mut self) {
        let sending = self.sending();
        for exchange in &mut self.live {
            if !exchange.over || !exchange.counted.is_final {
                let host = &mut self.hosts[sending];
                let controls = host.controls(&exchange.id);
                exchange.counted.note(&controls);
                if let Some(bundle) = host.bundle(&exchange.id) {
                    exchange.counted.multipath = *bundle.multipath_counters();
                }
                exchange.counted.is_final = exchange.over;
            }
        }
    }

    /// Returns the error of a controller that cannot continue.
    pub fn failure(&self) -> Option<String> {
        let sending = self.sending();
        let controls = self.live.iter().flat_map(|one| self.hosts[sending].controls(&one.id));
        controls.flatten().find_map(|control| control.failure())
    }

    /// Closes and forgets a connection.
    pub fn forget(&mut self, at: usize, now: Time) -> Exchange {
        let exchange = self.live.remove(at);
        self.gone.absorb(&exchange.counted);
        // At both ends: the packet that tells the other one may be lost, and is not repeated.
        self.hosts.iter_mut().for_each(|host| host.close(now, &exchange.id));
        exchange
    }

    /// Returns when the flow must be served even if nothing arrives.
    pub fn timer(&mut self, now: Time) -> Time {
        if !self.started {
            return self.plan.start;
        }
        let stop = self.plan.stop.filter(|_| !self.stopped).unwrap_or(Time::MAX);
        let asks = self.plan.start.saturating_add(self.application.timer());
        let [near, far] = &mut self.hosts;
        stop.min(asks).min(near.timer(now)).min(far.timer(now))
    }

    pub fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().flatten()
    }
}

/// Serves the sending end: reads requests, writes the data owed, and ends the stream.
fn give(bundle: &mut Bundle, exchange: &mut Exchange, payload: &[u8], fetches: bool) {
    if fetches {
        while let Some(read) = bundle.read(exchange.stream, GIVE_BYTES) {
            exchange.partial.extend_from_slice(&read);
        }
        while let Some((request, rest)) = exchange.partial.split_first_chunk::<REQUEST_BYTES>() {
            // Requests that were in flight at a stop are void.
            let wanted = u64::from_be_bytes(*request);
            exchange.owed += wanted.min(exchange.asked - exchange.given - exchange.owed);
            exchange.partial = rest.to_vec();
        }
    }
    while exchange.owed > 0 {
        let part = &payload[..exchange.owed.min(payload.len() as u64) as usize];
        let taken = bundle.write(exchange.stream, part) as u64;
        exchange.given += taken;
        // An endless push has no countdown.
        if exchange.owed != u64::MAX {
            exchange.owed -= taken;
        }
        if taken < part.len() as u64 {
            break;
        }
    }
    if exchange.is_given() && !exchange.ended && (!fetches || bundle.has(exchange.stream)) {
        exchange.ended = true;
        bundle.finish(exchange.stream);
    }
}

/// Returns the random streams of one end's controllers, by path. At the end that sends the data they
/// are those of the other grounds; the other end's controllers are QUIC's alone.
fn streams(scenario: &Scenario, plan: &Flow, sends: bool) -> Vec<ChaCha8Rng> {
    /// The first of many streams that no other ground uses.
    const OTHER_END: u64 = 1 << 63;
    let stream = |position: usize| {
        let mut rng = ControllerStreams::new(scenario, plan, position).stream(0, 0);
        if !sends {
            rng.set_stream(OTHER_END);
        }
        rng
    };
    (0..plan.paths.len()).map(stream).collect()
}

/// Returns namespace and name of an end.
fn place(hosts: &Hosts, end: usize, fetches: bool) -> (&knee_host::Namespace, End) {
    if (end == 0) == fetches {
        (&hosts.receiver, End::Receiver)
    } else {
        (&hosts.sender, End::Sender)
    }
}

fn at(path: usize, end: End, flow: usize) -> SocketAddr {
    SocketAddr::new(address(path, end, Family::V4), PORT + flow as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Embedded, Source, parse};
    use rand_core::Rng;

    /// No two controllers of a run draw the same numbers; those of the sending end are the
    /// simulator's.
    #[test]
    fn each_controller_has_its_own_numbers() {
        let path =
            |name: &str| format!("[path.{name}]\nforward = [\"l\"]\nreverse_delay = \"1 ms\"\n");
        let flow = "cc = \"bbr\"\npaths = [\"a\", \"b\"]\nscheduler = \"minrtt\"\n";
        let text = format!(
            "name = \"test\"\nduration = \"1 s\"\n[link.l]\nrate = \"10 Mbit/s\"\n{}{}\
             [[flow]]\nname = \"f\"\ncount = 2\n{flow}[[flow]]\nname = \"g\"\n{flow}",
            path("a"),
            path("b"),
        );
        let source = Source { name: "test.toml", loader: &Embedded(&[]) };
        let scenario = parse(&text, &source, &[]).unwrap_or_else(|e| panic!("{:?}", e.problems));
        let mut drawn = Vec::new();
        for plan in &scenario.flows {
            for sends in [true, false] {
                for (position, rng) in streams(&scenario, plan, sends).iter().enumerate() {
                    let simulated = ControllerStreams::new(&scenario, plan, position).stream(0, 0);
                    assert_eq!(*rng == simulated, sends);
                    drawn.push(rng.clone().next_u64());
                }
            }
        }
        assert_eq!(drawn.len(), 12);
        for (at, number) in drawn.iter().enumerate() {
            assert!(!drawn[..at].contains(number), "{at} draws what another one does");
        }
    }
}
