//! Turns the state of a run into records.

use crate::applications::Totals;
use crate::connections::{Connection, Ends};
use crate::log::PacketLog;
use crate::simulation::Simulation;
use crate::subflows::MultipathEnds;
use knee_cc::Decision;
use knee_record::{
    BoundedRows, ClassSample, Cost, Error, FlowRecord, FlowSample, LinkSample, ObjectRecord,
    PathRecord, Records, SampleSink,
};
use knee_transport::{Receiver, Sender};
use knee_units::Time;

/// The time series and connections of a run.
pub struct Recorder<'s> {
    all: BoundedRows<'s>,
    last: Option<Time>,
    /// The rows of flows at one time, as memory to reuse: copying a row that has just been written
    /// waits for it.
    rows: Vec<FlowSample>,
}

impl<'s> Recorder<'s> {
    pub fn new(sink: &'s mut dyn SampleSink) -> Recorder<'s> {
        Recorder { all: BoundedRows::new(sink), last: None, rows: Vec::new() }
    }

    /// Adds a row for each running flow and for each link.
    pub fn sample<L: PacketLog>(&mut self, run: &mut Simulation<'_, L>) -> Result<(), Error> {
        if self.last == Some(run.now()) {
            return Ok(());
        }
        self.last = Some(run.now());
        run.take_changes();
        let mut count = 0;
        for flow in 0..run.flows.len() {
            if run.flows[flow].started && !self.ended(run, flow) {
                if count == self.rows.len() {
                    self.rows.push(FlowSample::default());
                }
                fill_flow_row(run, flow, &mut self.rows[count]);
                count += 1;
            }
        }
        for row in &self.rows[..count] {
            self.all.flow(row)?;
        }
        for number in 0..count {
            self.sample_paths(run, self.rows[number].flow as usize)?;
        }
        for link in 0..run.scenario.links.len() {
            let now = run.now();
            let row = LinkSample::of(&mut run.links[link].link, link, now);
            self.all.link(&row)?;
            for row in ClassSample::of(&mut run.links[link].link, link, now) {
                self.all.class(&row)?;
            }
        }
        Ok(())
    }

    /// Adds a row for each path of a multipath flow.
    fn sample_paths<L: PacketLog>(
        &mut self,
        run: &Simulation<'_, L>,
        flow: usize,
    ) -> Result<(), Error> {
        for position in 0..run.flows[flow].sums.paths.len() {
            let row = path_row(run, flow, position);
            self.all.path(&row)?;
        }
        Ok(())
    }

    /// Whether a flow is complete and already has its last row.
    fn ended<L: PacketLog>(&self, run: &Simulation<'_, L>, flow: usize) -> bool {
        let interval = run.scenario.sample_interval;
        run.flows[flow].completed.is_some_and(|at| at + interval <= run.now())
    }

    /// Adds the last rows.
    pub fn finish<L: PacketLog>(&mut self, run: &mut Simulation<'_, L>) -> Result<(), Error> {
        self.sample(run)?;
        run.note_cut_off();
        self.take_closed(run)
    }

    /// Takes the rows of connections that have ended.
    pub fn take_closed<L: PacketLog>(&mut self, run: &mut Simulation<'_, L>) -> Result<(), Error> {
        run.closed.drain(..).try_for_each(|row| self.all.connection(&row))
    }

    /// Returns the records of a run that ended at `end`.
    pub fn into_records<L: PacketLog>(self, run: &Simulation<'_, L>, end: Time) -> Records {
        let every = || 0..run.flows.len();
        let records = Records {
            flows: every().map(|flow| flow_record(run, flow, end)).collect(),
            paths: every().flat_map(|flow| path_records(run, flow)).collect(),
            objects: every().flat_map(|flow| objects(run, flow)).collect(),
            link_names: run.scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns: end.as_nanos(),
            interrupted: end < run.scenario.duration,
            cost: Cost { events: run.events, data_packets: run.delivered_packets },
            ..Records::default()
        };
        self.all.into_records(records).with_rates(run.scenario)
    }
}

fn empty_sample<L: PacketLog>(run: &Simulation<'_, L>, flow: usize, path: usize) -> FlowSample {
    FlowSample {
        flow: flow as u32,
        path: path as u16,
        time_ns: run.now().as_nanos(),
        phase: "idle",
        ..FlowSample::default()
    }
}

/// Sums over the counters of connections, in total and by path; without RTTs
/// and phases, which cannot be summed.
#[derive(Clone, Debug)]
pub struct Sums {
    all: FlowSample,
    /// By path, for a multipath flow.
    paths: Vec<FlowSample>,
}

impl Sums {
    /// Creates empty sums for a flow over `paths` paths.
    pub fn of_paths(paths: usize) -> Sums {
        Sums { all: FlowSample::default(), paths: vec![FlowSample::default(); apart(paths)] }
    }

    /// Sets the sums to those of one connection of a flow over `paths` paths.
    fn fill<L: PacketLog>(&mut self, run: &Simulation<'_, L>, connection: u32, paths: usize) {
        self.all = FlowSample::default();
        add_connection(run, connection, &mut self.all);
        self.paths.resize(apart(paths), FlowSample::default());
        for (position, path) in self.paths.iter_mut().enumerate() {
            *path = path_sample(run, connection, position);
        }
    }

    fn add(&mut self, other: &Sums) {
        self.all.add(&other.all);
        self.paths.iter_mut().zip(&other.paths).for_each(|(one, other)| one.add(other));
    }

    fn take_away(&mut self, other: &Sums) {
        self.all.take_away(&other.all);
        self.paths.iter_mut().zip(&other.paths).for_each(|(one, other)| one.take_away(other));
    }
}

/// Returns how many of a flow's paths are sampled one by one: all, if there are several.
fn apart(paths: usize) -> usize {
    if paths > 1 { paths } else { 0 }
}

impl<L: PacketLog> Simulation<'_, L> {
    /// Updates the sums over connections: only changed ones are visited, since
    /// an overloaded mix has thousands of waiting connections.
    fn take_changes(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        let mut spare = self.spare.take().unwrap_or_else(|| Box::new(Sums::of_paths(0)));
        for index in changed.drain(..) {
            let Connection { flow, number, home, .. } = self.connections[index as usize];
            let state = &self.flows[flow as usize];
            if state.live.get(&number) != Some(&index) {
                // Its counters are already part of the flow's totals.
                continue;
            }
            self.slots[home as usize].noted = false;
            let paths = state.totals_by_path.len();
            self.forget_sampled(index as usize);
            let place = &mut self.connections[index as usize].sampled;
            let mut sampled = std::mem::replace(place, spare);
            sampled.fill(self, index, paths);
            self.flows[flow as usize].sums.add(&sampled);
            let place = &mut self.connections[index as usize].sampled;
            spare = std::mem::replace(place, sampled);
        }
        (self.changed, self.spare) = (changed, Some(spare));
    }

    /// Removes a connection from its flow's sums.
    pub(crate) fn forget_sampled(&mut self, connection: usize) {
        let Connection { flow, sampled, .. } = &self.connections[connection];
        self.flows[*flow as usize].sums.take_away(sampled);
    }
}

/// Phase of a controller that names none; an empty phase means no subflow.
const UNNAMED: &str = "unnamed";

/// Sets `row` to the state of a flow: counters, windows and rates of all its connections; RTTs and
/// phase are those of the subflow that began last.
fn fill_flow_row<L: PacketLog>(run: &Simulation<'_, L>, flow: usize, row: &mut FlowSample) {
    *row = empty_sample(run, flow, run.scenario.flows[flow].paths[0]);
    let state = &run.flows[flow];
    add_totals(row, &state.totals);
    row.delivered_bytes = state.totals.delivered_bytes;
    row.add(&state.sums.all);
    show_last(run, flow, row, |sampled| &sampled.all);
}

/// Returns the state of one of its paths.
fn path_row<L: PacketLog>(run: &Simulation<'_, L>, flow: usize, position: usize) -> FlowSample {
    let mut row = empty_sample(run, flow, run.scenario.flows[flow].paths[position]);
    let state = &run.flows[flow];
    add_totals(&mut row, &state.totals_by_path[position]);
    row.delivered_bytes = state.totals_by_path[position].delivered_bytes;
    row.add(&state.sums.paths[position]);
    show_last(run, flow, &mut row, |sampled| &sampled.paths[position]);
    row
}

/// Sets RTTs and phase to those of the last connection that has any, as of the last change.
fn show_last<L: PacketLog>(
    run: &Simulation<'_, L>,
    flow: usize,
    row: &mut FlowSample,
    part: impl Fn(&Sums) -> &FlowSample,
) {
    let live = run.flows[flow].live.values().rev();
    let mut samples = live.map(|connection| part(&run.connections[*connection as usize].sampled));
    if let Some(last) = samples.find(|sample| !sample.phase.is_empty()) {
        row.show(last);
    }
}

/// Adds the state of a connection to an empty row; the phase stays empty if it has no subflow.
fn add_connection<L: PacketLog>(run: &Simulation<'_, L>, connection: u32, row: &mut FlowSample) {
    match &run.connections[connection as usize].ends {
        Ends::Plain(ends) => {
            add_sender(row, &run.senders[*ends as usize]);
            row.delivered_bytes = run.receivers[*ends as usize].delivered_bytes();
        }
        Ends::Multipath(multi) => {
            add_totals(row, &multi.gone);
            for path in 0..multi.sender.path_count() {
                multi.subflow(path).into_iter().for_each(|s| add_sender(row, s));
            }
            row.delivered_bytes = multi.receiver.reassembly().next();
            row.reassembly_bytes = multi.receiver.reassembly().waiting();
        }
    }
}

/// Returns the state of a connection on one of its paths, with what the subflow
/// delivered in its own order.
fn path_sample<L: PacketLog>(
    run: &Simulation<'_, L>,
    connection: u32,
    position: usize,
) -> FlowSample {
    let mut row = FlowSample::default();
    if let Ends::Multipath(multi) = &run.connections[connection as usize].ends {
        let gone = &multi.gone_by_path[position];
        add_totals(&mut row, gone);
        multi.subflow(position).into_iter().for_each(|s| add_sender(&mut row, s));
        let receiver = multi.receiver.subflow(position);
        row.delivered_bytes = gone.delivered_bytes + receiver.map_or(0, Receiver::delivered_bytes);
    }
    row
}

fn add_totals(row: &mut FlowSample, totals: &Totals) {
    row.sent_bytes += totals.counters.sent_bytes;
    row.retransmitted_bytes += totals.counters.retransmitted_bytes;
    row.sent_packets += totals.counters.sent_segments;
    row.lost_bytes += totals.counters.lost_bytes;
}

#[inline]
fn add_sender(row: &mut FlowSample, sender: &Sender) {
    let (counters, rtt) = (sender.counters(), sender.rtt());
    let state = sender.controller().state();
    row.sent_bytes += counters.sent_bytes;
    row.retransmitted_bytes += counters.retransmitted_bytes;
    row.sent_packets += counters.sent_segments;
    row.lost_bytes += counters.lost_bytes;
    row.in_flight_bytes += sender.in_flight();
    row.window_bytes += Some(sender.window()).filter(|w| *w != Decision::NO_WINDOW).unwrap_or(0);
    row.pacing_rate_bps += sender.pacing_rate().map_or(0, |rate| rate.as_bits_per_second());
    row.rtt_ns = rtt.latest().as_nanos();
    row.srtt_ns = rtt.smoothed().as_nanos();
    row.bandwidth_estimate_bps += state.bandwidth.map_or(0, |rate| rate.as_bits_per_second());
    row.min_rtt_estimate_ns = state.min_rtt.map_or(0, |time| time.as_nanos());
    row.slow_start_threshold_bytes += state.slow_start_threshold.unwrap_or(0);
    if let Some(bytes) = state.shrink {
        *row.shrink_bytes.get_or_insert(0) += bytes;
    }
    row.phase = if state.phase.is_empty() { UNNAMED } else { state.phase };
}

/// Returns the connections of a multipath flow.
fn multis<'r, L: PacketLog>(
    run: &'r Simulation<'_, L>,
    flow: usize,
) -> impl Iterator<Item = &'r MultipathEnds> {
    let live = run.flows[flow].live.values();
    live.filter_map(|connection| match &run.connections[*connection as usize].ends {
        Ends::Multipath(multi) => Some(multi.as_ref()),
        Ends::Plain(_) => None,
    })
}

fn flow_record<L: PacketLog>(run: &Simulation<'_, L>, flow: usize, end: Time) -> FlowRecord {
    let (plan, state) = (&run.scenario.flows[flow], &run.flows[flow]);
    let mut totals = state.totals.clone();
    for connection in state.live.values() {
        totals.add(run, *connection as usize);
    }
    let (counters, transport) = (totals.counters, &plan.transport);
    let (rtt_min, rtt_max) = totals.rtt.unwrap_or_default();
    let workload = plan.workload.properties();
    // A flow that was stopped before its end has no completion time.
    let whole = workload.bytes.is_none_or(|bytes| totals.delivered_bytes >= bytes);
    let completed = state.completed.filter(|_| workload.ends && whole);
    // A flow that is stopped ends when its last data is acknowledged.
    let mut live = state.live.values().map(|index| &run.connections[*index as usize]);
    let stopped = plan.stop.filter(|_| live.all(|connection| connection.completed.is_some()));
    let ended = state.completed.or(stopped).unwrap_or(end).min(end);
    let blocked = totals.blocked.checked_div(u128::from(totals.delivered_bytes));
    FlowRecord {
        flow: flow as u32,
        name: plan.name.clone(),
        index: plan.index as u32,
        cc: plan.controller.name.clone(),
        path: run.scenario.flow_path_names(flow),
        scheduler: plan.multipath.as_ref().map_or(String::new(), |m| m.scheduler.name.clone()),
        start_ns: plan.start.as_nanos(),
        end_ns: ended.max(plan.start).as_nanos(),
        size_bytes: workload.bytes.unwrap_or(0),
        completion_ns: completed.map(|at| (at - plan.start).as_nanos()),
        delivered_bytes: totals.delivered_bytes,
        delivered_packets: totals.delivered_packets,
        sent_bytes: counters.sent_bytes,
        retransmitted_bytes: counters.retransmitted_bytes,
        rtt_min_ns: rtt_min.as_nanos(),
        rtt_max_ns: rtt_max.as_nanos(),
        base_rtt_ns: run.scenario.flow_base_rtt(flow).as_nanos(),
        header_overhead: f64::from(transport.mss + transport.header) / f64::from(transport.mss),
        timeouts: counters.timeouts,
        recoveries: counters.recoveries,
        spurious_recoveries: counters.spurious_recoveries,
        marked_bytes: counters.marked_bytes,
        reinjected_bytes: totals.reinjected_bytes,
        duplicate_bytes: Some(totals.duplicate_bytes),
        head_of_line_ns: Some(blocked.unwrap_or(0) as u64),
        reassembly_peak_bytes: Some(totals.reassembly_peak),
        suspicions: totals.suspicions,
        ..FlowRecord::default()
    }
}

fn path_records<L: PacketLog>(run: &Simulation<'_, L>, flow: usize) -> Vec<PathRecord> {
    let plan = &run.scenario.flows[flow];
    let Some(multipath) = &plan.multipath else { return Vec::new() };
    let of_path = |(position, path): (usize, &usize)| {
        let mut totals = run.flows[flow].totals_by_path[position].clone();
        multis(run, flow).for_each(|multi| multi.add_path(position, &mut totals));
        let (rtt_min, rtt_max) = totals.rtt.unwrap_or_default();
        PathRecord {
            flow: flow as u32,
            path: *path as u16,
            name: run.scenario.paths[*path].name.clone(),
            backup: multipath.backup.contains(&position),
            sent_bytes: totals.counters.sent_bytes,
            retransmitted_bytes: totals.counters.retransmitted_bytes,
            delivered_bytes: totals.delivered_bytes,
            rtt_min_ns: rtt_min.as_nanos(),
            rtt_max_ns: rtt_max.as_nanos(),
            base_rtt_ns: run.scenario.base_rtt(*path).as_nanos(),
            one_way_delay_ns: run.scenario.one_way_delay(*path).as_nanos(),
            finished_ns: Some(totals.last_delivery.as_nanos()).filter(|at| *at > 0),
            timeouts: totals.counters.timeouts,
            recoveries: totals.counters.recoveries,
            ..PathRecord::default()
        }
    };
    plan.paths.iter().enumerate().map(of_path).collect()
}

fn objects<L: PacketLog>(run: &Simulation<'_, L>, flow: usize) -> Vec<ObjectRecord> {
    let start = run.scenario.flows[flow].start;
    let objects = run.flows[flow].application.objects().iter();
    objects.map(|object| ObjectRecord::of(flow, start, object)).collect()
}
