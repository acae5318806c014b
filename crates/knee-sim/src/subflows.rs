//! Multipath connections: subflows that appear and disappear, and segments and
//! ACKs that carry the connection's own sequence space.

use crate::applications::Totals;
use crate::connections::{Connection, Ends, HOME, MULTIPATH, NONE, Slot, stand_in};
use crate::log::{Event, PacketLog};
use crate::packet::Packet;
use crate::simulation::{ACKNOWLEDGEMENT, CONNECTION, PACING, RETRANSMISSION, Simulation};
use knee_link::Packet as _;
use knee_multipath::sched::PATHS_MAX;
use knee_scenario::Algorithms;
use knee_transport::multipath::{
    MultipathArrival, MultipathReceiver, MultipathSender, MultipathTransmit,
};
use knee_transport::{Segment, Sender, TimerKind, Wait};
use knee_units::{Ecn, Time};

/// Both ends of a multipath connection.
pub struct MultipathEnds {
    pub sender: MultipathSender,
    pub receiver: MultipathReceiver,
    /// Slot of each path's subflow, or [`NONE`].
    pub slots: [u32; PATHS_MAX],
    /// Number of subflows that each path has had.
    pub begins: [u32; PATHS_MAX],
    /// Counters of removed subflows.
    pub gone: Totals,
    /// The same, by path.
    pub gone_by_path: Vec<Totals>,
}

impl MultipathEnds {
    pub fn subflow(&self, path: usize) -> Option<&Sender> {
        self.sender.subflow(path)
    }

    /// Adds the counters of a path.
    pub fn add_path(&self, path: usize, totals: &mut Totals) {
        totals.join(&self.gone_by_path[path]);
        totals.add_subflow(self.subflow(path), self.receiver.subflow(path));
    }
}

impl<L: PacketLog> Simulation<'_, L> {
    pub(crate) fn new_multi(&mut self, flow: usize) -> MultipathEnds {
        let plan = &self.scenario.flows[flow];
        let multipath = plan.multipath.as_ref().expect("the flow has several paths");
        let Algorithms { schedulers, .. } = self.algorithms;
        let scheduler = schedulers.build(&multipath.scheduler, ()).unwrap_or_else(|refused| {
            self.failed.get_or_insert(refused.into());
            stand_in(|default| schedulers.build(default, ()), "minrtt")
        });
        let paths = plan.paths.len();
        let reinjection = multipath.reinjection;
        MultipathEnds {
            sender: MultipathSender::new(&plan.transport, paths, reinjection, scheduler),
            receiver: MultipathReceiver::new(&plan.transport),
            slots: [NONE; PATHS_MAX],
            begins: [0; PATHS_MAX],
            gone: Totals::default(),
            gone_by_path: vec![Totals::default(); paths],
        }
    }

    /// Returns both ends of a multipath connection.
    fn multi(&mut self, connection: usize) -> &mut MultipathEnds {
        match &mut self.connections[connection].ends {
            Ends::Multipath(multi) => multi,
            Ends::Plain(_) => unreachable!("the slot of a subflow names such a connection"),
        }
    }

    /// Starts a subflow on each path that is present.
    pub(crate) fn begin_subflows(&mut self, connection: usize) {
        let flow = self.connections[connection].flow as usize;
        for position in 0..self.scenario.flows[flow].paths.len() {
            let path = self.scenario.flows[flow].paths[position];
            if self.is_present(path) {
                self.begin_subflow(connection, position);
            }
        }
        self.pump_multi(connection);
    }

    fn begin_subflow(&mut self, connection: usize, position: usize) {
        let flow = self.connections[connection].flow as usize;
        let plan = &self.scenario.flows[flow];
        let path = plan.paths[position];
        let backup = plan.multipath.as_ref().is_some_and(|m| m.backup.contains(&position));
        let slot = self.slot_for(flow, path, position as u8);
        let number = self.connections[connection].number;
        let begins = &mut self.multi(connection).begins[position];
        let begin = *begins;
        *begins += 1;
        let streams = &self.flows[flow].streams[position];
        let hash = self.hash(path, streams, (number, begin));
        let rng = streams.stream(number, begin);
        let controller = self.new_controller(flow, rng);
        let slot = self.new_slot(Slot { connection: connection as u32, hash, ..slot });
        let multi = self.multi(connection);
        multi.slots[position] = slot;
        multi.sender.on_path_up(position, backup, controller);
        multi.receiver.on_path_up(position);
        self.log_slot(slot, path);
    }

    fn end_subflow(&mut self, connection: usize, position: usize) {
        let multi = self.multi(connection);
        let slot = std::mem::replace(&mut multi.slots[position], NONE);
        let (sender, receiver) = (multi.sender.subflow(position), multi.receiver.subflow(position));
        multi.gone.add_subflow(sender, receiver);
        multi.gone_by_path[position].add_subflow(sender, receiver);
        multi.sender.on_path_down(position);
        multi.receiver.on_path_down(position);
        if slot != NONE {
            self.abandon_slot(slot);
        }
    }

    /// Whether a path is currently present.
    fn is_present(&self, path: usize) -> bool {
        let spans = &self.scenario.paths[path].absent;
        !spans.iter().any(|(from, to)| (*from..*to).contains(&self.now))
    }

    /// Schedules the changes of paths' presence. Simultaneous ones follow the
    /// order of the paths' names, regardless of their order in the file.
    pub(crate) fn arm_path_changes(&mut self) {
        let first = self.slot_sources_end() + self.scenario.flows.len();
        let paths = &self.scenario.paths;
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|path| &paths[*path].name);
        for path in order {
            for (from, to) in &paths[path].absent {
                self.queue.push(*from, first + path);
                self.queue.push(*to, first + path);
            }
        }
    }

    /// Handles a path that appears or disappears, and with it its subflows.
    pub(crate) fn on_path_change(&mut self, path: usize) {
        let present = self.is_present(path);
        for flow in self.flows_by_name() {
            let plan = &self.scenario.flows[flow];
            let position = plan.paths.iter().position(|p| *p == path);
            let Some(position) = position.filter(|_| plan.multipath.is_some()) else { continue };
            let live: Vec<u32> = self.flows[flow].live.values().copied().collect();
            for connection in live.into_iter().map(|index| index as usize) {
                match (present, self.multi(connection).slots[position]) {
                    (true, NONE) => self.begin_subflow(connection, position),
                    (false, slot) if slot != NONE => self.end_subflow(connection, position),
                    _ => continue,
                }
                self.pump_multi(connection);
            }
        }
    }

    #[inline(never)]
    pub(crate) fn on_subflow_segment(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        let Slot { connection, position, .. } = self.slots[index];
        if connection == NONE {
            self.note(packet.flow, Event::Discard { packet });
            return self.leave_network(index);
        }
        if L::WRITES {
            let receiver = &self.multi(connection as usize).receiver;
            let subflow = receiver.subflow(usize::from(position));
            let old = subflow.is_some_and(|subflow| subflow.discards(&packet.to_segment()));
            self.note(packet.flow, Event::Receive { packet, old });
        }
        let now = self.now;
        let connection = connection as usize;
        let path = usize::from(position);
        let Connection { home, ends: Ends::Multipath(multi), .. } =
            &mut self.connections[connection]
        else {
            unreachable!("the slot of a subflow names such a connection")
        };
        let home = *home;
        let MultipathEnds { sender, receiver, .. } = &mut **multi;
        let rtt = || sender.slowest_rtt();
        let (segment, ecn) = (packet.to_segment(), packet.ecn());
        let mapping = |number| sender.mapping(path, number);
        let arrival = receiver.on_segment(now, path, &segment, ecn, rtt, mapping);
        self.delivered_packets += u64::from(arrival.subflow_segments);
        if L::WRITES {
            self.log_arrival(connection, path, packet, &arrival);
        }
        let slot = &mut self.slots[home as usize];
        let watched = slot.watched;
        slot.note_change(&mut self.changed);
        if arrival.ack_now {
            self.send_subflow_ack(index, connection, path);
        } else {
            self.arm(index, ACKNOWLEDGEMENT, arrival.timer);
        }
        for other in arrival.window_updates.iter() {
            let slot = self.multi(connection).slots[other];
            self.send_subflow_ack(slot as usize, connection, other);
        }
        if watched && arrival.delivered_bytes > 0 {
            self.tell_delivered(connection, arrival.delivered_bytes);
        }
        self.leave_network(index);
    }

    /// Logs what a subflow delivered, and what the connection delivered.
    fn log_arrival(
        &mut self,
        connection: usize,
        path: usize,
        packet: &Packet,
        arrival: &MultipathArrival,
    ) {
        let home = self.connections[connection].home;
        let receiver = &self.multi(connection).receiver;
        let next = receiver.subflow(path).map_or(0, knee_transport::Receiver::next);
        let data_next = receiver.data_ack().next;
        if arrival.subflow_segments > 0 {
            let (segments, bytes) = (arrival.subflow_segments, arrival.subflow_bytes);
            let first = next.wrapping_sub(segments);
            self.note(packet.flow, Event::Deliver { first, segments, bytes });
        }
        if arrival.delivered_bytes > 0 {
            let bytes = arrival.delivered_bytes;
            self.note(home, Event::DeliverData { offset: data_next - bytes, bytes });
        }
    }

    fn send_subflow_ack(&mut self, index: usize, connection: usize, path: usize) {
        let Ends::Multipath(multi) = &mut self.connections[connection].ends else { return };
        let receiver = &mut multi.receiver;
        let (slot, extra) = self.extras.place();
        extra.data = receiver.data_ack();
        let Some((ack, has_details)) = receiver.make_ack(path, &mut extra.details) else {
            self.extras.take(slot);
            return;
        };
        extra.has_details = has_details;
        let option_bytes = if has_details { extra.details.option_bytes() } else { 0 };
        self.put_ack(index, &ack, Some(slot), option_bytes);
    }

    #[inline(never)]
    pub(crate) fn on_subflow_ack(&mut self, packet: &Packet) {
        let index = packet.flow as usize;
        let Slot { connection, position, .. } = self.slots[index];
        let extra = packet.extra().map(|slot| self.extras.take(slot));
        let (Some(extra), false) = (extra, connection == NONE) else {
            self.note(packet.flow, Event::Discard { packet });
            return self.leave_network(index);
        };
        let connection = connection as usize;
        let path = usize::from(position);
        let now = self.now;
        let details = extra.has_details.then_some(&extra.details);
        let Connection { home, ends: Ends::Multipath(multi), .. } =
            &mut self.connections[connection]
        else {
            return;
        };
        let home = *home as usize;
        let sender = &mut multi.sender;
        let waits_for = sender.on_ack(now, path, &packet.to_ack(), details, extra.data);
        if L::WRITES {
            let in_flight = sender.subflow(path).map_or(0, Sender::in_flight);
            self.note(packet.flow, Event::AckReceive { packet, in_flight });
        }
        match waits_for {
            None => self.pump_multi(connection),
            Some(timers) => {
                self.arm(index, RETRANSMISSION, timers.subflow);
                self.note_and_arm(home, CONNECTION, timers.silence);
            }
        }
        if self.slots[home].asking {
            self.send_first_requests(connection);
        } else if self.slots[home].closing {
            self.complete_if_done(connection);
        }
        self.leave_network(index);
    }

    /// Sends what the connection has to send now and schedules its timers.
    pub(crate) fn pump_multi(&mut self, connection: usize) {
        let home = self.connections[connection].home as usize;
        if let Wait::Until(time) = self.pump_segments(connection) {
            self.arm(home, PACING, time);
        }
        self.arm_multi(connection, home);
    }

    /// Sends in bursts, unless each segment is logged, with the sender's state at that time.
    #[inline(always)]
    fn pump_segments(&mut self, connection: usize) -> Wait {
        let now = self.now;
        loop {
            let multi = self.multi(connection);
            if !L::WRITES {
                if let Some((path, burst)) = multi.sender.poll_burst(now) {
                    let slot = multi.slots[path] as usize;
                    let ecn = multi.subflow(path).map_or(Ecn::NotCapable, Sender::ecn);
                    self.put_burst(slot, &burst, ecn);
                    continue;
                }
                if let Some(wait) = multi.sender.poll_wait() {
                    return wait;
                }
            }
            match multi.sender.poll_transmit(now) {
                MultipathTransmit::Segment(path, segment) => {
                    let slot = multi.slots[path] as usize;
                    let ecn = multi.subflow(path).map_or(Ecn::NotCapable, Sender::ecn);
                    self.put_alone(slot, &segment, ecn);
                }
                MultipathTransmit::At(time) => return Wait::Until(time),
                MultipathTransmit::Nothing => return Wait::ForEvent,
            }
        }
    }

    #[inline(never)]
    fn put_alone(&mut self, slot: usize, segment: &Segment, ecn: Ecn) {
        self.put_segment(slot, segment, ecn);
    }

    /// Schedules the timers of a connection whose paths had events.
    fn arm_multi(&mut self, connection: usize, home: usize) {
        let mut timer = Time::MAX;
        let (touched, sent) = self.multi(connection).sender.take_touched();
        for path in touched.union(sent).iter() {
            let MultipathEnds { sender, slots, .. } = self.multi(connection);
            let (slot, deadline) = (slots[path], sender.subflow_timer(path));
            if touched.contains(path) {
                timer = timer.min(sender.timers(path).silence);
            }
            if slot != NONE {
                self.arm(slot as usize, RETRANSMISSION, deadline);
            }
        }
        self.note_and_arm(home, CONNECTION, timer);
    }

    pub(crate) fn on_subflow_timer(&mut self, index: usize, timer: usize) {
        let Slot { connection, position, abandoned, .. } = self.slots[index];
        if connection == NONE || abandoned {
            return;
        }
        debug_assert!(self.slots[index].ends == MULTIPATH);
        let connection = connection as usize;
        let path = usize::from(position);
        match (timer, position) {
            (PACING, HOME) => {
                let now = self.now;
                self.multi(connection).sender.on_pacing_timer(now);
                self.pump_multi(connection);
            }
            (_, HOME) => self.on_connection_timer(connection),
            (RETRANSMISSION, _) => self.on_subflow_retransmission(index, connection, path),
            _ => {
                let deadline = self.multi(connection).receiver.timer(path);
                if deadline > self.now {
                    return self.arm(index, ACKNOWLEDGEMENT, deadline);
                }
                self.send_subflow_ack(index, connection, path);
            }
        }
    }

    fn on_subflow_retransmission(&mut self, index: usize, connection: usize, path: usize) {
        let now = self.now;
        let sender = &mut self.multi(connection).sender;
        let deadline = sender.subflow_timer(path);
        if deadline > now {
            return self.arm(index, RETRANSMISSION, deadline);
        }
        let kind = sender.subflow(path).map(Sender::timer_kind);
        sender.on_subflow_timer(now, path);
        if let (Some(TimerKind::Controller), Some(reason)) =
            (kind, sender.subflow(path).and_then(Sender::failure))
        {
            let reason = reason.to_owned();
            return self.fail_controller(index, reason);
        }
        if let Some(kind) = kind {
            self.log_timeout(index, kind);
        }
        self.pump_multi(connection);
    }

    /// Handles the arrival of requests, or a path that has been silent for too long.
    fn on_connection_timer(&mut self, connection: usize) {
        let now = self.now;
        let sender = &mut self.multi(connection).sender;
        let due = sender.timer_of_all();
        if due <= now {
            sender.on_timer(now);
        }
        let due = self.multi(connection).sender.timer_of_all();
        let home = self.connections[connection].home as usize;
        self.arm(home, CONNECTION, due);
        self.pump_multi(connection);
        self.send_requests(connection);
    }
}
