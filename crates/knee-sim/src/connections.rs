//! Connections and their slots, which the event queue and packets refer to.
//!
//! A plain connection has one slot. A multipath connection has one for each
//! subflow and one of its own, for its timers. Slots and connections of
//! finished transfers are reused once none of their packets is in the network.

use crate::SimulationError;
use crate::ahead::MANY_SLOTS;
use crate::log::{Event, PacketLog};
use crate::queue::{Armed, SOURCES_MAX};
use crate::recorder::Sums;
use crate::simulation::{CONNECTION, Simulation, TIMERS};
use crate::subflows::MultipathEnds;
use crate::topology::PathRoute;
use knee_cc::{Selection, SelectionError};
use knee_scenario::{Algorithms, ControllerStreams, Flow, tunnel_hash};
use knee_transport::{Receiver, Sender};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Value of `ends` in a slot that is not a plain connection's.
pub const MULTIPATH: u32 = u32::MAX;
/// Connection number of a slot that no longer has a connection.
pub const NONE: u32 = u32::MAX;
/// Path position of a connection's own slot.
pub const HOME: u8 = u8::MAX;

/// The object that packets and timers refer to.
#[derive(Clone, Debug)]
// Aligned to cache lines, as the ends of a connection are.
#[repr(align(64))]
pub struct Slot {
    /// Where its packets enter the network.
    pub route: PathRoute,
    pub armed: [Armed; TIMERS],
    /// The connection.
    pub connection: u32,
    /// Number of the two ends of a plain connection, or [`MULTIPATH`].
    pub ends: u32,
    /// Packets in the network.
    pub in_network: u32,
    /// Its own number, which earlier slots may have had.
    pub index: u32,
    /// Number in the packet log, unique in the run.
    pub serial: u32,
    /// Flow hash of its packets, for queues that separate flows.
    pub hash: u32,
    /// Bytes of headers.
    pub header: u16,
    /// Position among the connection's paths, or [`HOME`].
    pub position: u8,
    /// Whether the application is notified of deliveries.
    pub watched: bool,
    /// Whether the connection needs no note for the next sample.
    pub noted: bool,
    /// Whether requests wait for the handshake.
    pub asking: bool,
    /// Whether the connection ends when everything is acknowledged.
    pub closing: bool,
    /// Whether it is no longer used; packets may still be in the network.
    pub abandoned: bool,
}

impl Slot {
    /// Notes in `changed` that the next sample must visit the connection, given its
    /// home slot.
    #[inline]
    pub fn note_change(&mut self, changed: &mut Vec<u32>) {
        if !self.noted {
            self.noted = true;
            changed.push(self.connection);
        }
    }
}

/// A connection's two ends.
pub enum Ends {
    /// By number, in the arrays of plain ends.
    Plain(u32),
    /// Ends of a multipath connection.
    Multipath(Box<MultipathEnds>),
}

/// A connection of an application.
pub struct Connection {
    /// Flow, by index.
    pub flow: u32,
    /// Number that the application gave it.
    pub number: u32,
    /// Slot of its timers; for a plain connection, its only slot.
    pub home: u32,
    pub ends: Ends,
    pub started: Time,
    /// When the last byte was acknowledged after it was closed.
    pub completed: Option<Time>,
    /// Bytes that the application requested or wrote.
    pub size: u64,
    /// Its own part of the flow's [`sums`](crate::applications::FlowState::sums).
    pub sampled: Box<Sums>,
    /// Pending requests, with the time at which they reach the sending end;
    /// [`Time::MAX`] before the handshake.
    pub requests: VecDeque<(Time, u64)>,
}

/// Replaces an algorithm that the program refused to create, until the run ends
/// for that reason.
pub(crate) fn stand_in<T>(
    build: impl FnOnce(&Selection) -> Result<T, SelectionError>,
    name: &str,
) -> T {
    build(&Selection::named(name)).expect("it is built in")
}

impl<L: PacketLog> Simulation<'_, L> {
    /// Allocates a slot for a path, or for a connection itself.
    pub(crate) fn new_slot(&mut self, slot: Slot) -> u32 {
        let index = match self.free_slots.pop() {
            Some(index) => index,
            None => {
                self.slots.push(slot.clone());
                if self.slots.len() == MANY_SLOTS {
                    self.begin_to_look_ahead();
                }
                self.slots.len() as u32 - 1
            }
        };
        self.slots[index as usize] = Slot { index, serial: self.slots_begun, ..slot };
        self.slots_begun += 1;
        let sources = self.links.len() + TIMERS * self.slots.len();
        if sources > self.slot_sources_end() {
            self.failed.get_or_insert(SimulationError::TooLarge { sources, limit: SOURCES_MAX });
        }
        index
    }

    pub(crate) fn slot_for(&self, flow: usize, path: usize, position: u8) -> Slot {
        Slot {
            route: self.topology.paths[path],
            armed: [Armed::NOTHING; TIMERS],
            connection: NONE,
            ends: MULTIPATH,
            in_network: 0,
            index: 0,
            serial: 0,
            hash: 0,
            header: self.scenario.flows[flow].transport.header as u16,
            position,
            watched: false,
            noted: true,
            asking: false,
            closing: false,
            abandoned: false,
        }
    }

    /// Tells the packets of a connection's subflow from others, for queues that
    /// separate flows. In a tunnel they see the tunnel's headers, which all of its
    /// packets share.
    pub(crate) fn hash(
        &self,
        path: usize,
        streams: &ControllerStreams,
        (connection, begin): (u32, u32),
    ) -> u32 {
        match &self.scenario.paths[path].tunnel {
            Some(name) => tunnel_hash(self.scenario.seed, name),
            None => streams.hash(connection, begin),
        }
    }

    /// Opens a connection for a flow's application.
    pub(crate) fn open(&mut self, flow: usize, number: u32) {
        let multipath = self.scenario.flows[flow].multipath.is_some();
        let first = self.scenario.flows[flow].paths[0];
        let position = if multipath { HOME } else { 0 };
        let hash = self.hash(first, &self.flows[flow].streams[0], (number, 0));
        let home = self.new_slot(Slot { hash, ..self.slot_for(flow, first, position) });
        let ends = if multipath {
            Ends::Multipath(Box::new(self.new_multi(flow)))
        } else {
            Ends::Plain(self.new_plain(flow, number, home))
        };
        let connection = Connection {
            flow: flow as u32,
            number,
            home,
            ends,
            started: self.now,
            completed: None,
            size: 0,
            sampled: Box::new(Sums::of_paths(self.flows[flow].totals_by_path.len())),
            requests: VecDeque::new(),
        };
        let index = match self.free_connections.pop() {
            Some(index) => {
                self.connections[index as usize] = connection;
                index
            }
            None => {
                self.connections.push(connection);
                self.connections.len() as u32 - 1
            }
        };
        self.flows[flow].live.insert(number, index);
        let slot = &mut self.slots[home as usize];
        slot.connection = index;
        slot.watched = self.flows[flow].watches;
        slot.noted = false;
        self.log_slot(home, first);
        if multipath {
            self.begin_subflows(index as usize);
        } else {
            self.pump(home as usize);
        }
    }

    /// Creates both ends of a plain connection; they have the number of its slot.
    fn new_plain(&mut self, flow: usize, number: u32, home: u32) -> u32 {
        let transport = &self.scenario.flows[flow].transport;
        let rng = self.flows[flow].streams[0].stream(number, 0);
        let sender = Sender::new(transport, self.new_controller(flow, rng));
        let receiver = Receiver::new(transport);
        let ends = self.free_ends.pop().unwrap_or(self.senders.len() as u32);
        match self.senders.get_mut(ends as usize) {
            Some(old) => {
                *old = sender;
                self.receivers[ends as usize] = receiver;
            }
            None => {
                self.senders.push(sender);
                self.receivers.push(receiver);
            }
        }
        self.slots[home as usize].ends = ends;
        ends
    }

    pub(crate) fn new_controller(
        &mut self,
        flow: usize,
        rng: ChaCha8Rng,
    ) -> Box<dyn knee_cc::Controller> {
        let plan = &self.scenario.flows[flow];
        let transport = &plan.transport;
        let init = knee_cc::Init {
            mss: transport.mss,
            mtu: transport.mss + transport.header,
            initial_window: u64::from(transport.initial_window) * u64::from(transport.mss),
            rng,
        };
        let prepared = &self.controllers[self.flows[flow].prepared];
        prepared.build(init.clone()).unwrap_or_else(|refused| {
            self.failed.get_or_insert(refused.into());
            let Algorithms { controllers, .. } = self.algorithms;
            stand_in(|default| controllers.build(default, init), "reno")
        })
    }

    /// Logs which path a slot's packets take.
    pub(crate) fn log_slot(&mut self, slot: u32, path: usize) {
        if !L::WRITES {
            return;
        }
        let scenario = self.scenario;
        let Slot { connection, position, ends, .. } = self.slots[slot as usize];
        let connection = &self.connections[connection as usize];
        let event = match &connection.ends {
            Ends::Multipath(multi) if position == HOME => {
                let window = multi.receiver.data_ack().window_end;
                Event::OpenConnection { window }
            }
            _ => {
                let connection_number =
                    (ends == MULTIPATH).then(|| self.slots[connection.home as usize].serial);
                let of = connection.flow;
                let Flow { transport: config, send_jitter, .. } = &scenario.flows[of as usize];
                let send_jitter = *send_jitter;
                Event::Open { path, config, connection: connection_number, of, send_jitter }
            }
        };
        self.note(slot, event);
    }

    /// Logs that everything written is acknowledged.
    fn log_complete(&mut self, connection: usize) {
        let bytes = self.acknowledged(connection);
        let home = self.connections[connection].home;
        self.note(home, Event::Complete { bytes });
    }

    /// Adds data to the sending end.
    pub(crate) fn write(&mut self, connection: usize, bytes: u64) {
        match &mut self.connections[connection].ends {
            Ends::Plain(ends) => {
                self.senders[*ends as usize].write(bytes);
                self.pump(self.connections[connection].home as usize);
            }
            Ends::Multipath(multi) => {
                multi.sender.write(bytes);
                self.pump_multi(connection);
            }
        }
    }

    /// Stops the application's sending; requests under way are not answered.
    pub(crate) fn stop_sending(&mut self, connection: usize) {
        self.connections[connection].requests.clear();
        let home = self.connections[connection].home as usize;
        self.slots[home].asking = false;
        match &mut self.connections[connection].ends {
            Ends::Plain(ends) => self.senders[*ends as usize].stop(),
            Ends::Multipath(multi) => multi.sender.stop(),
        }
        self.note_change(home);
        self.close(connection);
    }

    /// Closes the connection to further requests: it ends when everything is acknowledged.
    pub(crate) fn close(&mut self, connection: usize) {
        let home = self.connections[connection].home as usize;
        self.slots[home].closing = true;
        self.complete_if_done(connection);
    }

    pub(crate) fn complete_if_done(&mut self, connection: usize) {
        let state = &self.connections[connection];
        let done = state.requests.is_empty()
            && match &state.ends {
                Ends::Plain(ends) => self.senders[*ends as usize].is_complete(),
                Ends::Multipath(multi) => multi.sender.is_complete(),
            };
        if done && self.slots[state.home as usize].closing {
            self.on_complete(connection);
        }
    }

    fn is_established(&self, connection: usize) -> bool {
        match &self.connections[connection].ends {
            Ends::Plain(ends) => self.senders[*ends as usize].is_established(),
            Ends::Multipath(multi) => multi.sender.is_established(),
        }
    }

    /// Sends a request to the sending end: it arrives after the return path's
    /// propagation delay, and not before the handshake, unaffected by queues or
    /// losses on the return path.
    pub(crate) fn request(&mut self, connection: usize, bytes: u64) {
        let established = self.is_established(connection);
        let flow = self.connections[connection].flow as usize;
        let due = if established { self.now + self.flows[flow].way_back } else { Time::MAX };
        let state = &mut self.connections[connection];
        state.requests.push_back((due, bytes));
        let home = state.home as usize;
        self.slots[home].asking |= !established;
        self.arm(home, CONNECTION, due);
    }

    /// Delivers the requests that are due to the sending end; those that waited
    /// for the handshake are sent once it is complete.
    pub(crate) fn send_requests(&mut self, connection: usize) {
        let flow = self.connections[connection].flow as usize;
        let home = self.connections[connection].home as usize;
        let established = self.is_established(connection);
        if established && self.slots[home].asking {
            self.slots[home].asking = false;
            let due = self.now + self.flows[flow].way_back;
            for request in &mut self.connections[connection].requests {
                request.0 = request.0.min(due);
            }
        }
        while let Some(&(due, bytes)) = self.connections[connection].requests.front() {
            if due > self.now {
                return self.arm(home, CONNECTION, due);
            }
            self.connections[connection].requests.pop_front();
            self.write(connection, bytes);
        }
    }

    /// Called on each ACK while requests wait for the handshake. The connection may
    /// already be closed to further ones.
    #[cold]
    pub(crate) fn send_first_requests(&mut self, connection: usize) {
        self.send_requests(connection);
        self.complete_if_done(connection);
    }

    /// Called on each ACK of a connection with requests to send or an end to reach.
    #[inline(never)]
    pub(crate) fn request_or_complete(&mut self, index: usize) {
        let slot = &self.slots[index];
        let connection = slot.connection as usize;
        if slot.asking {
            self.send_first_requests(connection);
        } else if self.senders[slot.ends as usize].is_complete() {
            self.complete_if_done(connection);
        }
    }

    /// Called when all data of a closed connection is acknowledged.
    #[inline(never)]
    fn on_complete(&mut self, connection: usize) {
        let state = &mut self.connections[connection];
        if state.completed.is_some() {
            return;
        }
        state.completed = Some(self.now);
        let (flow, number, home) = (state.flow as usize, state.number, state.home as usize);
        self.slots[home].closing = false;
        if L::WRITES {
            self.log_complete(connection);
        }
        let transient = self.flows[flow].transient;
        let is_whole = self.is_whole(connection);
        let is_plain = matches!(self.connections[connection].ends, Ends::Plain(_));
        if is_plain || transient {
            self.note_closed(connection);
        }
        if transient {
            self.abandon(connection);
        }
        self.tell_closed(flow, number);
        if is_whole {
            self.release(flow, number);
        }
    }

    /// Whether everything that the application wrote or requested is acknowledged; what was stopped
    /// before its end is not.
    pub(crate) fn is_whole(&self, connection: usize) -> bool {
        let state = &self.connections[connection];
        state.size == u64::MAX || self.acknowledged(connection) >= state.size
    }

    /// Bytes acknowledged.
    pub(crate) fn acknowledged(&self, connection: usize) -> u64 {
        match &self.connections[connection].ends {
            Ends::Plain(ends) => self.senders[*ends as usize].acknowledged(),
            Ends::Multipath(multi) => multi.sender.acknowledged(),
        }
    }

    /// Forgets a connection except for its counters; its slots become free once
    /// their last packets have arrived.
    fn abandon(&mut self, connection: usize) {
        let flow = self.connections[connection].flow as usize;
        let mut totals = std::mem::take(&mut self.flows[flow].totals);
        totals.add(self, connection);
        self.flows[flow].totals = totals;
        let number = self.connections[connection].number;
        self.flows[flow].live.remove(&number);
        let home = self.connections[connection].home;
        let mut slots = vec![home];
        if let Ends::Multipath(multi) = &self.connections[connection].ends {
            slots.extend(multi.slots.iter().filter(|slot| **slot != NONE));
            for (position, totals) in self.flows[flow].totals_by_path.iter_mut().enumerate() {
                multi.add_path(position, totals);
            }
        }
        self.forget_sampled(connection);
        for slot in slots {
            self.abandon_slot(slot);
        }
    }

    pub(crate) fn abandon_slot(&mut self, slot: u32) {
        if self.slots[slot as usize].ends == MULTIPATH {
            self.note(slot, Event::End);
        }
        let slot = &mut self.slots[slot as usize];
        slot.abandoned = true;
        if slot.ends == MULTIPATH && slot.position != HOME {
            // Late packets of a subflow have no receiver.
            slot.connection = NONE;
        }
        if slot.in_network == 0 {
            let index = slot.index;
            self.recycle(index);
        }
    }

    /// Called when the last packet of an abandoned slot has arrived: frees the
    /// slot, and with it the connection whose home it was, and the ends.
    #[cold]
    pub(crate) fn recycle(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.abandoned = false;
        slot.armed = [Armed::NOTHING; TIMERS];
        let (connection, ends, position) = (slot.connection, slot.ends, slot.position);
        if ends != MULTIPATH {
            self.free_ends.push(ends);
            self.note(index, Event::End);
        }
        if ends != MULTIPATH || position == HOME {
            self.free_connections.push(connection);
        }
        self.free_slots.push(index);
    }
}
