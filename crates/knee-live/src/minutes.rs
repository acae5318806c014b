//! The table of aggregates: one row for each minute and kind of connections.

use crate::cells::{Cell, Cells, Kind};
use knee_columns::{Cells as Column, Kind as Type};
use knee_record::{Error, size_classes, write_columns};
use knee_statistics::Sketch;
use std::path::Path;

/// Schema of the table, which docs/observe.md describes.
pub const MINUTES_SCHEMA: &str = "knee-minutes/1";

/// Connections that ended within a minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minute {
    /// When it began, nanoseconds since 1970 (UTC).
    pub unix_ns: u64,
    pub cells: Cells,
    /// Reports that the kernel had no room for meanwhile, of all kinds.
    pub lost: u64,
}

type Row<'a> = (&'a Minute, &'a Kind, &'a Cell);

/// Writes minutes as the Parquet file `path`. A minute in which nothing ended has a row
/// without a kind, so that what was lost stands somewhere.
pub(crate) fn write(path: &Path, minutes: &[Minute]) -> Result<(), Error> {
    let nothing = (Kind { group: "".into(), class: None, controller: "".into() }, Cell::default());
    let rows: Vec<Row<'_>> = minutes
        .iter()
        .flat_map(|minute| {
            let quiet = minute.cells.0.is_empty().then_some((minute, &nothing.0, &nothing.1));
            minute.cells.0.iter().map(move |(kind, cell)| (minute, kind, cell)).chain(quiet)
        })
        .collect();
    let integers = |name: &str, get: fn(&Row<'_>) -> u64| {
        let values = rows.iter().map(|row| i64::try_from(get(row)).unwrap_or(i64::MAX)).collect();
        (name.to_string(), Type::Integer { nullable: false }, Column::Integers(values, None))
    };
    let texts = |name: &str, get: &dyn Fn(&Row<'_>) -> String| {
        let values: Vec<String> = rows.iter().map(get).collect();
        let column = Column::texts(values.iter().map(String::as_str));
        (name.to_string(), Type::Text, column)
    };
    let classes = size_classes();
    let class = |row: &Row<'_>| row.1.class.map_or("", |class| classes[class].name).to_string();
    let sketch = |name: &str, get: fn(&Cell) -> &Sketch| texts(name, &|row| get(row.2).text());
    let columns = [
        integers("minute_unix_ns", |row| row.0.unix_ns),
        texts("group", &|row| row.1.group.to_string()),
        texts("class", &class),
        texts("cc", &|row| row.1.controller.to_string()),
        texts("arm", &|_| String::new()),
        integers("connections", |row| row.2.connections),
        integers("lost_reports", |row| row.0.lost),
        integers("acked_bytes", |row| row.2.acked_bytes),
        integers("sent_bytes", |row| row.2.sent_bytes),
        integers("retransmitted_bytes", |row| row.2.retransmitted_bytes),
        integers("timeouts", |row| row.2.timeouts),
        integers("busy_ns", |row| row.2.busy_ns),
        integers("receive_limited_ns", |row| row.2.receive_limited_ns),
        integers("send_buffer_limited_ns", |row| row.2.send_buffer_limited_ns),
        sketch("throughput_bps_sketch", |cell| &cell.throughput_bps),
        sketch("busy_us_sketch", |cell| &cell.busy_us),
        sketch("rtt_min_us_sketch", |cell| &cell.rtt_min_us),
    ];
    write_columns(path, MINUTES_SCHEMA, &columns)
}
