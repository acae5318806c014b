//! The row of a connection from its last `TCP_INFO`.

use super::sampling::Observed;
use knee_host::TcpInfo;
use knee_record::{ConnectionRecord, ControllerSource};
use knee_scenario::Scenario;
use knee_units::Time;

/// What the applications at both ends of a connection know about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
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
    told: &Told,
    observed: &Observed,
) -> ConnectionRecord {
    let info = &observed.info;
    ConnectionRecord {
        local_port: Some(told.local_port),
        remote_port: Some(told.remote_port),
        ..known(scenario, flow, told, info, knee_live::told(info))
    }
}

/// Makes the row of a connection over several paths; `total` is the sum of its subflows.
pub fn multipath(
    scenario: &Scenario,
    flow: usize,
    told: &Told,
    acked: Option<u64>,
    total: &Observed,
) -> ConnectionRecord {
    let info = &total.info;
    let row = known(scenario, flow, told, info, knee_live::counted(info));
    ConnectionRecord { acked_bytes: acked, ..row }
}

/// Adds what the scenario and the applications know to `row`.
fn known(
    scenario: &Scenario,
    flow: usize,
    told: &Told,
    info: &TcpInfo,
    row: ConnectionRecord,
) -> ConnectionRecord {
    let plan = &scenario.flows[flow];
    // Each end counts its FIN.
    let acked = info.acked_bytes.saturating_sub(told.overhead).min(told.given);
    ConnectionRecord {
        connection: told.number.into(),
        flow: Some(flow as u32),
        workload: plan.workload.name().into(),
        start_ns: Some(told.started.as_nanos()),
        end_ns: told.completed.unwrap_or(told.end).as_nanos(),
        completion_ns: told.completed.map(|at| (at - told.started).as_nanos()),
        size_bytes: told.size,
        delivered_bytes: Some(told.delivered),
        acked_bytes: Some(acked),
        cc: plan.controller.name.as_str().into(),
        cc_source: ControllerSource::Scenario,
        ..row
    }
}
