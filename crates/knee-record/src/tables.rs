//! The columns of the Parquet files. A column is named like the field of its
//! row; docs/records.md lists them.

use crate::table::{self, Column, Derived, Version};
use crate::{
    Error, FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, Records, TransferRecord,
    phase,
};
use std::collections::BTreeMap;
use std::path::Path;

/// `flows.parquet`; 2: multipath.
pub(crate) const FLOWS: Version = Version { name: "knee-flows/2", before: Some("knee-flows/1") };
/// `samples.parquet` and `path-samples.parquet`; 2: reassembly.
pub(crate) const SAMPLES: Version =
    Version { name: "knee-samples/2", before: Some("knee-samples/1") };
/// `links.parquet`.
pub(crate) const LINKS: Version = Version { name: "knee-links/1", before: None };
/// `paths.parquet`.
pub(crate) const PATHS: Version = Version { name: "knee-paths/1", before: None };
/// `objects.parquet`.
pub(crate) const OBJECTS: Version = Version { name: "knee-objects/1", before: None };
/// `transfers.parquet`.
pub(crate) const TRANSFERS: Version = Version { name: "knee-transfers/1", before: None };

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

/// Integer columns of fields that say themselves that there is no value.
macro_rules! optional_integers {
    ($row:ty: $($field:ident),+) => {
        [$(Column::Integer {
            name: stringify!($field),
            nullable: true,
            get: |row: &$row| row.$field.map(Into::into),
            set: |row, value| {
                let value = value.map(TryInto::try_into).transpose();
                value.map(|value| row.$field = value).is_ok()
            },
        }),+]
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
    columns.extend(optional_integers!(FlowRecord: completion_ns));
    columns.push(Column::Float {
        name: "header_overhead",
        get: |row| row.header_overhead,
        set: |row, value| row.header_overhead = value,
    });
    let added = integers!(FlowRecord:
        reinjected_bytes, duplicate_bytes, head_of_line_ns, reassembly_peak_bytes, suspicions;
        or_null:);
    columns.extend(texts!(FlowRecord: scheduler).map(Column::added));
    columns.extend(added.into_iter().map(Column::added));
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
    let added = integers!(FlowSample: reassembly_bytes; or_null:);
    columns.extend(added.into_iter().map(Column::added));
    columns
}

pub(crate) fn link_columns() -> Vec<Column<LinkSample>> {
    integers!(LinkSample:
        link, time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes, capacity_bytes,
        entered_packets, dropped_packets, lost_packets, marked_packets;
        or_null:)
}

pub(crate) fn path_columns() -> Vec<Column<PathRecord>> {
    let mut columns = integers!(PathRecord:
        flow, path, sent_bytes, retransmitted_bytes, delivered_bytes, base_rtt_ns,
        one_way_delay_ns, timeouts, recoveries;
        or_null: rtt_min_ns, rtt_max_ns, rate_bps);
    columns.extend(texts!(PathRecord: name));
    columns.push(Column::Flag {
        name: "backup",
        get: |row| row.backup,
        set: |row, value| row.backup = value,
    });
    columns
}

pub(crate) fn object_columns() -> Vec<Column<ObjectRecord>> {
    let mut columns = integers!(ObjectRecord:
        flow, number, connection, size_bytes, requested_ns, buffer_ns, stalled_ns;
        or_null: bitrate_bps);
    columns.extend(texts!(ObjectRecord: name));
    columns.extend(optional_integers!(ObjectRecord: first_byte_ns, completed_ns, quality));
    columns
}

pub(crate) fn transfer_columns() -> Vec<Column<TransferRecord>> {
    let mut columns = integers!(TransferRecord:
        flow, number, start_ns, size_bytes, delivered_bytes, sent_bytes, retransmitted_bytes;
        or_null: rtt_min_ns);
    columns.extend(optional_integers!(TransferRecord: completion_ns));
    columns
}

/// Names of what rows refer to by number, for readers without Knee.
pub(crate) struct Names<'a> {
    flows: BTreeMap<u32, String>,
    paths: BTreeMap<(u32, u16), &'a str>,
    links: &'a [String],
}

impl<'a> Names<'a> {
    pub(crate) fn of(records: &'a Records) -> Names<'a> {
        let paths = records.paths.iter();
        Names {
            flows: records.flows.iter().map(|flow| (flow.flow, flow.label())).collect(),
            paths: paths.map(|row| ((row.flow, row.path), row.name.as_str())).collect(),
            links: &records.link_names,
        }
    }

    fn flow(&self, flow: u32) -> &str {
        self.flows.get(&flow).map_or("", String::as_str)
    }

    fn path(&self, row: &FlowSample) -> &str {
        self.paths.get(&(row.flow, row.path)).copied().unwrap_or("")
    }

    fn link(&self, link: u32) -> &str {
        self.links.get(link as usize).map_or("", String::as_str)
    }
}

pub(crate) fn write_flows(path: &Path, rows: &[FlowRecord]) -> Result<(), Error> {
    table::write(path, &FLOWS, &flow_columns(), &[], rows)
}

pub(crate) fn write_samples(
    path: &Path,
    names: &Names<'_>,
    rows: &[FlowSample],
) -> Result<(), Error> {
    let flow = |row: &FlowSample| names.flow(row.flow);
    let derived = [Derived { name: "flow_name", get: &flow }];
    table::write(path, &SAMPLES, &sample_columns(), &derived, rows)
}

pub(crate) fn write_path_samples(
    path: &Path,
    names: &Names<'_>,
    rows: &[FlowSample],
) -> Result<(), Error> {
    let flow = |row: &FlowSample| names.flow(row.flow);
    let path_name = |row: &FlowSample| names.path(row);
    let derived =
        [Derived { name: "flow_name", get: &flow }, Derived { name: "path_name", get: &path_name }];
    table::write(path, &SAMPLES, &sample_columns(), &derived, rows)
}

pub(crate) fn write_links(
    path: &Path,
    names: &Names<'_>,
    rows: &[LinkSample],
) -> Result<(), Error> {
    let link = |row: &LinkSample| names.link(row.link);
    let derived = [Derived { name: "link_name", get: &link }];
    table::write(path, &LINKS, &link_columns(), &derived, rows)
}

pub(crate) fn write_paths(
    path: &Path,
    names: &Names<'_>,
    rows: &[PathRecord],
) -> Result<(), Error> {
    let flow = |row: &PathRecord| names.flow(row.flow);
    let derived = [Derived { name: "flow_name", get: &flow }];
    table::write(path, &PATHS, &path_columns(), &derived, rows)
}

pub(crate) fn write_objects(
    path: &Path,
    names: &Names<'_>,
    rows: &[ObjectRecord],
) -> Result<(), Error> {
    let flow = |row: &ObjectRecord| names.flow(row.flow);
    let derived = [Derived { name: "flow_name", get: &flow }];
    table::write(path, &OBJECTS, &object_columns(), &derived, rows)
}

pub(crate) fn write_transfers(
    path: &Path,
    names: &Names<'_>,
    rows: &[TransferRecord],
) -> Result<(), Error> {
    let flow = |row: &TransferRecord| names.flow(row.flow);
    let derived = [Derived { name: "flow_name", get: &flow }];
    table::write(path, &TRANSFERS, &transfer_columns(), &derived, rows)
}

pub(crate) fn read_flows(path: &Path) -> Result<Vec<FlowRecord>, Error> {
    table::read(path, &FLOWS, &flow_columns())
}

pub(crate) fn read_samples(path: &Path) -> Result<Vec<FlowSample>, Error> {
    table::read(path, &SAMPLES, &sample_columns())
}

pub(crate) fn read_links(path: &Path) -> Result<Vec<LinkSample>, Error> {
    table::read(path, &LINKS, &link_columns())
}

pub(crate) fn read_paths(path: &Path) -> Result<Vec<PathRecord>, Error> {
    table::read(path, &PATHS, &path_columns())
}

pub(crate) fn read_objects(path: &Path) -> Result<Vec<ObjectRecord>, Error> {
    table::read(path, &OBJECTS, &object_columns())
}

pub(crate) fn read_transfers(path: &Path) -> Result<Vec<TransferRecord>, Error> {
    table::read(path, &TRANSFERS, &transfer_columns())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/records.md");
    const UNITS: [&str; 5] = ["_ns", "_bytes", "_bps", "_packets", "_overhead"];
    /// Columns that count or name things: they have no unit.
    const WITHOUT_UNIT: [&str; 16] = [
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
        "scheduler",
        "suspicions",
        "backup",
        "number",
        "connection",
        "quality",
    ];

    /// Each file's heading in the document, and the columns of its table.
    fn tables() -> [(&'static str, Vec<&'static str>); 6] {
        fn names<R>(columns: &[Column<R>]) -> Vec<&'static str> {
            columns.iter().map(Column::name).collect()
        }
        [
            ("## flows.parquet", names(&flow_columns())),
            ("## samples.parquet", names(&sample_columns())),
            ("## links.parquet", names(&link_columns())),
            ("## paths.parquet", names(&path_columns())),
            ("## objects.parquet", names(&object_columns())),
            ("## transfers.parquet", names(&transfer_columns())),
        ]
    }

    /// Each column stands in the section of its own file.
    #[test]
    fn every_column_is_documented() {
        for (heading, columns) in tables() {
            let (_, section) = DOCUMENT.split_once(heading).expect(heading);
            let section = section.split("\n## ").next().unwrap_or("");
            for name in columns {
                assert!(section.contains(&format!("`{name}`")), "{heading}: {name}");
            }
        }
    }

    #[test]
    fn names_end_in_their_unit() {
        for name in tables().into_iter().flat_map(|(_, columns)| columns) {
            let unit = UNITS.iter().any(|unit| name.ends_with(unit));
            assert!(unit || WITHOUT_UNIT.contains(&name), "{name}");
        }
    }
}
