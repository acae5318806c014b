//! Turns the state of a run into records.

use crate::log::PacketLog;
use crate::simulation::Simulation;
use knee_record::{Cost, FlowRecord, FlowSample, LinkSample, Records};
use knee_scenario::{Scenario, Workload};
use knee_units::Time;

/// The time series of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    flows: Vec<FlowSample>,
    links: Vec<LinkSample>,
    last: Option<Time>,
}

impl Recorder {
    pub fn new(scenario: &Scenario) -> Recorder {
        let rows = scenario.duration.as_nanos() / scenario.sample_interval.as_nanos().max(1) + 2;
        let rows = rows.min(1 << 16) as usize;
        Recorder {
            flows: Vec::with_capacity((rows * scenario.flows.len()).min(1 << 20)),
            links: Vec::with_capacity((rows * scenario.links.len()).min(1 << 20)),
            last: None,
        }
    }

    /// Adds a row for each flow that runs and for each link.
    pub fn sample<L: PacketLog>(&mut self, run: &mut Simulation<'_, L>) {
        if self.last == Some(run.now()) {
            return;
        }
        self.last = Some(run.now());
        for flow in 0..run.flows.len() {
            if run.flows[flow].started && !self.ended(run, flow) {
                self.flows.push(flow_sample(run, flow));
            }
        }
        for link in 0..run.scenario.links.len() {
            self.links.push(link_sample(run, link));
        }
    }

    /// A completed flow has its last row already.
    fn ended<L: PacketLog>(&self, run: &Simulation<'_, L>, flow: usize) -> bool {
        let interval = run.scenario.sample_interval;
        run.flows[flow].completed.is_some_and(|at| at + interval <= run.now())
    }

    /// Adds the last row.
    pub fn finish<L: PacketLog>(&mut self, run: &mut Simulation<'_, L>) {
        self.sample(run);
    }

    /// The records of a run that ended at `end`.
    pub fn into_records<L: PacketLog>(self, run: &Simulation<'_, L>, end: Time) -> Records {
        let flows = (0..run.flows.len()).map(|flow| flow_record(run, flow, end)).collect();
        Records {
            flows,
            samples: self.flows,
            links: self.links,
            link_names: run.scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns: end.as_nanos(),
            interrupted: end < run.scenario.duration,
            cost: Cost { events: run.events, data_packets: run.delivered_packets },
        }
    }
}

#[inline]
fn flow_sample<L: PacketLog>(run: &Simulation<'_, L>, flow: usize) -> FlowSample {
    let (sender, receiver) = (&run.senders[flow], &run.receivers[flow]);
    let (counters, rtt) = (sender.counters(), sender.rtt());
    let state = sender.controller().state();
    FlowSample {
        flow: flow as u32,
        path: run.scenario.flows[flow].path as u16,
        time_ns: run.now().as_nanos(),
        delivered_bytes: receiver.delivered_bytes(),
        sent_bytes: counters.sent_bytes,
        retransmitted_bytes: counters.retransmitted_bytes,
        sent_packets: counters.sent_segments,
        lost_bytes: counters.lost_bytes,
        in_flight_bytes: sender.in_flight(),
        window_bytes: sender.window(),
        pacing_rate_bps: sender.pacing_rate().map_or(0, |rate| rate.as_bits_per_second()),
        rtt_ns: rtt.latest().as_nanos(),
        srtt_ns: rtt.smoothed().as_nanos(),
        bandwidth_estimate_bps: state.bandwidth.map_or(0, |rate| rate.as_bits_per_second()),
        min_rtt_estimate_ns: state.min_rtt.map_or(0, |time| time.as_nanos()),
        slow_start_threshold_bytes: state.slow_start_threshold.unwrap_or(0),
        phase: state.phase,
    }
}

#[inline]
fn link_sample<L: PacketLog>(run: &mut Simulation<'_, L>, link: usize) -> LinkSample {
    let now = run.now();
    let counters = run.links[link].counters();
    let queue = run.links[link].queue(now);
    LinkSample {
        link: link as u32,
        time_ns: now.as_nanos(),
        queue_bytes: queue.bytes,
        queue_packets: queue.packets,
        queue_delay_ns: queue.delay.as_nanos(),
        departed_bytes: queue.departed_bytes,
        capacity_bytes: queue.capacity_bytes,
        entered_packets: counters.entered_packets,
        dropped_packets: counters.dropped_packets,
        lost_packets: counters.lost_packets,
        marked_packets: counters.marked_packets,
    }
}

fn flow_record<L: PacketLog>(run: &Simulation<'_, L>, flow: usize, end: Time) -> FlowRecord {
    let (plan, state) = (&run.scenario.flows[flow], &run.flows[flow]);
    let (sender, receiver) = (&run.senders[flow], &run.receivers[flow]);
    let (counters, transport) = (sender.counters(), &plan.transport);
    let (rtt_min, rtt_max) = sender.rtt().range().unwrap_or_default();
    let ended = state.completed.or(plan.stop).unwrap_or(end).min(end);
    FlowRecord {
        flow: flow as u32,
        name: plan.name.clone(),
        index: plan.index as u32,
        cc: plan.controller.name.clone(),
        path: run.scenario.paths[plan.path].name.clone(),
        start_ns: plan.start.as_nanos(),
        end_ns: ended.max(plan.start).as_nanos(),
        size_bytes: match plan.workload {
            Workload::Bulk => 0,
            Workload::File(bytes) => bytes,
        },
        completion_ns: match plan.workload {
            Workload::Bulk => None,
            Workload::File(_) => state.completed.map(|at| (at - plan.start).as_nanos()),
        },
        delivered_bytes: receiver.delivered_bytes(),
        delivered_packets: receiver.delivered_segments(),
        sent_bytes: counters.sent_bytes,
        retransmitted_bytes: counters.retransmitted_bytes,
        rtt_min_ns: rtt_min.as_nanos(),
        rtt_max_ns: rtt_max.as_nanos(),
        base_rtt_ns: run.scenario.flow_base_rtt(flow).as_nanos(),
        path_rate_bps: run
            .scenario
            .path_rate(plan.path)
            .map_or(0, |rate| rate.as_bits_per_second()),
        header_overhead: f64::from(transport.mss + transport.header) / f64::from(transport.mss),
        timeouts: counters.timeouts,
        recoveries: counters.recoveries,
        spurious_recoveries: counters.spurious_recoveries,
        marked_bytes: counters.marked_bytes,
    }
}
