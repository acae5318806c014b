//! The event loop of one run.

use crate::log::{Event, PacketLog};
use crate::packet::{DetailStore, Packet, Step};
use crate::queue::{EventQueue, SOURCES_MAX};
use crate::recorder::Recorder;
use crate::topology::{PathRoute, Topology};
use crate::{Control, SimulationError};
use knee_link::Link;
use knee_scenario::{Scenario, Workload};
use knee_transport::{AckDetails, Receiver, Sender, Transmit};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::sync::atomic::Ordering;

/// Events between two looks at [`Control`].
const CONTROL_PERIOD: u64 = 4096;
/// IP bytes of a SYN or SYN-ACK: IPv4, TCP and its usual options.
const SYN_BYTES: u32 = 60;
/// Timers of a flow, in the order of their sources.
const TIMERS: usize = 4;
const PACING: usize = 0;
const RETRANSMISSION: usize = 1;
const ACKNOWLEDGEMENT: usize = 2;
const APPLICATION: usize = 3;

/// Random streams: links count from zero, flows from here.
const FLOW_STREAMS: u64 = 1 << 32;

/// What the simulator keeps of a flow beside its two ends.
pub struct FlowState {
    /// Where its packets begin their way.
    pub route: PathRoute,
    /// When the earliest queued event of each timer is due.
    armed: [Time; TIMERS],
    pub started: bool,
    /// When the last byte was acknowledged.
    pub completed: Option<Time>,
    mtu_header: u32,
}

/// A run under way.
pub struct Simulation<'a, L: PacketLog> {
    pub scenario: &'a Scenario,
    pub links: Vec<Link<Packet>>,
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    pub flows: Vec<FlowState>,
    queue: EventQueue,
    /// When the earliest queued event of each link is due.
    link_armed: Vec<Time>,
    topology: Topology,
    details: DetailStore,
    log: L,
    now: Time,
    next_packet: u32,
    pub events: u64,
    pub delivered_packets: u64,
}

/// The random stream of a link or flow: one seed, one stream each.
fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

impl<'a, L: PacketLog> Simulation<'a, L> {
    pub fn new(scenario: &'a Scenario, log: L) -> Result<Simulation<'a, L>, SimulationError> {
        let topology = Topology::new(scenario);
        let sources = topology.links.len() + TIMERS * scenario.flows.len() + 1;
        if sources > SOURCES_MAX {
            return Err(SimulationError::TooLarge { sources, limit: SOURCES_MAX });
        }
        let links: Vec<Link<Packet>> = topology
            .links
            .iter()
            .enumerate()
            .map(|(index, config)| Link::new(config.clone(), stream(scenario.seed, index as u64)))
            .collect();
        let mut simulation = Simulation {
            scenario,
            link_armed: vec![Time::MAX; links.len()],
            links,
            senders: Vec::with_capacity(scenario.flows.len()),
            receivers: Vec::with_capacity(scenario.flows.len()),
            flows: Vec::with_capacity(scenario.flows.len()),
            queue: EventQueue::default(),
            topology,
            details: DetailStore::default(),
            log,
            now: Time::ZERO,
            next_packet: 0,
            events: 0,
            delivered_packets: 0,
        };
        for index in 0..scenario.flows.len() {
            simulation.add_flow(index)?;
        }
        Ok(simulation)
    }

    fn add_flow(&mut self, index: usize) -> Result<(), SimulationError> {
        let flow = &self.scenario.flows[index];
        let transport = &flow.transport;
        let init = knee_cc::Init {
            mss: transport.mss,
            mtu: transport.mss + transport.header,
            initial_window: u64::from(transport.initial_window) * u64::from(transport.mss),
            rng: stream(self.scenario.seed, FLOW_STREAMS + index as u64),
        };
        let controller = knee_cc::build(&flow.controller, init)?;
        self.senders.push(Sender::new(transport, controller));
        self.receivers.push(Receiver::new(transport));
        self.flows.push(FlowState {
            route: self.topology.paths[flow.path],
            armed: [Time::MAX; TIMERS],
            started: false,
            completed: None,
            mtu_header: transport.header,
        });
        self.arm(index, APPLICATION, flow.start);
        Ok(())
    }

    /// Runs to the end of the scenario, or until told to stop. Returns when
    /// it ended.
    pub fn run(&mut self, recorder: &mut Recorder, control: &Control) -> Time {
        let end = self.scenario.duration;
        let sampler = (self.links.len() + TIMERS * self.flows.len()) as u32;
        recorder.sample(self);
        self.queue.push(self.scenario.sample_interval, sampler);
        while let Some((time, source)) = self.queue.pop() {
            if time > end {
                break;
            }
            self.now = time;
            self.events += 1;
            if self.events.is_multiple_of(CONTROL_PERIOD) {
                control.now_ns.store(time.as_nanos(), Ordering::Relaxed);
                if control.stop.load(Ordering::Relaxed) {
                    recorder.sample(self);
                    return time;
                }
            }
            if (source as usize) < self.links.len() {
                self.on_link(source as usize);
            } else if source == sampler {
                self.queue.push(time + self.scenario.sample_interval, sampler);
                recorder.sample(self);
            } else {
                let timer = source as usize - self.links.len();
                self.on_timer(timer / TIMERS, timer % TIMERS);
            }
        }
        self.now = end;
        recorder.finish(self);
        end
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn into_log(self) -> L {
        self.log
    }

    /// Schedules a timer unless an earlier event is queued for it already;
    /// that one will look at the deadline again.
    #[inline]
    fn arm(&mut self, flow: usize, timer: usize, time: Time) {
        let armed = &mut self.flows[flow].armed[timer];
        if time < *armed {
            *armed = time;
            let source = self.links.len() + flow * TIMERS + timer;
            self.queue.push(time, source as u32);
        }
    }

    #[inline]
    fn arm_link(&mut self, link: usize) {
        let next = self.links[link].next_time();
        if next < self.link_armed[link] {
            self.link_armed[link] = next;
            self.queue.push(next, link as u32);
        }
    }

    #[inline]
    fn on_link(&mut self, link: usize) {
        if self.link_armed[link] != self.now {
            return;
        }
        self.link_armed[link] = Time::MAX;
        let packet = self.links[link].poll(self.now);
        self.arm_link(link);
        self.collect_dropped(link);
        if let Some(packet) = packet {
            self.log.event(self.now, Event::Leave { link, packet: &packet });
            self.advance(packet);
        }
    }

    /// Takes a packet one step further on its way.
    #[inline]
    fn advance(&mut self, mut packet: Packet) {
        match self.topology.routes.step(packet.hop) {
            Step::Receiver => self.on_segment(packet),
            Step::Sender => self.on_ack(packet),
            Step::Link(link) => {
                packet.hop += 1;
                self.enter(link, packet);
            }
        }
    }

    #[inline]
    fn enter(&mut self, link: usize, packet: Packet) {
        self.log.event(self.now, Event::Enter { link, packet: &packet });
        match self.links[link].send(self.now, packet) {
            Ok(()) => self.arm_link(link),
            Err((reason, packet)) => {
                self.log.event(self.now, Event::Drop { link, packet: &packet, reason });
                self.discard(&packet);
            }
        }
        self.collect_dropped(link);
    }

    /// Accounts for what the link dropped after it had entered.
    #[inline]
    fn collect_dropped(&mut self, link: usize) {
        while let Some((_, reason, packet)) = self.links[link].take_dropped() {
            self.log.event(self.now, Event::Drop { link, packet: &packet, reason });
            self.discard(&packet);
        }
    }

    #[cold]
    fn discard(&mut self, packet: &Packet) {
        if let Some(slot) = packet.details() {
            self.details.take(slot);
        }
    }

    #[inline]
    fn on_segment(&mut self, packet: Packet) {
        let flow = packet.flow as usize;
        self.log.event(self.now, Event::Receive { packet: &packet });
        let receiver = &mut self.receivers[flow];
        let arrival = receiver.on_segment(self.now, &packet.to_segment(), packet.is_marked());
        if arrival.delivered_segments > 0 {
            self.delivered_packets += u64::from(arrival.delivered_segments);
            let first = receiver.next().wrapping_sub(arrival.delivered_segments);
            let (segments, bytes) = (arrival.delivered_segments, arrival.delivered_bytes);
            let event = Event::Deliver { flow: packet.flow, first, segments, bytes };
            self.log.event(self.now, event);
        }
        if arrival.ack_now {
            self.send_ack(flow);
        } else {
            let deadline = self.receivers[flow].timer();
            self.arm(flow, ACKNOWLEDGEMENT, deadline);
        }
    }

    #[inline]
    fn send_ack(&mut self, flow: usize) {
        let mut details = AckDetails::default();
        let (ack, has_details) = self.receivers[flow].make_ack(&mut details);
        let state = &self.flows[flow];
        let (mut size, mut slot) = (state.mtu_header, None);
        if ack.syn {
            size = SYN_BYTES;
        }
        if has_details {
            size += details.option_bytes();
            slot = Some(self.details.put(details));
        }
        let hop = state.route.reverse;
        let packet = Packet::ack(flow as u32, hop, self.next_id(), size, &ack, slot);
        self.log.event(self.now, Event::AckSend { packet: &packet, blocks: details.blocks() });
        self.advance(packet);
    }

    #[inline]
    fn on_ack(&mut self, packet: Packet) {
        let flow = packet.flow as usize;
        let details = packet.details().map(|slot| self.details.take(slot));
        self.senders[flow].on_ack(self.now, &packet.to_ack(), details.as_ref());
        let in_flight = self.senders[flow].in_flight();
        self.log.event(self.now, Event::AckReceive { packet: &packet, in_flight });
        self.pump(flow);
        if self.flows[flow].completed.is_none() && self.senders[flow].is_complete() {
            self.flows[flow].completed = Some(self.now);
        }
    }

    /// Sends what the sender has to send now and schedules its timers.
    #[inline]
    fn pump(&mut self, flow: usize) {
        loop {
            match self.senders[flow].poll_transmit(self.now) {
                Transmit::Segment(segment) => self.send_segment(flow, &segment),
                Transmit::At(time) => {
                    self.arm(flow, PACING, time);
                    break;
                }
                Transmit::Nothing => break,
            }
        }
        let deadline = self.senders[flow].timer();
        self.arm(flow, RETRANSMISSION, deadline);
    }

    #[inline]
    fn send_segment(&mut self, flow: usize, segment: &knee_transport::Segment) {
        let state = &self.flows[flow];
        let size = match segment.kind {
            knee_transport::SegmentKind::Syn => SYN_BYTES,
            knee_transport::SegmentKind::Data => u32::from(segment.len) + state.mtu_header,
        };
        let hop = state.route.forward;
        let ecn = self.senders[flow].ecn() != knee_cc::Ecn::NotCapable;
        let packet = Packet::segment(flow as u32, hop, self.next_id(), size, ecn, segment);
        let in_flight = self.senders[flow].in_flight();
        self.log.event(self.now, Event::Send { packet: &packet, payload: segment.len, in_flight });
        self.advance(packet);
    }

    #[inline]
    fn next_id(&mut self) -> u32 {
        let id = self.next_packet;
        self.next_packet = id.wrapping_add(1);
        id
    }

    fn on_timer(&mut self, flow: usize, timer: usize) {
        if self.flows[flow].armed[timer] != self.now {
            return;
        }
        self.flows[flow].armed[timer] = Time::MAX;
        match timer {
            PACING => self.pump(flow),
            RETRANSMISSION => self.on_retransmission_timer(flow),
            ACKNOWLEDGEMENT => self.on_acknowledgement_timer(flow),
            _ => self.on_application(flow),
        }
    }

    fn on_retransmission_timer(&mut self, flow: usize) {
        let deadline = self.senders[flow].timer();
        if deadline > self.now {
            return self.arm(flow, RETRANSMISSION, deadline);
        }
        self.senders[flow].on_timer(self.now);
        self.pump(flow);
    }

    fn on_acknowledgement_timer(&mut self, flow: usize) {
        let deadline = self.receivers[flow].timer();
        if deadline > self.now {
            return self.arm(flow, ACKNOWLEDGEMENT, deadline);
        }
        self.send_ack(flow);
    }

    /// The application starts, or stops.
    fn on_application(&mut self, flow: usize) {
        let plan = &self.scenario.flows[flow];
        if self.flows[flow].started {
            self.senders[flow].stop();
            return;
        }
        self.flows[flow].started = true;
        self.senders[flow].write(match plan.workload {
            Workload::Bulk => u64::MAX,
            Workload::File(bytes) => bytes,
        });
        if let Some(stop) = plan.stop {
            self.arm(flow, APPLICATION, stop);
        }
        self.pump(flow);
    }
}
