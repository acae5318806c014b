//! Figures of the transfers in access logs, shown by `knee report` on logs. This module only defines
//! the data; `knee-live` computes it.

use crate::{ObservedBin, ObservedSpread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of [`LogReport`].
pub const LOG_REPORT_SCHEMA: &str = "knee-log-report/1";

/// The transfers of access logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogReport {
    /// `knee-log-report/1`.
    pub schema: String,
    /// The logs, in the order in which they were read.
    pub logs: Vec<LogFile>,
    /// Earliest time of a transfer, seconds since 1970 (UTC), or since the first midnight of a log
    /// without dates; null if no line has a time.
    pub from_unix_s: Option<i64>,
    /// Latest time of a transfer.
    pub to_unix_s: Option<i64>,
    /// Whether the times have a date.
    pub dated: bool,
    /// Transfers without a time that can be compared.
    pub without_time: u64,
    /// Transfers without a duration.
    pub without_duration: u64,
    /// Of these, transfers with a duration of an unknown unit.
    pub without_unit: u64,
    /// Transfers whose duration is logged as zero: shorter than the log's resolution. They have no
    /// throughput, and their time is not among the percentiles.
    pub too_short: u64,
    /// Resolution of the durations, seconds: the coarsest of 1 s and 1 ms of which all are
    /// multiples; null if they are finer.
    pub resolution_s: Option<f64>,
    /// All transfers together.
    pub all: LogCell,
    /// Those of 3 MB and more.
    pub large: LogCell,
    /// Those below 3 MB.
    pub small: LogCell,
    /// Transfers by size class.
    pub classes: Vec<LogCell>,
    /// Transfers by version of HTTP and size (below 3 MB, or 3 MB and more); empty if the logs have
    /// none.
    pub protocols: Vec<LogCell>,
    /// Transfers by congestion controller and size; empty if the logs have none.
    pub controllers: Vec<LogCell>,
    /// Transfers by group of clients and size; empty if no groups were given.
    pub groups: Vec<LogCell>,
    /// Transfers by network of the clients and size, the one with the most bytes first; empty if no
    /// table was given.
    pub providers: Vec<LogCell>,
    /// Transfers by prefix of the clients (/24, IPv6: /48) and size, the one with the most bytes
    /// first: those that were seen among the first few thousand.
    pub prefixes: Vec<LogCell>,
    /// Transfers of clients with other prefixes.
    pub other_prefixes: u64,
    /// Transfers by size, duration and hour of the day.
    pub heat: Vec<ObservedBin>,
    /// Course over time.
    pub course: LogCourse,
    /// The moment of a change, seconds since 1970 (UTC), if one was given.
    pub since_unix_s: Option<i64>,
    /// Two sets of transfers beside each other: before and after that moment, and HTTP/2 and HTTP/3.
    pub beside: Vec<LogBeside>,
}

/// An access log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// Lines that are transfers.
    pub transfers: u64,
    /// Lines that are none, by reason.
    pub passed_over: Vec<LogPassedOver>,
}

/// Lines that are no transfer, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPassedOver {
    /// The reason.
    pub reason: String,
    /// Number of lines.
    pub lines: u64,
    /// Number of the first of them, from one.
    pub first: u64,
}

/// Transfers of one kind. Percentiles are at most 4.4 % off, far less where values vary smoothly;
/// counts and bytes are exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogCell {
    /// Name of the group, provider, prefix, protocol or controller; empty for all.
    pub name: String,
    /// Size class; empty for all.
    pub class: String,
    /// Number of transfers.
    pub transfers: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Bytes over duration of each transfer, bit/s.
    pub throughput_bps: Option<ObservedSpread>,
    /// Interval of 95 % of its median, as if transfers were independent of each other.
    pub throughput_median_bps: Option<[f64; 2]>,
    /// Duration of each transfer.
    pub time_us: Option<ObservedSpread>,
    /// Interval of 95 % of its median, as if transfers were independent of each other.
    pub time_median_us: Option<[f64; 2]>,
    /// Share of the durations that may be the server's: until the first byte, or its wait for a
    /// server behind it. Sum over sum, of the transfers of which it is logged; null if it is of none.
    pub server_ratio: Option<f64>,
    /// The client's round-trip time.
    pub rtt_us: Option<ObservedSpread>,
    /// Delivery rate that the transport measured, bit/s.
    pub delivery_rate_bps: Option<ObservedSpread>,
    /// Throughput over delivery rate, of each transfer with both.
    pub delivery_ratio: Option<ObservedSpread>,
}

/// Time series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogCourse {
    /// Length of a step, seconds.
    pub step_s: u64,
    /// Steps with transfers, ascending.
    pub points: Vec<LogPoint>,
}

/// A step of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogPoint {
    /// Its start, seconds since 1970 (UTC).
    pub unix_s: i64,
    /// Transfers logged in it.
    pub transfers: u64,
    /// Bytes sent by these.
    pub bytes: u64,
    /// Median throughput of those of 3 MB and more, bit/s.
    pub throughput_bps: Option<f64>,
    /// Median duration of those below 3 MB.
    pub time_us: Option<f64>,
}

/// Two sets of transfers, by size and by whatever tells transfers apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogBeside {
    /// Name of each set.
    pub names: [String; 2],
    /// Whether they are before and after a moment; otherwise two protocols.
    pub of_moment: bool,
    /// Figures by name and size; all together come first.
    pub pairs: Vec<[LogCell; 2]>,
    /// Their transfers by size, duration and hour of the day; empty unless of a moment.
    pub heats: Vec<Vec<ObservedBin>>,
}
