//! A flow over MPTCP: counters of its subflows, path by path.
//!
//! A path that lost its subflow and got a new one continues counting. The kernel does not
//! report which data waits for other paths, nor duplicates, so these have no value.

use super::sampling::Observed;
use crate::settings::FlowSettings;
use knee_host::{TcpInfo, mptcp};
use knee_record::{FlowRecord, FlowSample, PathRecord};
use knee_scenario::Scenario;
use knee_testbed::path_of;
use knee_units::Time;
use std::io;
use std::os::fd::AsFd;

/// State of each path between samples.
#[derive(Clone, Debug, Default)]
pub struct Subflows {
    /// In the order of the flow's paths.
    paths: Vec<PathState>,
}

#[derive(Clone, Debug, Default)]
struct PathState {
    /// Sum over previous subflows.
    gone: Observed,
    /// The current subflow.
    now: Observed,
}

impl PathState {
    fn note(&mut self, info: &TcpInfo) {
        // Counters never decrease, so it is a different subflow.
        if info.sent_bytes < self.now.info.sent_bytes {
            self.gone.absorb(&std::mem::take(&mut self.now));
        }
        self.now.note(info);
    }

    fn total(&self) -> Observed {
        let mut total = self.gone;
        total.absorb(&self.now);
        total
    }
}

impl Subflows {
    /// Reads the kernel's counters and makes a row of the flow, and one for each path. Rates, RTT
    /// and phase of the flow are those of its last path that is up.
    pub fn sample(
        &mut self,
        socket: &impl AsFd,
        flow: usize,
        plan: &FlowSettings,
        now: Time,
        delivered: u64,
    ) -> io::Result<(FlowSample, Vec<FlowSample>)> {
        self.paths.resize_with(plan.multipath.len(), PathState::default);
        let up = mptcp::subflows(socket)?;
        let empty = |path: usize| FlowSample {
            flow: flow as u32,
            path: path as u16,
            time_ns: now.as_nanos(),
            phase: "idle",
            ..FlowSample::default()
        };
        let mut whole = empty(plan.path);
        let mut rows = Vec::new();
        for (path, state) in plan.multipath.iter().zip(&mut self.paths) {
            let mut row = empty(*path);
            if let Some((_, info)) = up.iter().find(|(at, _)| path_of(*at) == Some(*path)) {
                state.note(info);
                row = Observed::row(info, None, flow, *path, plan, now);
            }
            let total = state.total().info;
            row.sent_bytes = total.sent_bytes;
            row.retransmitted_bytes = total.retransmitted_bytes;
            row.sent_packets = u64::from(total.sent_packets);
            row.delivered_bytes = total.acked_bytes;
            // A path without a subflow has neither RTT nor phase.
            whole = if row.srtt_ns > 0 { whole.with(row) } else { row.with(whole) };
            rows.push(row);
        }
        let whole = FlowSample { path: plan.path as u16, delivered_bytes: delivered, ..whole };
        Ok((whole, rows))
    }

    /// Makes the record of the flow.
    pub fn record(
        &self,
        scenario: &Scenario,
        flow: usize,
        completed: Option<Time>,
        delivered: u64,
        end: Time,
    ) -> FlowRecord {
        FlowRecord {
            duplicate_bytes: None,
            head_of_line_ns: None,
            reassembly_peak_bytes: None,
            ..self.total().record(scenario, flow, completed, delivered, end)
        }
    }

    /// Returns the sum over all subflows.
    pub fn total(&self) -> Observed {
        let mut all = Observed::default();
        self.paths.iter().for_each(|path| all.absorb(&path.total()));
        all
    }

    /// Makes a record for each path.
    pub fn path_records(&self, scenario: &Scenario, flow: usize) -> Vec<PathRecord> {
        let plan = &scenario.flows[flow];
        let backups = plan.multipath.iter().flat_map(|multipath| &multipath.backup);
        let backups: Vec<usize> = backups.map(|position| plan.paths[*position]).collect();
        let one = |(path, state): (&usize, &PathState)| {
            let total = state.total();
            let (rtt_min_ns, rtt_max_ns) = total.rtt_range_ns();
            PathRecord {
                flow: flow as u32,
                path: *path as u16,
                name: scenario.paths[*path].name.clone(),
                backup: backups.contains(path),
                sent_bytes: total.info.sent_bytes,
                retransmitted_bytes: total.info.retransmitted_bytes,
                delivered_bytes: total.info.acked_bytes,
                rtt_min_ns,
                rtt_max_ns,
                base_rtt_ns: scenario.base_rtt(*path).as_nanos(),
                one_way_delay_ns: scenario.one_way_delay(*path).as_nanos(),
                timeouts: u64::from(total.info.timeouts),
                recoveries: total.recoveries(),
                ..PathRecord::default()
            }
        };
        plan.paths.iter().zip(&self.paths).map(one).collect()
    }
}
