//! Builds the row of a connection from the kernel's report of its end.

use crate::cells::Ended;
use knee_host::{TcpInfo, TcpSocket};
use knee_record::{ConnectionRecord, ControllerSource};
use std::sync::Arc;

/// Properties of a connection that the kernel's report lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionContext {
    /// When it was opened, if that was seen, since the file's epoch.
    pub start_ns: Option<u64>,
    /// Time since the file's epoch.
    pub end_ns: u64,
    /// Controller if a dump saw it, else empty.
    pub controller: Arc<str>,
    pub group: Arc<str>,
    /// Block and arm of the experiment, or arm of the policy, if known.
    pub block: Option<u64>,
    pub arm: Arc<str>,
    pub prefix: Arc<str>,
    /// Number of connections that the row represents.
    pub weight: f64,
}

/// Contribution of a connection to aggregates, from the kernel's report.
pub(crate) fn heard(info: &TcpInfo) -> Ended {
    Ended {
        acked_bytes: info.delivered_bytes(),
        sent_bytes: info.sent_bytes,
        retransmitted_bytes: info.retransmitted_bytes,
        timeouts: info.total_timeouts.unwrap_or(0).into(),
        busy_us: info.busy_us.unwrap_or(0),
        receive_limited_us: info.receive_limited_us.unwrap_or(0),
        send_buffer_limited_us: info.send_buffer_limited_us.unwrap_or(0),
        rtt_min_us: info.min_rtt().map(|rtt| rtt.as_nanos() as f64 / 1e3),
        is_unfinished: Some(info.outstanding_bytes() > 0),
    }
}

/// Contribution of a connection to aggregates, from its row, which does not say whether it finished.
pub(crate) fn ended(row: &ConnectionRecord) -> Ended {
    let us = |ns: Option<u64>| ns.unwrap_or(0) / 1000;
    Ended {
        acked_bytes: row.acked_bytes.unwrap_or(0),
        sent_bytes: row.sent_bytes.unwrap_or(0),
        retransmitted_bytes: row.retransmitted_bytes.unwrap_or(0),
        timeouts: row.timeouts.unwrap_or(0),
        busy_us: us(row.busy_ns),
        receive_limited_us: us(row.receive_limited_ns),
        send_buffer_limited_us: us(row.send_buffer_limited_ns),
        rtt_min_us: row.rtt_min_ns.map(|ns| ns as f64 / 1e3),
        is_unfinished: None,
    }
}

/// Fields of `TCP_INFO` that can be summed over subflows.
pub fn counters_record(info: &TcpInfo) -> ConnectionRecord {
    ConnectionRecord {
        received_bytes: Some(info.received_bytes),
        sent_bytes: Some(info.sent_bytes),
        retransmitted_bytes: Some(info.retransmitted_bytes),
        sent_packets: Some(info.sent_packets.into()),
        retransmitted_packets: Some(info.retransmitted_packets.into()),
        delivered_packets: info.delivered_packets.map(Into::into),
        marked_packets: Some(info.marked_packets.into()),
        rtt_min_ns: info.min_rtt().map(|rtt| rtt.as_nanos()),
        timeouts: info.total_timeouts.map(Into::into),
        dsacks: info.dsacks.map(Into::into),
        reorderings: info.reorderings.map(Into::into),
        mss_bytes: Some(info.mss.into()).filter(|mss| *mss > 0),
        ..ConnectionRecord::default()
    }
}

/// Fields of `TCP_INFO` for a connection over one path.
pub fn connection_record(info: &TcpInfo) -> ConnectionRecord {
    let micros = |micros: u64| micros * 1000;
    let bytes = |packets: u32| u64::from(packets) * u64::from(info.mss);
    // Nothing is measured before the handshake.
    let measured = Some(info.srtt_us).filter(|srtt| *srtt > 0);
    let rate = info.delivery_rate_bps.filter(|rate| *rate > 0);
    ConnectionRecord {
        srtt_ns: measured.map(|srtt| micros(srtt.into())),
        rttvar_ns: measured.map(|_| micros(info.rttvar_us.into())),
        delivery_rate_bps: rate,
        app_limited: rate.map(|_| info.app_limited),
        window_bytes: Some(bytes(info.window)),
        slow_start_threshold_bytes: info.threshold_packets().map(bytes),
        pacing_rate_bps: Some(info.pacing_bps()).filter(|rate| *rate > 0),
        busy_ns: info.busy_us.map(micros),
        receive_limited_ns: info.receive_limited_us.map(micros),
        send_buffer_limited_ns: info.send_buffer_limited_us.map(micros),
        ..counters_record(info)
    }
}

/// Row of an ended connection of this host.
pub(crate) fn row(
    socket: &TcpSocket<'_>,
    info: &TcpInfo,
    beside: ConnectionContext,
) -> ConnectionRecord {
    ConnectionRecord {
        connection: socket.cookie,
        start_ns: beside.start_ns,
        end_ns: beside.end_ns,
        acked_bytes: Some(info.delivered_bytes()),
        cc: beside.controller,
        cc_source: ControllerSource::Unknown,
        prefix: beside.prefix,
        local_port: Some(socket.local.port()),
        remote_port: Some(socket.remote.port()),
        group: beside.group,
        block: beside.block,
        arm: beside.arm,
        weight: Some(beside.weight),
        ..connection_record(info)
    }
}
