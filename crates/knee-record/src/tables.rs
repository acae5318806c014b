//! The columns of `flows.parquet`, `samples.parquet` and `links.parquet`.
//! A column is named like the field of its row; docs/records.md lists them.

use crate::table::{self, Column, Derived};
use crate::{Error, FlowRecord, FlowSample, LinkSample, Records, phase};
use std::collections::BTreeMap;
use std::path::Path;

/// Schema name of `flows.parquet`.
pub const FLOWS_SCHEMA: &str = "knee-flows/1";
/// Schema name of `samples.parquet`.
pub const SAMPLES_SCHEMA: &str = "knee-samples/1";
/// Schema name of `links.parquet`.
pub const LINKS_SCHEMA: &str = "knee-links/1";

/// Integer columns named like their field. `or_null`: zero means that there
/// is no value.
macro_rules! integers {
    ($row:ty: $($field:ident),+; or_null: $($optional:ident),*) => {
        vec![
            $(Column::Integer {
                name: stringify!($field),
                nullable: false,
                get: |row: &$row| Some(row.$field.into()),
                set: |row, value| {
                    let value = value.unwrap_or(0).try_into();
                    value.map(|value| row.$field = value).is_ok()
                },
            },)+
            $(Column::Integer {
                name: stringify!($optional),
                nullable: true,
                get: |row: &$row| Some(row.$optional).filter(|value| *value > 0),
                set: |row, value| {
                    row.$optional = value.unwrap_or(0);
                    true
                },
            },)*
        ]
    };
}

/// Text columns named like their field.
macro_rules! texts {
    ($row:ty: $($field:ident),+) => {
        [$(Column::Text {
            name: stringify!($field),
            get: |row: &$row| &row.$field,
            set: |row, value| { row.$field = value.to_string(); Ok(()) },
        }),+]
    };
}

pub(crate) fn flow_columns() -> Vec<Column<FlowRecord>> {
    let mut columns = integers!(FlowRecord:
        flow, index, start_ns, end_ns, delivered_bytes, delivered_packets, sent_bytes,
        retransmitted_bytes, base_rtt_ns, timeouts, recoveries, spurious_recoveries, marked_bytes;
        or_null: size_bytes, rtt_min_ns, rtt_max_ns, path_rate_bps);
    columns.extend(texts!(FlowRecord: name, cc, path));
    columns.push(Column::Integer {
        name: "completion_ns",
        nullable: true,
        get: |row| row.completion_ns,
        set: |row, value| {
            row.completion_ns = value;
            true
        },
    });
    columns.push(Column::Float {
        name: "header_overhead",
        get: |row| row.header_overhead,
        set: |row, value| row.header_overhead = value,
    });
    columns
}

pub(crate) fn sample_columns() -> Vec<Column<FlowSample>> {
    let mut columns = integers!(FlowSample:
        flow, path, time_ns, delivered_bytes, sent_bytes, retransmitted_bytes, sent_packets,
        lost_bytes, in_flight_bytes, window_bytes;
        or_null: pacing_rate_bps, rtt_ns, srtt_ns, bandwidth_estimate_bps, min_rtt_estimate_ns,
        slow_start_threshold_bytes);
    columns.push(Column::Text {
        name: "phase",
        get: |row| row.phase,
        set: |row, value| {
            row.phase = phase::intern(value).ok_or_else(|| format!("{value:?} is no phase"))?;
            Ok(())
        },
    });
    columns
}

pub(crate) fn link_columns() -> Vec<Column<LinkSample>> {
    integers!(LinkSample:
        link, time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes, capacity_bytes,
        entered_packets, dropped_packets, lost_packets, marked_packets;
        or_null:)
}

pub(crate) fn write_flows(path: &Path, records: &Records) -> Result<(), Error> {
    table::write(path, FLOWS_SCHEMA, &flow_columns(), &[], &records.flows)
}

pub(crate) fn write_samples(path: &Path, records: &Records) -> Result<(), Error> {
    let names: BTreeMap<u32, String> =
        records.flows.iter().map(|flow| (flow.flow, flow.label())).collect();
    let name_of = |row: &FlowSample| names.get(&row.flow).map_or("", String::as_str);
    let derived = [Derived { name: "flow_name", get: &name_of }];
    let columns = sample_columns();
    table::write(path, SAMPLES_SCHEMA, &columns, &derived, &records.samples)
}

pub(crate) fn write_links(path: &Path, records: &Records) -> Result<(), Error> {
    let name_of = |row: &LinkSample| {
        let name = records.link_names.get(row.link as usize);
        name.map_or("", String::as_str)
    };
    let derived = [Derived { name: "link_name", get: &name_of }];
    let columns = link_columns();
    table::write(path, LINKS_SCHEMA, &columns, &derived, &records.links)
}

pub(crate) fn read_flows(path: &Path) -> Result<Vec<FlowRecord>, Error> {
    table::read(path, FLOWS_SCHEMA, &flow_columns())
}

pub(crate) fn read_samples(path: &Path) -> Result<Vec<FlowSample>, Error> {
    table::read(path, SAMPLES_SCHEMA, &sample_columns())
}

pub(crate) fn read_links(path: &Path) -> Result<Vec<LinkSample>, Error> {
    table::read(path, LINKS_SCHEMA, &link_columns())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/records.md");
    const UNITS: [&str; 5] = ["_ns", "_bytes", "_bps", "_packets", "_overhead"];
    /// Columns that count or name things: they have no unit.
    const WITHOUT_UNIT: [&str; 10] = [
        "flow",
        "index",
        "name",
        "cc",
        "path",
        "link",
        "phase",
        "timeouts",
        "recoveries",
        "spurious_recoveries",
    ];

    fn names() -> Vec<&'static str> {
        let flows = flow_columns().iter().map(Column::name).collect::<Vec<_>>();
        let samples = sample_columns().iter().map(Column::name).collect::<Vec<_>>();
        let links = link_columns().iter().map(Column::name).collect::<Vec<_>>();
        [flows, samples, links].concat()
    }

    #[test]
    fn every_column_is_documented() {
        for name in names() {
            assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn names_end_in_their_unit() {
        for name in names() {
            let unit = UNITS.iter().any(|unit| name.ends_with(unit));
            assert!(unit || WITHOUT_UNIT.contains(&name), "{name}");
        }
    }
}
