//! The row of a connection, and the meaning of its columns.

use crate::TransferRecord;
use std::sync::Arc;

/// One row per connection, written when it ends or is cut off. `None` and the empty string mean
/// that the value is not known on this ground; zero means that it was counted and is zero.
///
/// A connection over several paths has one row: counters are summed over its subflows, and values
/// that have no sum are `None`. `paths.parquet` has a row for each path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionRecord {
    /// Number within the flow's application, from zero in order of opening; on a live host the
    /// socket's cookie.
    pub connection: u64,
    /// Flow, by its index in the scenario.
    pub flow: Option<u32>,
    /// Workload of the flow: `bulk`, `file`, `page`, `dash`, `mix`.
    pub workload: Arc<str>,
    /// When it was opened, nanoseconds since the file's epoch.
    pub start_ns: Option<u64>,
    /// When it ended or was cut off, nanoseconds since the file's epoch.
    pub end_ns: u64,
    /// Time from the start to the acknowledgement of the last byte; `None` if cut off.
    pub completion_ns: Option<u64>,
    /// Bytes that the application asked for; `None` if it has no end.
    pub size_bytes: Option<u64>,
    /// Payload bytes delivered in order to the other end's application.
    pub delivered_bytes: Option<u64>,
    /// Payload bytes sent and acknowledged cumulatively.
    pub acked_bytes: Option<u64>,
    /// Payload bytes received by the end that the row describes.
    pub received_bytes: Option<u64>,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: Option<u64>,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: Option<u64>,
    /// Segments with payload sent, retransmissions included.
    pub sent_packets: Option<u64>,
    /// Segments retransmitted.
    pub retransmitted_packets: Option<u64>,
    /// Segments acknowledged, including those acknowledged selectively.
    pub delivered_packets: Option<u64>,
    /// Segments that arrived with Congestion Experienced.
    pub marked_packets: Option<u64>,
    /// Smallest RTT measured.
    pub rtt_min_ns: Option<u64>,
    /// Smoothed RTT at the end.
    pub srtt_ns: Option<u64>,
    /// Mean deviation of the RTT at the end.
    pub rttvar_ns: Option<u64>,
    /// Delivery rate of the last valid sample.
    pub delivery_rate_bps: Option<u64>,
    /// Whether that sample was application-limited.
    pub app_limited: Option<bool>,
    /// Congestion window at the end.
    pub window_bytes: Option<u64>,
    /// Slow-start threshold at the end; `None` if not set.
    pub slow_start_threshold_bytes: Option<u64>,
    /// Pacing rate at the end; `None` if not paced.
    pub pacing_rate_bps: Option<u64>,
    /// Time with data to send or unacknowledged data.
    pub busy_ns: Option<u64>,
    /// Part of the busy time limited by the receiver's window.
    pub receive_limited_ns: Option<u64>,
    /// Part of the busy time limited by the send buffer.
    pub send_buffer_limited_ns: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// D-SACK blocks received.
    pub dsacks: Option<u64>,
    /// ACKs that showed reordering on the path.
    pub reorderings: Option<u64>,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// Congestion controller.
    pub cc: Arc<str>,
    /// What chose the controller.
    pub cc_source: ControllerSource,
    /// Prefix of the client's address.
    pub prefix: Arc<str>,
    /// Port of this end.
    pub local_port: Option<u16>,
    /// Port of the other end.
    pub remote_port: Option<u16>,
    /// Group of prefixes that are treated alike.
    pub group: Arc<str>,
    /// Block of time in an experiment.
    pub block: Option<u64>,
    /// Arm of the experiment that the connection was assigned to.
    pub arm: Arc<str>,
    /// Number of connections that the row stands for: the inverse of the sampling probability.
    pub weight: Option<f64>,
}

/// What chose a connection's controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControllerSource {
    /// The scenario.
    Scenario,
    /// A policy that steers live connections.
    Policy,
    /// A route (`ip route … congctl`).
    Route,
    /// The application (`TCP_CONGESTION`).
    Application,
    /// The host's default (`net.ipv4.tcp_congestion_control`).
    Default,
    /// Unknown.
    #[default]
    Unknown,
}

impl ControllerSource {
    const ALL: [ControllerSource; 6] = [
        ControllerSource::Scenario,
        ControllerSource::Policy,
        ControllerSource::Route,
        ControllerSource::Application,
        ControllerSource::Default,
        ControllerSource::Unknown,
    ];

    /// Returns the word used in the table.
    pub fn name(self) -> &'static str {
        match self {
            ControllerSource::Scenario => "scenario",
            ControllerSource::Policy => "policy",
            ControllerSource::Route => "route",
            ControllerSource::Application => "application",
            ControllerSource::Default => "default",
            ControllerSource::Unknown => "unknown",
        }
    }

    /// Returns the source with this name.
    pub fn named(name: &str) -> Option<ControllerSource> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// Value of [`ConnectionRecord::workload`] for a mix; such a row is a transfer.
const MIX: &str = "mix";

impl ConnectionRecord {
    /// Returns the transfer of a mix that the connection carried. `None` for other workloads, whose
    /// connections are not transfers by themselves.
    pub fn transfer(&self) -> Option<TransferRecord> {
        if &*self.workload != MIX {
            return None;
        }
        Some(TransferRecord {
            flow: self.flow?,
            number: u32::try_from(self.connection).ok()?,
            start_ns: self.start_ns?,
            completion_ns: self.completion_ns,
            size_bytes: self.size_bytes?,
            delivered_bytes: self.delivered_bytes.unwrap_or(0),
            sent_bytes: self.sent_bytes.unwrap_or(0),
            retransmitted_bytes: self.retransmitted_bytes.unwrap_or(0),
            rtt_min_ns: self.rtt_min_ns.unwrap_or(0),
        })
    }

    /// Builds a row from `transfers.parquet`, which earlier versions wrote. `end_ns` is the end of
    /// the run, used for a transfer that was cut off.
    pub(crate) fn of_transfer(row: &TransferRecord, end_ns: u64) -> ConnectionRecord {
        ConnectionRecord {
            connection: row.number.into(),
            flow: Some(row.flow),
            workload: MIX.into(),
            start_ns: Some(row.start_ns),
            end_ns: row.completion_ns.map_or(end_ns, |took| row.start_ns.saturating_add(took)),
            completion_ns: row.completion_ns,
            size_bytes: Some(row.size_bytes),
            delivered_bytes: Some(row.delivered_bytes),
            sent_bytes: Some(row.sent_bytes),
            retransmitted_bytes: Some(row.retransmitted_bytes),
            rtt_min_ns: Some(row.rtt_min_ns).filter(|rtt| *rtt > 0),
            ..ConnectionRecord::default()
        }
    }
}

/// Number of connection rows kept in memory; the file has all.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// The connections of a run kept in memory: what measures need of each transfer, and the whole rows
/// of the first connections to end.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// Whole rows, in the order in which the connections ended.
    pub rows: Vec<ConnectionRecord>,
    /// Transfers of mixes, in the order in which they ended.
    pub transfers: Vec<TransferRecord>,
}

impl Connections {
    /// Adds a connection that has ended or was cut off.
    pub fn push(&mut self, row: &ConnectionRecord) {
        self.transfers.extend(row.transfer());
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row.clone());
        }
    }
}

/// The meaning and origin of a column of `connections.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionColumn {
    /// Name, which ends with the unit.
    pub name: &'static str,
    /// Meaning of the column.
    pub meaning: &'static str,
    /// Field of `struct tcp_info` (`linux/tcp.h`) that it is read from on the kernel ground and on
    /// live hosts; empty if none.
    pub tcp_info: &'static str,
    /// Name in RFC 4898 (ESTATS-MIB); empty if it has none.
    pub estats: &'static str,
    /// Grounds on which the column is null.
    pub null: &'static str,
}

const fn column(
    name: &'static str,
    meaning: &'static str,
    tcp_info: &'static str,
    estats: &'static str,
    null: &'static str,
) -> ConnectionColumn {
    ConnectionColumn { name, meaning, tcp_info, estats, null }
}

/// Every column in the order of the file, as listed in docs/connections.md.
#[rustfmt::skip]
pub const CONNECTION_COLUMNS: [ConnectionColumn; 41] = [
    column("connection", "number within the flow's application, from zero in the order of opening; on a live host the socket's cookie", "", "", ""),
    column("flow", "flow, by its index in the scenario", "", "", "live"),
    column("workload", "workload of the flow: `bulk`, `file`, `page`, `bursts`, `dash`, `mix`; a row of a mix is a transfer", "", "", "live"),
    column("start_ns", "when it was opened", "", "", "live, if not seen"),
    column("end_ns", "when it ended or was cut off; `start_ns` and `end_ns` count from the file's epoch", "", "", ""),
    column("completion_ns", "time from its start to the acknowledgement of the last byte; null if cut off", "", "", "live"),
    column("size_bytes", "bytes that the application requested; null if unlimited", "", "", "live"),
    column("delivered_bytes", "payload delivered in order to the other end's application", "", "", "live"),
    column("acked_bytes", "payload sent and acknowledged cumulatively; without SYN and FIN, which the kernel counts as a byte each", "tcpi_bytes_acked", "tcpEStatsAppHCThruOctetsAcked", ""),
    column("received_bytes", "payload received by the end that sends the data: requests", "tcpi_bytes_received", "tcpEStatsAppHCThruOctetsReceived", "sim, where requests have no packets; quic"),
    column("sent_bytes", "payload sent, retransmissions included", "tcpi_bytes_sent", "tcpEStatsPerfHCDataOctetsOut", ""),
    column("retransmitted_bytes", "payload retransmitted", "tcpi_bytes_retrans", "tcpEStatsPerfOctetsRetrans", ""),
    column("sent_packets", "segments with payload sent, retransmissions included", "tcpi_data_segs_out", "tcpEStatsPerfDataSegsOut", ""),
    column("retransmitted_packets", "segments retransmitted; the kernel's count includes the SYN", "tcpi_total_retrans", "tcpEStatsPerfSegsRetrans", ""),
    column("delivered_packets", "segments acknowledged, including selectively; the kernel's count includes the SYN", "tcpi_delivered", "", ""),
    column("marked_packets", "segments that arrived with Congestion Experienced: on the simulator as the receiver saw them, on the kernel as it echoes them", "tcpi_delivered_ce", "", "quic"),
    column("rtt_min_ns", "smallest RTT measured; the kernel's is that of the last 300 s", "tcpi_min_rtt", "tcpEStatsPathMinRTT", ""),
    column("srtt_ns", "smoothed RTT (RFC 6298) at the end", "tcpi_rtt", "tcpEStatsPathSmoothedRTT", "several paths"),
    column("rttvar_ns", "mean deviation of the RTT (RFC 6298, RTTVAR) at the end", "tcpi_rttvar", "tcpEStatsPathRTTVar", "several paths"),
    column("delivery_rate_bps", "delivery rate of the last sample that was not application-limited, or that exceeded the previous rate", "tcpi_delivery_rate", "", "several paths"),
    column("app_limited", "whether that sample was application-limited", "tcpi_delivery_rate_app_limited", "", "quic; several paths"),
    column("window_bytes", "congestion window at the end", "tcpi_snd_cwnd", "tcpEStatsPerfCurCwnd", "several paths; a controller without a window"),
    column("slow_start_threshold_bytes", "slow-start threshold at the end; null if not set", "tcpi_snd_ssthresh", "tcpEStatsPerfCurSsthresh", "several paths"),
    column("pacing_rate_bps", "pacing rate at the end; null if not paced", "tcpi_pacing_rate", "", "several paths"),
    column("busy_ns", "time with data to send or unacknowledged data", "tcpi_busy_time", "", "quic; several paths"),
    column("receive_limited_ns", "part of `busy_ns` limited by the receiver's window", "tcpi_rwnd_limited", "tcpEStatsPerfSndLimTimeRwin", "quic; several paths"),
    column("send_buffer_limited_ns", "part of `busy_ns` limited by the send buffer", "tcpi_sndbuf_limited", "tcpEStatsPerfSndLimTimeSnd", "sim, which has no send buffer; quic; several paths"),
    column("timeouts", "retransmission timeouts", "tcpi_total_rto", "tcpEStatsPerfTimeouts", "Linux before 6.7"),
    column("dsacks", "D-SACK blocks received (RFC 2883)", "tcpi_dsack_dups", "tcpEStatsStackDSACKDups", "quic"),
    column("reorderings", "ACKs that showed reordering on the path; on the simulator, those at one instant count once", "tcpi_reord_seen", "", "quic"),
    column("mss_bytes", "payload of a full segment", "tcpi_snd_mss", "tcpEStatsPerfCurMSS", ""),
    column("cc", "congestion controller: its name in the scenario, on a live host the kernel's name", "", "", ""),
    column("cc_source", "what chose it: `scenario`, `policy`, `route`, `application`, `default`, `unknown`", "", "", ""),
    column("prefix", "prefix of the client's address", "", "", "sim, kernel, quic"),
    column("local_port", "port of this end, on the kernel ground of the one that sends the data", "", "", "sim, quic; several paths"),
    column("remote_port", "port of the other end", "", "", "sim, quic; several paths"),
    column("group", "group of prefixes that are treated alike", "", "", "sim, kernel, quic"),
    column("block", "block of time in an experiment", "", "", "sim, kernel, quic"),
    column("arm", "arm of the experiment that the connection was assigned to", "", "", "sim, kernel, quic"),
    column("weight", "number of connections that the row stands for: the inverse of the sampling probability", "", "", "sim, kernel, quic"),
    column("flow_name", "flow as `client[0]`", "", "", "live"),
];
