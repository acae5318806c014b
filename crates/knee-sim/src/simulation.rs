//! The event loop of one run.

use crate::applications::FlowState;
use crate::connections::{Connection, MULTIPATH, Slot};
use crate::log::{Event, PacketLog};
use crate::packet::{AckExtra, ExtraStore, Packet, Step};
use crate::queue::{EventQueue, SOURCES_MAX};
use crate::recorder::Recorder;
use crate::topology::Topology;
use crate::{Control, SimulationError};
use knee_link::Link;
use knee_record::TransferRecord;
use knee_scenario::{Scenario, link_stream};
use knee_transport::{AckDetails, Receiver, Sender, Transmit};
use knee_units::Time;
use std::sync::atomic::Ordering;

/// Events between two looks at [`Control`].
const CONTROL_PERIOD: u64 = 4096;
/// IP bytes of a SYN or SYN-ACK: IPv4, TCP and its usual options.
const SYN_BYTES: u32 = 60;
/// Timers of a slot, in the order of their sources.
pub const TIMERS: usize = 4;
pub const PACING: usize = 0;
pub const RETRANSMISSION: usize = 1;
pub const ACKNOWLEDGEMENT: usize = 2;
/// Requests on their way, and the silence of paths.
pub const CONNECTION: usize = 3;

/// A run under way.
///
/// Event sources, in the order in which they act at the same time: links,
/// timers of slots, applications, paths that come and go, the recorder.
pub struct Simulation<'a, L: PacketLog> {
    pub scenario: &'a Scenario,
    pub links: Vec<Link<Packet>>,
    /// Both ends of plain connections; a slot names its own.
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    pub slots: Vec<Slot>,
    pub(crate) free_slots: Vec<u32>,
    pub(crate) free_ends: Vec<u32>,
    pub connections: Vec<Connection>,
    pub(crate) free_connections: Vec<u32>,
    pub flows: Vec<FlowState>,
    pub transfers: Vec<TransferRecord>,
    pub(crate) queue: EventQueue,
    /// When the earliest queued event of each link is due.
    link_armed: Vec<Time>,
    pub(crate) topology: Topology,
    pub(crate) extras: ExtraStore,
    pub(crate) log: L,
    pub(crate) now: Time,
    next_packet: u32,
    pub events: u64,
    pub delivered_packets: u64,
    /// Why the run cannot go on.
    pub(crate) failed: Option<SimulationError>,
}

impl<'a, L: PacketLog> Simulation<'a, L> {
    pub fn new(scenario: &'a Scenario, log: L) -> Result<Simulation<'a, L>, SimulationError> {
        let topology = Topology::new(scenario);
        let links: Vec<Link<Packet>> = topology
            .links
            .iter()
            .enumerate()
            .map(|(index, config)| Link::new(config.clone(), link_stream(scenario.seed, index)))
            .collect();
        let mut simulation = Simulation {
            scenario,
            link_armed: vec![Time::MAX; links.len()],
            links,
            senders: Vec::new(),
            receivers: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            free_ends: Vec::new(),
            connections: Vec::new(),
            free_connections: Vec::new(),
            flows: Vec::with_capacity(scenario.flows.len()),
            transfers: Vec::new(),
            queue: EventQueue::default(),
            topology,
            extras: ExtraStore::default(),
            log,
            now: Time::ZERO,
            next_packet: 0,
            events: 0,
            delivered_packets: 0,
            failed: None,
        };
        simulation.check_size()?;
        for index in 0..scenario.flows.len() {
            simulation.add_flow(index)?;
        }
        simulation.arm_path_changes();
        Ok(simulation)
    }

    /// Each flow has one slot at least.
    fn check_size(&self) -> Result<(), SimulationError> {
        let sources = self.links.len() + TIMERS * self.scenario.flows.len();
        let limit = self.slot_sources_end();
        if sources > limit {
            return Err(SimulationError::TooLarge { sources, limit });
        }
        Ok(())
    }

    /// Runs to the end of the scenario, or until told to stop. Returns when
    /// it ended.
    pub fn run(
        &mut self,
        recorder: &mut Recorder,
        control: &Control,
    ) -> Result<Time, SimulationError> {
        let end = self.scenario.duration;
        let sampler = SOURCES_MAX as u32 - 1;
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
                    recorder.finish(self);
                    return Ok(time);
                }
                if let Some(failure) = self.failed.take() {
                    return Err(failure);
                }
            }
            if (source as usize) < self.links.len() {
                self.on_link(source as usize);
            } else if source == sampler {
                self.queue.push(time + self.scenario.sample_interval, sampler);
                recorder.sample(self);
            } else if (source as usize) < self.slot_sources_end() {
                let timer = source as usize - self.links.len();
                self.on_timer(timer / TIMERS, timer % TIMERS);
            } else {
                self.on_other(source as usize - self.slot_sources_end());
            }
        }
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        self.now = end;
        recorder.finish(self);
        Ok(end)
    }

    /// First source past those of links and slots.
    #[inline]
    pub(crate) fn slot_sources_end(&self) -> usize {
        SOURCES_MAX - 1 - self.scenario.flows.len() - self.scenario.paths.len()
    }

    /// An application, or a path that comes or goes.
    fn on_other(&mut self, number: usize) {
        match number.checked_sub(self.scenario.flows.len()) {
            None => self.on_application_timer(number),
            Some(path) => self.on_path_change(path),
        }
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
    pub(crate) fn arm(&mut self, slot: usize, timer: usize, time: Time) {
        let armed = &mut self.slots[slot].armed[timer];
        if time < *armed {
            *armed = time;
            let source = self.links.len() + slot * TIMERS + timer;
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
        if let Some(slot) = packet.extra() {
            self.extras.take(slot);
        }
        self.leave_network(packet.flow as usize);
    }

    /// A packet of a slot is no longer under way.
    #[inline]
    pub(crate) fn leave_network(&mut self, slot: usize) {
        let slot = &mut self.slots[slot];
        slot.in_network -= 1;
        if slot.in_network == 0 && slot.abandoned {
            let index = slot.index;
            self.recycle(index);
        }
    }

    #[inline]
    fn on_segment(&mut self, packet: Packet) {
        let index = packet.flow as usize;
        self.log.event(self.now, Event::Receive { packet: &packet });
        let slot = &self.slots[index];
        if slot.ends == MULTIPATH {
            return self.on_subflow_segment(index, packet);
        }
        let receiver = &mut self.receivers[slot.ends as usize];
        let arrival = receiver.on_segment(self.now, &packet.to_segment(), packet.is_marked());
        let deadline = receiver.timer();
        if arrival.delivered_segments > 0 {
            self.delivered_packets += u64::from(arrival.delivered_segments);
            let first = receiver.next().wrapping_sub(arrival.delivered_segments);
            let (segments, bytes) = (arrival.delivered_segments, arrival.delivered_bytes);
            let event = Event::Deliver { flow: packet.flow, first, segments, bytes };
            self.log.event(self.now, event);
        }
        if arrival.ack_now {
            self.send_ack(index);
        } else {
            self.arm(index, ACKNOWLEDGEMENT, deadline);
        }
        let slot = &self.slots[index];
        if slot.watched && arrival.delivered_bytes > 0 {
            self.tell_delivered(slot.connection as usize, arrival.delivered_bytes);
        }
        self.leave_network(index);
    }

    #[inline]
    fn send_ack(&mut self, index: usize) {
        let mut details = AckDetails::default();
        let ends = self.slots[index].ends as usize;
        let (ack, has_details) = self.receivers[ends].make_ack(&mut details);
        let extra = has_details.then(|| AckExtra { details, ..AckExtra::default() });
        self.put_ack(index, &ack, extra);
    }

    /// Puts an ACK on the wire.
    #[inline]
    pub(crate) fn put_ack(
        &mut self,
        index: usize,
        ack: &knee_transport::Ack,
        extra: Option<AckExtra>,
    ) {
        let slot = &mut self.slots[index];
        slot.in_network += 1;
        let (hop, mut size) = (slot.route.reverse, u32::from(slot.header));
        if ack.syn {
            size = SYN_BYTES;
        }
        let mut blocks: &[(u32, u32)] = &[];
        let mut stored = None;
        if let Some(extra) = &extra {
            size += extra.details.option_bytes();
            blocks = extra.details.blocks();
            stored = Some(self.extras.put(*extra));
        }
        let packet = Packet::ack(index as u32, hop, self.next_id(), size, ack, stored);
        self.log.event(self.now, Event::AckSend { packet: &packet, blocks });
        self.advance(packet);
    }

    #[inline]
    fn on_ack(&mut self, packet: Packet) {
        let index = packet.flow as usize;
        let extra = packet.extra().map(|slot| self.extras.take(slot));
        let slot = &self.slots[index];
        if slot.ends == MULTIPATH {
            return self.on_subflow_ack(index, packet, extra);
        }
        let sender = &mut self.senders[slot.ends as usize];
        sender.on_ack(self.now, &packet.to_ack(), extra.as_ref().map(|extra| &extra.details));
        let in_flight = sender.in_flight();
        self.log.event(self.now, Event::AckReceive { packet: &packet, in_flight });
        self.pump(index);
        let slot = &self.slots[index];
        if slot.closing && self.senders[slot.ends as usize].is_complete() {
            self.on_complete(slot.connection as usize);
        } else if slot.asking {
            self.send_requests(slot.connection as usize);
        }
        self.leave_network(index);
    }

    /// Sends what a plain connection has to send now and schedules its
    /// timers.
    #[inline]
    pub(crate) fn pump(&mut self, index: usize) {
        let ends = self.slots[index].ends as usize;
        loop {
            match self.senders[ends].poll_transmit(self.now) {
                Transmit::Segment(segment) => {
                    let sender = &self.senders[ends];
                    let (ecn, in_flight) = (sender.ecn(), sender.in_flight());
                    self.put_segment(index, &segment, ecn, in_flight);
                }
                Transmit::At(time) => {
                    self.arm(index, PACING, time);
                    break;
                }
                Transmit::Nothing => break,
            }
        }
        let deadline = self.senders[ends].timer();
        self.arm(index, RETRANSMISSION, deadline);
    }

    /// Puts a segment on the wire.
    #[inline]
    pub(crate) fn put_segment(
        &mut self,
        index: usize,
        segment: &knee_transport::Segment,
        ecn: knee_cc::Ecn,
        in_flight: u64,
    ) {
        let slot = &mut self.slots[index];
        slot.in_network += 1;
        let size = match segment.kind {
            knee_transport::SegmentKind::Syn => SYN_BYTES,
            knee_transport::SegmentKind::Data => u32::from(segment.len) + u32::from(slot.header),
        };
        let hop = slot.route.forward;
        let ecn = ecn != knee_cc::Ecn::NotCapable;
        let packet = Packet::segment(index as u32, hop, self.next_id(), size, ecn, segment);
        self.log.event(self.now, Event::Send { packet: &packet, payload: segment.len, in_flight });
        self.advance(packet);
    }

    #[inline]
    fn next_id(&mut self) -> u32 {
        let id = self.next_packet;
        self.next_packet = id.wrapping_add(1);
        id
    }

    fn on_timer(&mut self, index: usize, timer: usize) {
        let slot = &mut self.slots[index];
        if slot.armed[timer] != self.now {
            return;
        }
        slot.armed[timer] = Time::MAX;
        if slot.ends == MULTIPATH {
            return self.on_subflow_timer(index, timer);
        }
        match timer {
            PACING => self.pump(index),
            RETRANSMISSION => self.on_retransmission_timer(index),
            ACKNOWLEDGEMENT => self.on_acknowledgement_timer(index),
            _ => self.send_requests(self.slots[index].connection as usize),
        }
    }

    fn on_retransmission_timer(&mut self, index: usize) {
        let sender = &mut self.senders[self.slots[index].ends as usize];
        let deadline = sender.timer();
        if deadline > self.now {
            return self.arm(index, RETRANSMISSION, deadline);
        }
        sender.on_timer(self.now);
        self.pump(index);
    }

    fn on_acknowledgement_timer(&mut self, index: usize) {
        let deadline = self.receivers[self.slots[index].ends as usize].timer();
        if deadline > self.now {
            return self.arm(index, ACKNOWLEDGEMENT, deadline);
        }
        self.send_ack(index);
    }
}
