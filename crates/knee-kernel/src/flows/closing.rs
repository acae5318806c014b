//! The row of a connection from its last `TCP_INFO`.

use super::sampling::Observed;
use knee_host::TcpInfo;
use knee_record::{ConnectionRecord, ControllerSource};
use knee_scenario::Scenario;
use knee_units::Time;

/// What the applications at both ends of a connection know about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// Number within the flow's application.
    pub number: u32,
    /// Ports of the sending and the receiving end.
    pub local_port: u16,
    pub remote_port: u16,
    pub started: Time,
    pub completed: Option<Time>,
    /// Time of the last sample.
    pub end: Time,
    /// Bytes requested, or `None` if endless.
    pub size: Option<u64>,
    /// Bytes given to the sending socket, and received by the receiving end.
    pub given: u64,
    pub delivered: u64,
    /// Bytes that the kernel counts as acknowledged and that are no data, without the FIN.
    pub overhead: u64,
}

/// Makes the row of a connection of `flow` over one path.
pub fn connection(
    scenario: &Scenario,
    flow: usize,
    ends: &Ends,
    observed: &Observed,
) -> ConnectionRecord {
    let info = &observed.info;
    ConnectionRecord {
        local_port: Some(ends.local_port),
        remote_port: Some(ends.remote_port),
        ..known(scenario, flow, ends, info, knee_live::connection_record(info))
    }
}

/// Makes the row of a connection over several paths; `total` is the sum of its subflows.
pub fn multipath(
    scenario: &Scenario,
    flow: usize,
    ends: &Ends,
    acked: Option<u64>,
    total: &Observed,
) -> ConnectionRecord {
    let info = &total.info;
    let row = known(scenario, flow, ends, info, knee_live::counters_record(info));
    ConnectionRecord { acked_bytes: acked, ..row }
}

/// Adds what the scenario and the applications know to `row`.
fn known(
    scenario: &Scenario,
    flow: usize,
    ends: &Ends,
    info: &TcpInfo,
    row: ConnectionRecord,
) -> ConnectionRecord {
    let plan = &scenario.flows[flow];
    // Each end counts its FIN.
    let acked = info.acked_bytes.saturating_sub(ends.overhead).min(ends.given);
    ConnectionRecord {
        connection: ends.number.into(),
        flow: Some(flow as u32),
        workload: plan.workload.name().into(),
        start_ns: Some(ends.started.as_nanos()),
        end_ns: ends.completed.unwrap_or(ends.end).as_nanos(),
        completion_ns: ends.completed.map(|at| (at - ends.started).as_nanos()),
        size_bytes: ends.size,
        delivered_bytes: Some(ends.delivered),
        acked_bytes: Some(acked),
        cc: plan.controller.name.as_str().into(),
        cc_source: ControllerSource::Scenario,
        ..row
    }
}
