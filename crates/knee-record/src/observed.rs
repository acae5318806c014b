//! Figures of the connections of a live host, shown by `knee report` on a folder of `knee observe`.
//! This module only defines the data; `knee-live` computes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of [`ObservedReport`].
pub const OBSERVED_REPORT_SCHEMA: &str = "knee-observed-report/1";

/// Bins of the heat map per decade of size and of time.
pub const OBSERVED_BINS: f64 = 8.0;

/// The connections of a host that ended within a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedReport {
    /// `knee-observed-report/1`.
    pub schema: String,
    /// Start of the first minute, seconds since 1970 (UTC).
    pub from_unix_s: u64,
    /// End of the last minute, seconds since 1970 (UTC).
    pub to_unix_s: u64,
    /// Whether at most 1 % of the reports were lost, so that the figures represent the
    /// host.
    pub valid: bool,
    /// Connections that ended.
    pub connections: u64,
    /// Of these, connections on which this end sent no payload.
    pub silent: u64,
    /// Reports that the kernel dropped for lack of buffer space.
    pub lost_reports: u64,
    /// Minutes of the clock of which something was observed.
    pub minutes: u64,
    /// Time that was observed, seconds.
    #[serde(default)]
    pub observed_s: u64,
    /// Of these, minutes in which more than 1 % of the reports were lost.
    pub minutes_with_loss: u64,
    /// Connections with a row of their own, from which heat maps and providers are
    /// computed.
    pub rows: u64,
    /// All connections together.
    pub all: ObservedCell,
    /// Those of 3 MB and more.
    pub large: ObservedCell,
    /// Those below 3 MB that had payload acknowledged.
    pub small: ObservedCell,
    /// Connections by size class and controller.
    pub controllers: Vec<ObservedCell>,
    /// Figures by group, size (below 3 MB, or 3 MB and more) and controller, the group
    /// with the most bytes first; empty if no groups were given.
    pub groups: Vec<ObservedCell>,
    /// Figures by group, arm, size (as above) and controller, of the connections whose arm in a
    /// policy or an experiment of this host is known.
    #[serde(default)]
    pub arms: Vec<ObservedCell>,
    /// Connections by hour of the day (UTC); hours in which nothing was observed are left out.
    pub hours: Vec<ObservedHour>,
    /// Connections by size, busy time and hour of the day.
    pub heat: Vec<ObservedBin>,
    /// Figures by provider, the one with the most bytes first; empty if no table
    /// was given.
    pub providers: Vec<ObservedProvider>,
    /// Prefixes of that table that are longer than the stored addresses.
    pub prefixes_too_long: u64,
    /// Course over time.
    pub course: ObservedCourse,
    /// Comparison of two periods or two controllers, if requested.
    pub beside: Option<ObservedBeside>,
    /// Objects of an access log, if one was given.
    pub objects: Option<ObservedObjects>,
}

/// Connections of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedCell {
    /// Group of the clients' prefixes; empty for all.
    pub group: String,
    /// Arm of the policy or experiment; empty for all.
    #[serde(default)]
    pub arm: String,
    /// Size class, by acknowledged payload; empty for all.
    pub class: String,
    /// The kernel's name of the controller; empty if not seen, or for all.
    pub controller: String,
    /// Number of connections.
    pub connections: u64,
    /// Of these, connections that ended with data that the other end had not acknowledged; null
    /// where only rows are counted, which do not say so, or files of versions that did not.
    #[serde(default)]
    pub unfinished: Option<u64>,
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fraction of the busy time that the receiver's window limited; none: no busy time.
    pub receive_limited_ratio: Option<f64>,
    /// Acknowledged payload over busy time, of each connection, bit/s.
    pub throughput_bps: Option<ObservedSpread>,
    /// Time with data to send or unacknowledged, of each connection.
    pub busy_us: Option<ObservedSpread>,
    /// Smallest RTT of each connection.
    pub rtt_min_us: Option<ObservedSpread>,
}

impl ObservedCell {
    /// Returns the share of connections that ended with undelivered data; `None` if it is not known.
    pub fn unfinished_ratio(&self) -> Option<f64> {
        let unfinished = self.unfinished? as f64;
        (self.connections > 0).then(|| unfinished / self.connections as f64)
    }

    /// Returns retransmitted payload over sent payload; `None` if nothing was sent.
    pub fn retransmit_ratio(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.retransmitted_bytes as f64 / self.sent_bytes as f64)
    }
}

/// Percentiles of a distribution, with an error of at most 2.2 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedSpread {
    /// Number of values.
    pub count: u64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// An hour of the day, over all days together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedHour {
    /// Hour of the day (UTC), 0 to 23.
    pub hour: u32,
    /// Connections that ended in it.
    pub all: ObservedCell,
    /// Of these, connections of 3 MB and more.
    pub large: ObservedCell,
    /// Of these, connections below 3 MB.
    pub small: ObservedCell,
}

/// A bin of the heat map; its sides are an eighth of a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedBin {
    /// Hour of the day (UTC).
    pub hour: u32,
    /// Acknowledged payload from 10^(k/8) bytes to below 10^((k+1)/8).
    pub size_bin: i32,
    /// Busy time from 10^(k/8) seconds to below 10^((k+1)/8).
    pub time_bin: i32,
    /// Number of connections, by their weights.
    pub connections: u64,
}

/// A network of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedProvider {
    /// Number of the autonomous system; null for prefixes in no line of the
    /// table.
    pub asn: Option<u32>,
    /// Its name.
    pub name: String,
    /// All its connections.
    pub all: ObservedCell,
    /// Those of 3 MB and more.
    pub large: ObservedCell,
    /// Those below 3 MB.
    pub small: ObservedCell,
}

/// Time series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedCourse {
    /// Length of a step, seconds.
    pub step_s: u64,
    /// Steps in which something was observed, ascending.
    pub points: Vec<ObservedPoint>,
}

/// A step of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedPoint {
    /// Its start, seconds since 1970 (UTC).
    pub unix_s: u64,
    /// Minutes of the clock of which something was observed.
    pub minutes: u64,
    /// Time that was observed in it, nanoseconds.
    #[serde(default)]
    pub observed_ns: u64,
    /// Connections that ended.
    pub connections: u64,
    /// Payload acknowledged on these connections.
    pub acked_bytes: u64,
    /// Payload sent on them, retransmissions included.
    pub sent_bytes: u64,
    /// Payload retransmitted.
    pub retransmitted_bytes: u64,
    /// Reports that the kernel dropped for lack of buffer space.
    pub lost_reports: u64,
}

/// Comparison of two sets of connections, by group and size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedBeside {
    /// Name of each set: a period, or a controller.
    pub names: [String; 2],
    /// Whether two controllers are compared; otherwise two periods.
    pub of_controllers: bool,
    /// Figures by group and size; all groups together come first.
    pub pairs: Vec<[ObservedCell; 2]>,
}

/// Objects of an access log, on the connections that carried them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedObjects {
    /// Lines read, with a size.
    pub lines: u64,
    /// Lines skipped: without client, port, time or size.
    pub passed_over: u64,
    /// Objects whose connection was found.
    pub joined: u64,
    /// Objects by size class and controller.
    pub cells: Vec<ObservedObjectCell>,
}

/// Objects of a size class under a controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedObjectCell {
    /// Size class of the objects.
    pub class: String,
    /// Controller of the connection; empty if not seen.
    pub controller: String,
    /// Number of objects.
    pub objects: u64,
    /// Objects that had their connection to themselves.
    pub alone: u64,
    /// Bytes of the object over its duration in the log, bit/s; null if the log has no
    /// durations.
    pub log_throughput_bps: Option<ObservedSpread>,
    /// Throughput of the object's connection, for objects that had it to themselves:
    /// payload acknowledged over its busy time, bit/s.
    pub throughput_bps: Option<ObservedSpread>,
    /// Smallest RTT of the object's connection.
    pub rtt_min_us: Option<ObservedSpread>,
    /// Fraction of the payload sent by the connections of these objects that was
    /// retransmitted; each connection counts once for each object.
    pub retransmit_ratio: Option<f64>,
}
