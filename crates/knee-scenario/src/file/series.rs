//! Values over time that are read from a file.

use super::OffsetFile;
use crate::read::{Optional, Required, table, words};
use crate::tree::Node;

table! {
    /// A value over time, read from a file: a table with a row per time, or what iperf3, irtt, ping
    /// or netem-trace write. From each row on, its value applies.
    "a table over time" SeriesFile {
        /// Name of the file, relative to the scenario's folder; compressed by gzip or not.
        table: Required<String>,
        /// Column of the time, by name or by number from 1, and its unit: "t s", "1 ms". Without a
        /// unit: a date or a time of day. Default: none, required for a table with columns.
        time: Optional<String>,
        /// Column of the value and its unit: "Throughput Mbit/s", "rtt ms", "loss %". An amount
        /// over the time in which it was counted is a rate, too: "bytes B / elapsed ms"; that time
        /// ends with the row's. Default: none, required for a table with columns.
        value: Optional<String>,
        /// The rows that count, by the text of a column: "unit_id = 386". Default: all.
        rows: Optional<String>,
        /// Factor on each value, such as 0.5 for half of an RTT. Default: 1.0.
        scale: Optional<f64>,
        /// Position in the table at which the run begins: a time, such as "20 s", or "random",
        /// drawn from the seed. Default: 0 s.
        offset: Optional<OffsetFile>,
        /// Whether the table begins again after its last row; otherwise the last value stays.
        /// Default: true.
        repeat: Optional<bool>,
        /// What applies where rows are missing: between two that are further apart than 1.5 times
        /// the usual. Default: "hold".
        gap: Optional<GapWord>,
    }
}

table! {
    /// A delay over time, read from a file.
    "a delay over time" DelaySeriesFile {
        /// Whether packets may overtake each other when the delay falls; otherwise order is kept.
        /// Default: false.
        reorder: Optional<bool>,
    }
    with series: SeriesFile
}

words! {
    /// What applies where rows of a table are missing.
    "gap" GapWord {
        /// The value of the row before.
        Hold = "hold",
        /// Zero: no rate, no loss.
        Zero = "zero",
    }
}

/// Whether a table of a scenario names a file with a value over time.
pub(crate) fn is_series(node: &Node) -> bool {
    node.get("table").is_some()
}
