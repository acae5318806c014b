//! Carries out applications' requests, and notifies them of deliveries.

use crate::SimulationError;
use crate::connections::Ends;
use crate::log::PacketLog;
use crate::queue::{Armed, Event};
use crate::recorder::Sums;
use crate::simulation::Simulation;
use knee_scenario::{ControllerStreams, application_stream};
use knee_transport::{Counters, Receiver, Sender};
use knee_units::Time;
use knee_workload::{Action, Application};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A flow of the scenario: an application and its connections.
pub struct FlowState {
    pub application: Box<dyn Application>,
    armed: Armed,
    pub started: bool,
    /// When everything that the application requested had arrived.
    pub completed: Option<Time>,
    /// Flows that wait for the transfers of this one.
    pub waiting: Vec<usize>,
    /// Open connections, by the application's number.
    pub live: BTreeMap<u32, u32>,
    /// Sums over the counters of its connections, each as of the first sample
    /// after its last change.
    pub sums: Sums,
    /// Counters of connections that have been forgotten.
    pub totals: Totals,
    /// Counters of connections that have been forgotten, by path, for a multipath flow.
    pub totals_by_path: Vec<Totals>,
    /// Whether connections are forgotten as soon as they end.
    pub transient: bool,
    /// Names of workload and controller, as in rows of connections.
    pub workload: Arc<str>,
    pub controller: Arc<str>,
    /// Which of the run's controllers that is.
    pub prepared: usize,
    /// Whether the application is notified of deliveries.
    pub watches: bool,
    /// Propagation delay from the receiving to the sending end.
    pub way_back: Time,
    /// Random streams of its controllers, by path.
    pub streams: Vec<ControllerStreams>,
}

/// Sums over the counters of connections.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub counters: Counters,
    pub delivered_bytes: u64,
    pub delivered_packets: u64,
    /// Segments acknowledged, including selectively acknowledged ones.
    pub acknowledged_segments: u64,
    /// Segments that arrived marked.
    pub marked_segments: u64,
    /// Number of times that a path was observed to reorder.
    pub reorderings: u64,
    /// Smallest and largest RTT.
    pub rtt: Option<(Time, Time)>,
    /// When bytes were last acknowledged; zero if none were.
    pub last_delivery: Time,
    pub reinjected_bytes: u64,
    pub duplicate_bytes: u64,
    /// Time spent in reassembly, summed over bytes, in byte nanoseconds.
    pub blocked: u128,
    pub reassembly_peak: u64,
    pub suspicions: u64,
}

impl Totals {
    /// Adds a connection that still exists.
    pub fn add<L: PacketLog>(&mut self, run: &Simulation<'_, L>, connection: usize) {
        match &run.connections[connection].ends {
            Ends::Plain(ends) => {
                let receiver = &run.receivers[*ends as usize];
                self.add_sender(&run.senders[*ends as usize]);
                self.add_receiver(receiver);
                self.delivered_bytes += receiver.delivered_bytes();
            }
            Ends::Multipath(multi) => {
                for path in 0..multi.sender.path_count() {
                    multi.subflow(path).into_iter().for_each(|sender| self.add_sender(sender));
                    multi.receiver.subflow(path).into_iter().for_each(|r| self.add_receiver(r));
                }
                let before = self.delivered_bytes;
                self.join(&multi.gone);
                let reassembly = multi.receiver.reassembly();
                // Subflows may deliver data twice; this count has no duplicates.
                self.delivered_bytes = before + reassembly.next();
                self.duplicate_bytes += reassembly.duplicate();
                self.blocked += reassembly.blocked();
                self.reassembly_peak = self.reassembly_peak.max(reassembly.waiting_peak());
                self.reinjected_bytes += multi.sender.counters().reinjected_bytes;
                self.suspicions += multi.sender.counters().suspicions;
            }
        }
    }

    /// Adds the counters of one path's sending end.
    pub fn add_sender(&mut self, sender: &Sender) {
        self.counters.add(sender.counters());
        self.acknowledged_segments += sender.delivered_segments();
        self.reorderings += sender.reorderings();
        self.rtt = wider(self.rtt, sender.rtt().range());
        self.last_delivery = self.last_delivery.max(sender.last_delivery());
    }

    fn add_receiver(&mut self, receiver: &Receiver) {
        self.delivered_packets += receiver.delivered_segments();
        self.marked_segments += receiver.marked_segments();
    }

    /// Adds a subflow, with the data it delivered in its own order.
    pub fn add_subflow(&mut self, sender: Option<&Sender>, receiver: Option<&Receiver>) {
        sender.into_iter().for_each(|sender| self.add_sender(sender));
        if let Some(receiver) = receiver {
            self.add_receiver(receiver);
            self.delivered_bytes += receiver.delivered_bytes();
        }
    }

    /// Adds the counters of removed subflows.
    pub fn join(&mut self, gone: &Totals) {
        self.counters.add(&gone.counters);
        self.delivered_packets += gone.delivered_packets;
        self.acknowledged_segments += gone.acknowledged_segments;
        self.marked_segments += gone.marked_segments;
        self.reorderings += gone.reorderings;
        self.delivered_bytes += gone.delivered_bytes;
        self.rtt = wider(self.rtt, gone.rtt);
        self.last_delivery = self.last_delivery.max(gone.last_delivery);
    }
}

fn wider(a: Option<(Time, Time)>, b: Option<(Time, Time)>) -> Option<(Time, Time)> {
    match (a, b) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (one, other) => one.or(other),
    }
}

impl<L: PacketLog> Simulation<'_, L> {
    pub(crate) fn add_flow(&mut self, index: usize) -> Result<(), SimulationError> {
        let scenario = self.scenario;
        let plan = &scenario.flows[index];
        // A group of flows has one controller.
        if index == 0 || scenario.flows[index - 1].controller != plan.controller {
            self.controllers.push(self.algorithms.controllers.prepare(&plan.controller)?);
        }
        if let Some(multipath) = &plan.multipath {
            self.algorithms.schedulers.check(&multipath.scheduler)?;
        }
        let rng = application_stream(scenario.seed, plan);
        let application = knee_workload::build(&plan.workload, rng);
        let positions = 0..plan.paths.len();
        let ways_back = plan.paths.iter().map(|path| scenario.way_back(*path));
        self.flows.push(FlowState {
            prepared: self.controllers.len() - 1,
            watches: application.wants_deliveries(),
            application,
            armed: Armed::NOTHING,
            started: false,
            completed: None,
            waiting: Vec::new(),
            live: BTreeMap::new(),
            sums: Sums::of_paths(plan.paths.len()),
            totals: Totals::default(),
            totals_by_path: vec![Totals::default(); plan.paths.len()],
            transient: plan.workload.properties().transient,
            workload: plan.workload.name().into(),
            controller: plan.controller.name.as_str().into(),
            way_back: ways_back.min().unwrap_or(Time::ZERO),
            streams: positions.map(|at| ControllerStreams::new(scenario, plan, at)).collect(),
        });
        Ok(())
    }

    /// Tells flows which others wait for them.
    pub(crate) fn link_waiting(&mut self) {
        for (index, plan) in self.scenario.flows.iter().enumerate() {
            if let Some(after) = plan.after {
                self.flows[after].waiting.push(index);
            }
        }
    }

    /// Schedules the starts. Simultaneous ones follow the order of the flows'
    /// names, regardless of their order in the file.
    pub(crate) fn arm_starts(&mut self) {
        for flow in self.flows_by_name() {
            self.arm_application(flow, self.scenario.flows[flow].start);
        }
    }

    pub(crate) fn flows_by_name(&self) -> Vec<usize> {
        let flows = &self.scenario.flows;
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|index| (&flows[*index].name, flows[*index].index));
        order
    }

    fn arm_application(&mut self, flow: usize, time: Time) {
        if time < self.flows[flow].armed.time {
            self.flows[flow].armed = self.queue.push(time, self.slot_sources_end() + flow);
        }
    }

    /// Handles an application's timer: it starts, stops, or has reached a time
    /// it waited for.
    pub(crate) fn on_application_timer(&mut self, flow: usize, event: Event) {
        if !self.flows[flow].armed.take(event) {
            return;
        }
        let plan = &self.scenario.flows[flow];
        let stop = plan.stop.unwrap_or(Time::MAX);
        if !self.flows[flow].started {
            self.flows[flow].started = true;
        } else if self.now >= stop {
            return self.stop_application(flow);
        }
        self.drive(flow);
        if stop > self.now {
            self.arm_application(flow, stop);
        }
    }

    fn stop_application(&mut self, flow: usize) {
        let since = self.now - self.scenario.flows[flow].start;
        self.flows[flow].application.stop(since);
        let live: Vec<u32> = self.flows[flow].live.keys().copied().collect();
        for number in live {
            // An action on one connection may end another.
            if let Some(connection) = self.flows[flow].live.get(&number) {
                self.stop_sending(*connection as usize);
            }
        }
    }

    /// Carries out the actions that the application requests now.
    pub(crate) fn drive(&mut self, flow: usize) {
        let start = self.scenario.flows[flow].start;
        let since = self.now - start;
        while let Some(action) = self.flows[flow].application.poll(since) {
            self.carry_out(flow, action);
        }
        let state = &mut self.flows[flow];
        if state.completed.is_none() && state.application.is_complete() {
            state.completed = Some(self.now);
        }
        let timer = state.application.timer();
        if timer != Time::MAX {
            self.arm_application(flow, (start + timer).max(self.now));
        }
    }

    fn carry_out(&mut self, flow: usize, action: Action) {
        match action {
            Action::Open { connection } => {
                self.open(flow, connection);
                for place in 0..self.flows[flow].waiting.len() {
                    let waiting = self.flows[flow].waiting[place];
                    self.flows[waiting].application.on_arrival();
                    if self.flows[waiting].started {
                        self.drive(waiting);
                    }
                }
            }
            Action::Push { connection, bytes } => {
                let index = self.connection(flow, connection);
                let state = &mut self.connections[index];
                state.size = state.size.saturating_add(bytes);
                match self.scenario.flows[flow].after {
                    Some(after) if !self.is_done(after, connection) => {
                        self.connections[index].requests.push_back((Time::MAX, bytes));
                    }
                    _ => self.write(index, bytes),
                }
            }
            Action::Request { connection, bytes } => {
                let index = self.connection(flow, connection);
                self.connections[index].size += bytes;
                self.request(index, bytes);
            }
            Action::Close { connection } => {
                let index = self.connection(flow, connection);
                self.close(index);
            }
        }
    }

    fn connection(&self, flow: usize, number: u32) -> usize {
        let found = self.flows[flow].live.get(&number);
        *found.expect("an application speaks only of connections that it opened") as usize
    }

    /// Whether a flow's transfer is acknowledged to its end. A mix forgets those that are, but nothing
    /// asks for them: what waits for one is told when it ends.
    fn is_done(&self, flow: usize, number: u32) -> bool {
        let connection = self.flows[flow].live.get(&number).map(|index| *index as usize);
        connection.is_some_and(|index| {
            self.connections[index].completed.is_some() && self.is_whole(index)
        })
    }

    /// Sends what waited for a transfer of a flow.
    pub(crate) fn release(&mut self, flow: usize, number: u32) {
        for place in 0..self.flows[flow].waiting.len() {
            let waiting = self.flows[flow].waiting[place];
            let Some(connection) = self.flows[waiting].live.get(&number) else { continue };
            let connection = *connection as usize;
            let now = self.now;
            if let Some(request) = self.connections[connection].requests.front_mut() {
                request.0 = now;
                self.send_requests(connection);
            }
        }
    }

    /// Notifies a listening application of bytes delivered on a connection.
    pub(crate) fn tell_delivered(&mut self, connection: usize, bytes: u64) {
        let (flow, number) =
            (self.connections[connection].flow as usize, self.connections[connection].number);
        let since = self.now - self.scenario.flows[flow].start;
        self.flows[flow].application.on_delivered(since, number, bytes);
        self.drive(flow);
    }

    /// Notifies the application that all data of a closed connection is acknowledged.
    pub(crate) fn tell_closed(&mut self, flow: usize, number: u32) {
        let since = self.now - self.scenario.flows[flow].start;
        self.flows[flow].application.on_closed(since, number);
        self.drive(flow);
    }
}
