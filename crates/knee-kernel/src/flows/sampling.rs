//! Rows from `TCP_INFO`.
//!
//! TCP_INFO lacks the RTT of the last ACK (the smoothed RTT takes its place), the bytes ever marked
//! lost (replaced by those retransmitted and those lost now), and undone recoveries (zero).
//! Recoveries are counted only if a sample sees them.

use crate::settings::FlowSettings;
use knee_host::{BbrInfo, ControllerState, TcpInfo};
use knee_record::{FlowRecord, FlowSample};
use knee_scenario::Scenario;
use knee_units::Time;
use std::io;
use std::os::fd::AsFd;

/// State of a flow between samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    pub info: TcpInfo,
    /// Bytes of marked segments; connections differ in their MSS.
    marked_bytes: u64,
    rtt_max_us: u32,
    recoveries: u64,
    recovering: bool,
}

impl Observed {
    /// Reads the kernel's counters and makes a row.
    pub fn sample(
        &mut self,
        socket: &impl AsFd,
        flow: usize,
        plan: &FlowSettings,
        now: Time,
        delivered: u64,
    ) -> io::Result<FlowSample> {
        let info = TcpInfo::of(socket)?;
        self.note(&info);
        let state = BbrInfo::of(socket).map(ControllerState::from);
        let state = state.or_else(|| plan.state_in_bpf(socket));
        let row = Observed::row(&info, state, flow, plan.path, plan, now);
        Ok(FlowSample { delivered_bytes: delivered, ..row })
    }

    /// Makes the row of one connection or subflow, without the bytes delivered.
    pub fn row(
        info: &TcpInfo,
        state: Option<ControllerState>,
        flow: usize,
        path: usize,
        plan: &FlowSettings,
        now: Time,
    ) -> FlowSample {
        let paces = plan.paced || plan.paces_in_bpf || state.is_some();
        let bytes = |packets: u32| u64::from(packets) * u64::from(info.mss);
        let known_lost = info.lost.saturating_sub(info.retransmitted);
        FlowSample {
            flow: flow as u32,
            path: path as u16,
            time_ns: now.as_nanos(),
            sent_bytes: info.sent_bytes,
            retransmitted_bytes: info.retransmitted_bytes,
            sent_packets: u64::from(info.sent_packets),
            lost_bytes: info.retransmitted_bytes + bytes(known_lost),
            in_flight_bytes: bytes(info.in_flight_packets()),
            window_bytes: bytes(info.window),
            pacing_rate_bps: if paces { info.pacing_bps() } else { 0 },
            rtt_ns: u64::from(info.srtt_us) * 1000,
            srtt_ns: u64::from(info.srtt_us) * 1000,
            bandwidth_estimate_bps: state.map_or(0, |state| state.bandwidth_bps),
            min_rtt_estimate_ns: state.map_or(0, |state| nanos(state.min_rtt_us)),
            slow_start_threshold_bytes: info.threshold_packets().map_or(0, bytes),
            phase: match state {
                Some(state) => state.phase,
                // The kernel does not report BBR's state for a subflow.
                None if plan.in_bpf || plan.controller == "bbr" => "",
                None => info.phase(),
            },
            ..FlowSample::default()
        }
    }

    /// Notes the state of a connection.
    pub fn note(&mut self, info: &TcpInfo) {
        self.info = *info;
        self.marked_bytes = u64::from(info.marked_packets) * u64::from(info.mss);
        self.rtt_max_us = self.rtt_max_us.max(info.srtt_us);
        let recovering = info.in_recovery();
        self.recoveries += u64::from(recovering && !self.recovering);
        self.recovering = recovering;
    }

    /// Adds the counts of another connection of the flow.
    pub fn absorb(&mut self, other: &Observed) {
        let earlier = std::mem::replace(&mut self.info, other.info);
        let info = &mut self.info;
        // One that was never sampled has no MSS.
        if info.mss == 0 {
            info.mss = earlier.mss;
        }
        info.sent_bytes += earlier.sent_bytes;
        info.retransmitted_bytes += earlier.retransmitted_bytes;
        info.acked_bytes += earlier.acked_bytes;
        info.sent_packets += earlier.sent_packets;
        info.marked_packets += earlier.marked_packets;
        info.received_bytes += earlier.received_bytes;
        info.retransmitted_packets += earlier.retransmitted_packets;
        info.delivered_packets = both(info.delivered_packets, earlier.delivered_packets);
        info.dsacks = both(info.dsacks, earlier.dsacks);
        info.reorderings = both(info.reorderings, earlier.reorderings);
        info.total_timeouts = both(info.total_timeouts, earlier.total_timeouts);
        info.timeouts = info.timeouts.saturating_add(earlier.timeouts);
        if let Some(rtt) = earlier.min_rtt() {
            let least = info.min_rtt().map_or(rtt, |ours| ours.min(rtt));
            info.min_rtt_us = least.as_micros() as u32;
        }
        self.marked_bytes += other.marked_bytes;
        self.rtt_max_us = self.rtt_max_us.max(other.rtt_max_us);
        self.recoveries += other.recoveries;
    }

    /// Returns minimum and maximum RTT; zero if none was measured.
    pub fn rtt_range_ns(&self) -> (u64, u64) {
        (self.info.min_rtt().map_or(0, Time::as_nanos), nanos(self.rtt_max_us))
    }

    pub fn recoveries(&self) -> u64 {
        self.recoveries
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
        let plan = &scenario.flows[flow];
        let (info, transport) = (&self.info, &plan.transport);
        let ended = completed.or(plan.stop).unwrap_or(end).min(end).max(plan.start);
        let workload = plan.workload.properties();
        // A flow that was stopped before its end has no completion time.
        let whole = workload.bytes.is_none_or(|bytes| delivered >= bytes);
        let completed = completed.filter(|_| workload.ends && whole);
        FlowRecord {
            flow: flow as u32,
            name: plan.name.clone(),
            index: plan.index as u32,
            cc: plan.controller.name.clone(),
            path: scenario.flow_path_names(flow),
            scheduler: plan.multipath.as_ref().map_or(String::new(), |m| m.scheduler.name.clone()),
            start_ns: plan.start.as_nanos(),
            end_ns: ended.as_nanos(),
            size_bytes: workload.bytes.unwrap_or(0),
            completion_ns: completed.map(|at| (at - plan.start).as_nanos()),
            delivered_bytes: delivered,
            delivered_packets: delivered.div_ceil(u64::from(transport.mss)),
            sent_bytes: info.sent_bytes,
            retransmitted_bytes: info.retransmitted_bytes,
            rtt_min_ns: info.min_rtt().map_or(0, Time::as_nanos),
            rtt_max_ns: nanos(self.rtt_max_us),
            base_rtt_ns: scenario.flow_base_rtt(flow).as_nanos(),
            header_overhead: f64::from(transport.mss + transport.header) / f64::from(transport.mss),
            timeouts: u64::from(info.timeouts),
            recoveries: self.recoveries,
            marked_bytes: self.marked_bytes,
            // Over one path, nothing waits for another; `Subflows::record` is about several.
            duplicate_bytes: Some(0),
            head_of_line_ns: Some(0),
            reassembly_peak_bytes: Some(0),
            ..FlowRecord::default()
        }
    }
}

/// Adds the counts of two connections; the first may have just begun.
fn both<N: std::ops::Add<Output = N>>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

fn nanos(micros: u32) -> u64 {
    u64::from(micros) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(packets: u32, mss: u32) -> Observed {
        let (mut observed, mut info) = (Observed::default(), TcpInfo::default());
        (info.marked_packets, info.mss) = (packets, mss);
        observed.note(&info);
        observed
    }

    /// Paths have different MTUs, and a path whose subflow never began has no MSS.
    #[test]
    fn marked_bytes_are_those_of_each_connection() {
        let mut total = Observed::default();
        for one in [marked(10, 1448), marked(2, 536), Observed::default()] {
            total.absorb(&one);
        }
        assert_eq!(total.marked_bytes, 10 * 1448 + 2 * 536);
        assert_eq!((total.info.marked_packets, total.info.mss), (12, 536));
    }
}
