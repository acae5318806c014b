//! The event loop of one run.

use crate::applications::FlowState;
use crate::connections::{Connection, Ends, MULTIPATH, Slot};
use crate::departures::Departures;
use crate::link_state::LinkState;
use crate::log::{Event, PacketLog, Permission, Timeout};
use crate::packet::{ExtraStore, Packet, Step};
use crate::queue::{self, Armed, EventQueue, SOURCES_MAX};
use crate::recorder::{Recorder, Sums};
use crate::topology::Topology;
use crate::{Control, SimulationError};
use knee_link::{Link, Packet as _};
use knee_record::ConnectionRecord;
use knee_scenario::{Algorithms, Scenario, link_stream};
use knee_transport::{Burst, Receiver, Segment, Sender, TimerKind, Transmit, Wait};
use knee_units::{Ecn, Time};
use std::sync::atomic::Ordering;

/// Events between two checks of [`Control`].
const CONTROL_PERIOD: u64 = 4096;
/// IP bytes of a SYN or SYN-ACK: IPv4, TCP and its usual options.
const SYN_BYTES: u32 = 60;
/// Source of the recorder's samples.
const SAMPLER: usize = SOURCES_MAX - 1;
/// Timers of a slot, in the order of their sources.
pub const TIMERS: usize = 4;
pub const PACING: usize = 0;
pub const RETRANSMISSION: usize = 1;
pub const ACKNOWLEDGEMENT: usize = 2;
/// Pending requests, and the silence of paths.
pub const CONNECTION: usize = 3;

/// A run in progress.
///
/// Event sources, by number: links, timers of slots, applications, changes of
/// paths' presence, departures of flows, the recorder.
pub struct Simulation<'a, L: PacketLog> {
    pub scenario: &'a Scenario,
    pub(crate) algorithms: &'a Algorithms,
    /// The flows' controllers.
    pub(crate) controllers: Vec<knee_cc::Prepared<'a>>,
    pub links: Vec<LinkState>,
    /// Both ends of plain connections, indexed by a slot's `ends`.
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    pub slots: Vec<Slot>,
    pub(crate) free_slots: Vec<u32>,
    pub(crate) free_ends: Vec<u32>,
    pub connections: Vec<Connection>,
    pub(crate) free_connections: Vec<u32>,
    /// Connections that changed since the last sample; some may no longer exist.
    pub(crate) changed: Vec<u32>,
    /// Memory for the sums of a connection that changed, while the old ones are in use.
    pub(crate) spare: Option<Box<Sums>>,
    /// Whether so many slots have been in use that it pays to [look
    /// ahead](Simulation::look_ahead).
    pub(crate) looks_ahead: bool,
    /// Number of slots started so far, including reused ones.
    pub(crate) slots_begun: u32,
    pub flows: Vec<FlowState>,
    /// Rows of ended connections that the recorder has not taken yet.
    pub(crate) closed: Vec<ConnectionRecord>,
    pub(crate) queue: EventQueue,
    pub(crate) topology: Topology,
    /// Of each flow; empty if no flow has a jitter.
    pub(crate) departures: Vec<Departures>,
    pub(crate) extras: ExtraStore,
    pub(crate) log: L,
    pub(crate) now: Time,
    next_packet: u32,
    pub events: u64,
    pub delivered_packets: u64,
    /// Why the run cannot continue.
    pub(crate) failed: Option<SimulationError>,
}

impl<'a, L: PacketLog> Simulation<'a, L> {
    pub fn new(
        scenario: &'a Scenario,
        algorithms: &'a Algorithms,
        log: L,
    ) -> Result<Simulation<'a, L>, SimulationError> {
        let topology = Topology::new(scenario);
        let links: Vec<LinkState> = topology
            .links
            .iter()
            .map(|link| Link::new(link.config.clone(), link_stream(scenario.seed, &link.name)))
            .map(|link| LinkState { link, armed: Armed::NOTHING })
            .collect();
        let mut simulation = Simulation {
            scenario,
            algorithms,
            controllers: Vec::new(),
            links,
            senders: Vec::new(),
            receivers: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            free_ends: Vec::new(),
            connections: Vec::new(),
            free_connections: Vec::new(),
            changed: Vec::new(),
            spare: None,
            looks_ahead: false,
            slots_begun: 0,
            flows: Vec::with_capacity(scenario.flows.len()),
            closed: Vec::new(),
            queue: EventQueue::default(),
            topology,
            departures: Departures::of(scenario),
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
        simulation.link_waiting();
        simulation.arm_path_changes();
        simulation.arm_starts();
        Ok(simulation)
    }

    /// Checks the number of sources; each flow has at least one slot.
    fn check_size(&self) -> Result<(), SimulationError> {
        let sources = self.links.len() + TIMERS * self.scenario.flows.len();
        let limit = self.slot_sources_end();
        if sources > limit {
            return Err(SimulationError::TooLarge { sources, limit });
        }
        Ok(())
    }

    /// Runs to the end of the scenario, or until stopped. Returns when it ended.
    pub fn run(
        &mut self,
        recorder: &mut Recorder<'_>,
        control: &Control,
    ) -> Result<Time, SimulationError> {
        let end = self.scenario.duration;
        recorder.sample(self)?;
        self.queue.push_last(self.scenario.sample_interval, SAMPLER);
        while let Some((time, event)) = self.queue.pop() {
            if time > end {
                break;
            }
            self.now = time;
            self.events += 1;
            if self.events.is_multiple_of(CONTROL_PERIOD) {
                control.now_ns.store(time.as_nanos(), Ordering::Relaxed);
                recorder.take_closed(self)?;
                if control.stop.load(Ordering::Relaxed) {
                    recorder.finish(self)?;
                    return Ok(time);
                }
                if let Some(failure) = self.failed.take() {
                    return Err(failure);
                }
            }
            let source = event.source();
            if self.looks_ahead {
                self.look_ahead(source);
            }
            if source < self.links.len() {
                self.on_link(source, event);
            } else if source == SAMPLER {
                self.queue.push_last(time + self.scenario.sample_interval, SAMPLER);
                recorder.sample(self)?;
            } else if source < self.slot_sources_end() {
                self.on_timer(source - self.links.len(), event);
            } else {
                self.on_other(source - self.slot_sources_end(), event);
            }
        }
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        self.now = end;
        recorder.finish(self)?;
        Ok(end)
    }

    /// Returns the first source number after links and slots.
    #[inline]
    pub(crate) fn slot_sources_end(&self) -> usize {
        SAMPLER - 2 * self.scenario.flows.len() - self.scenario.paths.len()
    }

    /// Handles an event of an application, of a path that appears or disappears, or of a host.
    fn on_other(&mut self, number: usize, event: queue::Event) {
        match number.checked_sub(self.scenario.flows.len()) {
            None => self.on_application_timer(number, event),
            Some(path) => match path.checked_sub(self.scenario.paths.len()) {
                None => self.on_path_change(path),
                Some(flow) => self.on_departure(flow, event),
            },
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn into_log(self) -> L {
        self.log
    }

    /// Logs an event of a slot or of one of its packets.
    #[inline]
    pub(crate) fn note(&mut self, slot: u32, event: Event<'_>) {
        if L::WRITES {
            self.log.event(self.now, self.slots[slot as usize].serial, event);
        }
    }

    /// Schedules a timer unless an earlier event is already queued for it; that
    /// event will check the deadline again.
    #[inline]
    pub(crate) fn arm(&mut self, slot: usize, timer: usize, time: Time) {
        let armed = &mut self.slots[slot].armed[timer];
        if time < armed.time {
            *armed = self.queue.push(time, self.links.len() + slot * TIMERS + timer);
        }
    }

    /// Does the same for the home slot of a connection that has [changed](Slot::note_change).
    #[inline]
    pub(crate) fn note_and_arm(&mut self, home: usize, timer: usize, time: Time) {
        let slot = &mut self.slots[home];
        slot.note_change(&mut self.changed);
        let armed = &mut slot.armed[timer];
        if time < armed.time {
            *armed = self.queue.push(time, self.links.len() + home * TIMERS + timer);
        }
    }

    #[inline(always)]
    fn on_link(&mut self, link: usize, event: queue::Event) {
        let LinkState { link: state, armed } = &mut self.links[link];
        if !armed.take(event) {
            return;
        }
        let Some(&packet) = state.arrived(self.now) else { return self.poll_link(link) };
        let next = state.remove_arrived();
        // No event is pending any more.
        if next < Time::MAX {
            *armed = self.queue.push_soon(next, link);
        }
        self.note(packet.flow, Event::Leave { link, packet: &packet });
        self.advance(&packet);
    }

    /// Handles the event of a link that may have no packet to deliver.
    #[inline(never)]
    fn poll_link(&mut self, link: usize) {
        let LinkState { link: state, armed } = &mut self.links[link];
        let (packet, next) = (state.poll(self.now), state.next_time());
        if next < Time::MAX {
            *armed = self.queue.push_soon(next, link);
        }
        if state.has_news() {
            self.collect_news(link);
        }
        if let Some(packet) = &packet {
            self.note(packet.flow, Event::Leave { link, packet });
            self.advance(packet);
        }
    }

    /// Moves a packet that has left a link to its next step.
    #[inline(always)]
    fn advance(&mut self, packet: &Packet) {
        match self.topology.routes.step(packet.hop) {
            Step::Receiver if self.is_subflow(packet.flow) => self.on_subflow_segment(packet),
            Step::Receiver => self.on_segment(packet),
            Step::Sender if self.is_subflow(packet.flow) => self.on_subflow_ack(packet),
            Step::Sender => self.on_ack(packet),
            Step::Link(link) => self.enter_next(link, *packet),
        }
    }

    /// Whether a slot is of a path of a multipath connection.
    #[inline]
    fn is_subflow(&self, slot: u32) -> bool {
        self.slots[slot as usize].ends == MULTIPATH
    }

    /// Puts a packet on the first link of its route.
    #[inline(always)]
    pub(crate) fn set_out(&mut self, packet: Packet) {
        match self.topology.routes.step(packet.hop) {
            Step::Link(link) => self.enter(link, packet),
            _ => self.advance_without_link(packet),
        }
    }

    #[cold]
    fn advance_without_link(&mut self, packet: Packet) {
        self.advance(&packet);
    }

    #[inline(never)]
    fn enter_next(&mut self, link: usize, packet: Packet) {
        self.enter(link, packet);
    }

    #[inline(always)]
    fn enter(&mut self, link: usize, mut packet: Packet) {
        packet.hop += 1;
        self.note(packet.flow, Event::Enter { link, packet: &packet });
        let state = &mut self.links[link];
        match state.offer(&mut self.queue, self.now, link, packet) {
            Ok(()) => {
                if state.link.has_news() {
                    self.collect_news(link);
                }
            }
            Err((reason, packet)) => self.refuse(link, &packet, reason),
        }
    }

    /// Records that a packet of a slot has left the network.
    #[inline]
    pub(crate) fn leave_network(&mut self, slot: usize) {
        let slot = &mut self.slots[slot];
        slot.in_network -= 1;
        if slot.in_network == 0 && slot.abandoned {
            let index = slot.index;
            self.recycle(index);
        }
    }

    #[inline(never)]
    fn on_segment(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        let ends = self.slots[index].ends as usize;
        if L::WRITES {
            let old = self.receivers[ends].discards(&packet.to_segment());
            self.note(packet.flow, Event::Receive { packet, old });
        }
        let slot = &mut self.slots[index];
        let receiver = &mut self.receivers[ends];
        let arrival = receiver.on_segment(self.now, &packet.to_segment(), packet.ecn());
        let deadline = receiver.timer();
        if arrival.delivered_segments > 0 {
            let first = receiver.next().wrapping_sub(arrival.delivered_segments);
            slot.note_change(&mut self.changed);
            self.delivered_packets += u64::from(arrival.delivered_segments);
            let (segments, bytes) = (arrival.delivered_segments, arrival.delivered_bytes);
            self.note(packet.flow, Event::Deliver { first, segments, bytes });
        }
        if arrival.ack_now {
            self.send_ack(index, ends);
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
    fn send_ack(&mut self, index: usize, ends: usize) {
        if let Some((part, times)) = self.receivers[ends].parts() {
            return self.send_divided(index, ends, &part, times);
        }
        self.send_whole_ack(index, ends);
    }

    /// Sends the ACKs of a receiver that divides them (RFC 9743, section 7.6).
    #[cold]
    fn send_divided(&mut self, index: usize, ends: usize, part: &knee_transport::Ack, times: u32) {
        for _ in 0..times {
            self.put_ack(index, part, None, 0);
        }
        self.send_whole_ack(index, ends);
    }

    #[inline(always)]
    fn send_whole_ack(&mut self, index: usize, ends: usize) {
        let receiver = &mut self.receivers[ends];
        let (mut extra, mut option_bytes) = (None, 0);
        if receiver.has_details() {
            let (slot, filled) = self.extras.place();
            receiver.fill_details(&mut filled.details);
            (extra, option_bytes) = (Some(slot), filled.details.option_bytes());
        }
        let ack = receiver.make_plain_ack();
        self.put_ack(index, &ack, extra, option_bytes);
    }

    /// Puts an ACK on the wire. `extra` is the slot of its extra contents, of which
    /// `option_bytes` are on the wire.
    #[inline(always)]
    pub(crate) fn put_ack(
        &mut self,
        index: usize,
        ack: &knee_transport::Ack,
        extra: Option<u32>,
        option_bytes: u32,
    ) {
        let slot = &mut self.slots[index];
        slot.in_network += 1;
        let (hop, hash) = (slot.route.reverse, slot.hash);
        let size = option_bytes + if ack.syn { SYN_BYTES } else { u32::from(slot.header) };
        let packet = Packet::ack(index as u32, hash, hop, self.next_id(), size, ack, extra);
        if L::WRITES {
            self.log_ack(index, &packet);
        }
        self.set_out(packet);
    }

    /// Logs the contents of an ACK.
    fn log_ack(&mut self, index: usize, packet: &Packet) {
        let extra = packet.extra().map(|slot| *self.extras.get(slot));
        let multipath = self.slots[index].ends == MULTIPATH;
        let detailed = extra.as_ref().filter(|extra| extra.has_details || !multipath);
        let blocks = detailed.map_or(&[][..], |extra| extra.details.blocks());
        let marked = detailed.map(|extra| extra.details.ecn.ce).filter(|marked| *marked > 0);
        let data = extra.as_ref().filter(|_| multipath).map(|extra| extra.data);
        self.note(packet.flow, Event::AckSend { packet, blocks, marked, data });
    }

    #[inline(never)]
    fn on_ack(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        let slot = &self.slots[index];
        let details = packet.extra().map(|slot| &self.extras.take(slot).details);
        let sender = &mut self.senders[slot.ends as usize];
        sender.on_ack(self.now, &packet.to_ack(), details);
        let in_flight = sender.in_flight();
        self.note(packet.flow, Event::AckReceive { packet, in_flight });
        self.pump(index);
        let slot = &self.slots[index];
        if slot.asking | slot.closing {
            self.request_or_complete(index);
        }
        self.leave_network(index);
    }

    /// Sends what a plain connection has to send now and schedules its timers.
    #[inline]
    pub(crate) fn pump(&mut self, index: usize) {
        let ends = self.slots[index].ends as usize;
        let deadline = if !L::WRITES && self.senders[ends].sends_only_new() {
            self.pump_new(index, ends)
        } else {
            self.pump_any(index, ends)
        };
        self.note_and_arm(index, RETRANSMISSION, deadline);
    }

    /// Sends for a sender that has only new data to send; sending some does not
    /// change that. Returns the deadline of its timer.
    #[inline(always)]
    fn pump_new(&mut self, index: usize, ends: usize) -> Time {
        loop {
            let sender = &mut self.senders[ends];
            match sender.poll_burst(self.now) {
                Ok(burst) => {
                    let ecn = sender.ecn();
                    if burst.count == 1 {
                        let only = Segment { push: burst.push, ..burst.first };
                        self.put_segment(index, &only, ecn);
                    } else {
                        self.put_burst(index, &burst, ecn);
                    }
                }
                Err(Wait::Until(time)) => {
                    let deadline = sender.timer();
                    self.arm(index, PACING, time);
                    return deadline;
                }
                Err(Wait::ForEvent) => return sender.timer(),
            }
        }
    }

    /// Sends for a sender that may also have data to retransmit. Returns the
    /// deadline of its timer.
    #[inline(never)]
    fn pump_any(&mut self, index: usize, ends: usize) -> Time {
        loop {
            let sender = &mut self.senders[ends];
            match sender.poll_transmit(self.now) {
                Transmit::Segment(segment) => {
                    let ecn = sender.ecn();
                    self.put_segment(index, &segment, ecn);
                }
                Transmit::At(time) => {
                    self.arm(index, PACING, time);
                    break;
                }
                Transmit::Nothing => break,
            }
        }
        self.senders[ends].timer()
    }

    /// Notes that the next sample must visit a connection, given its home slot.
    #[inline]
    pub(crate) fn note_change(&mut self, home: usize) {
        self.slots[home].note_change(&mut self.changed);
    }

    /// Puts a segment on the wire.
    #[inline(always)]
    pub(crate) fn put_segment(&mut self, index: usize, segment: &Segment, ecn: Ecn) {
        let slot = &mut self.slots[index];
        slot.in_network += 1;
        let size = match segment.kind {
            knee_transport::SegmentKind::Syn => SYN_BYTES,
            knee_transport::SegmentKind::Data => u32::from(segment.len) + u32::from(slot.header),
        };
        let (hop, hash) = (slot.route.forward, slot.hash);
        let packet = Packet::segment(index as u32, hash, hop, self.next_id(), size, ecn, segment);
        if L::WRITES {
            self.log_send(index, &packet, segment);
        }
        if !self.departures.is_empty() {
            return self.depart(packet);
        }
        self.set_out(packet);
    }

    /// Puts segments on the wire that are sent together, without logging.
    #[inline(never)]
    pub(crate) fn put_burst(&mut self, index: usize, burst: &Burst, ecn: Ecn) {
        let Burst { first, count, push } = burst;
        let slot = &mut self.slots[index];
        slot.in_network += count;
        let (hop, hash) = (slot.route.forward, slot.hash);
        let size = u32::from(first.len) + u32::from(slot.header);
        let id = self.next_packet;
        self.next_packet = id.wrapping_add(*count);
        let mut packet = Packet::segment(index as u32, hash, hop, id, size, ecn, first);
        let pushed = if *push { count - 1 } else { u32::MAX };
        if !self.departures.is_empty() {
            return (0..*count)
                .for_each(|behind| self.depart(packet.of_burst(behind, behind == pushed)));
        }
        let Step::Link(link) = self.topology.routes.step(hop) else {
            return (0..*count).for_each(|behind| {
                self.advance_without_link(packet.of_burst(behind, behind == pushed));
            });
        };
        packet.hop += 1;
        let run = (size, *count);
        let certain = self.links[link].offer_run(&mut self.queue, self.now, link, run, |behind| {
            packet.of_burst(behind, behind == pushed)
        });
        for behind in certain..*count {
            self.offer_alone(link, packet.of_burst(behind, behind == pushed));
        }
    }

    /// Offers a packet of a burst that may be dropped.
    #[inline(never)]
    fn offer_alone(&mut self, link: usize, packet: Packet) {
        let state = &mut self.links[link];
        match state.offer(&mut self.queue, self.now, link, packet) {
            Err((reason, packet)) => self.refuse(link, &packet, reason),
            Ok(()) if state.link.has_news() => self.collect_news(link),
            Ok(()) => {}
        }
    }

    /// Logs the conditions under which a sender sends.
    fn log_send(&mut self, index: usize, packet: &Packet, segment: &Segment) {
        let Slot { connection, position, ends, .. } = self.slots[index];
        let (sender, offset) = match &self.connections[connection as usize].ends {
            Ends::Plain(_) => (Some(&self.senders[ends as usize]), None),
            Ends::Multipath(multi) => {
                let path = usize::from(position);
                let mapping = multi.sender.mapping(path, segment.number);
                let is_data = segment.kind == knee_transport::SegmentKind::Data;
                let data = mapping.and_then(|mapping| mapping.data(segment.number));
                let offset = data.filter(|_| is_data).map(|(offset, _)| offset);
                (multi.subflow(path), offset)
            }
        };
        let Some(sender) = sender else { return };
        let permission = Permission {
            in_flight: sender.in_flight(),
            window: sender.window(),
            pacing: sender.pacing_rate(),
            burst: sender.burst(),
            probe: sender.sent_probe_last(),
            offset,
        };
        self.note(packet.flow, Event::Send { packet, payload: segment.len, permission });
    }

    /// Logs that a sender's timer expired.
    pub(crate) fn log_timeout(&mut self, slot: usize, kind: TimerKind) {
        let what = match kind {
            TimerKind::Handshake => Timeout::Handshake,
            TimerKind::Probe => Timeout::Probe,
            TimerKind::Retransmit => Timeout::Retransmission,
            TimerKind::Reordering | TimerKind::Controller => return,
        };
        self.note(slot as u32, Event::Timeout(what));
    }

    #[inline]
    fn next_id(&mut self) -> u32 {
        let id = self.next_packet;
        self.next_packet = id.wrapping_add(1);
        id
    }

    /// Handles timer `number`, counted over all slots.
    fn on_timer(&mut self, number: usize, event: queue::Event) {
        let (index, timer) = (number / TIMERS, number % TIMERS);
        let slot = &mut self.slots[index];
        if !slot.armed[timer].take(event) {
            return;
        }
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
        let kind = sender.timer_kind();
        sender.on_timer(self.now);
        if kind == TimerKind::Controller
            && let Some(reason) = sender.failure()
        {
            let reason = reason.to_owned();
            return self.fail_controller(index, reason);
        }
        self.log_timeout(index, kind);
        self.pump(index);
    }

    /// Ends the run because the controller of a slot cannot continue.
    #[cold]
    pub(crate) fn fail_controller(&mut self, slot: usize, reason: String) {
        let connection = &self.connections[self.slots[slot].connection as usize];
        let flow = &self.scenario.flows[connection.flow as usize];
        self.failed.get_or_insert(SimulationError::ControllerFailed {
            controller: flow.controller.name.clone(),
            flow: flow.name.clone(),
            at: self.now,
            reason,
        });
    }

    fn on_acknowledgement_timer(&mut self, index: usize) {
        let ends = self.slots[index].ends as usize;
        let deadline = self.receivers[ends].timer();
        if deadline > self.now {
            return self.arm(index, ACKNOWLEDGEMENT, deadline);
        }
        self.send_ack(index, ends);
    }
}
