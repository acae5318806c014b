//! The columns of the Parquet files. A column is named like the field of its
//! row; docs/records.md lists them.

use crate::rows::label;
use crate::table::{Column, Derived, Layout, Version};
use crate::{
    FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, Records, TransferRecord,
};
use knee_scenario::Scenario;
use std::collections::BTreeMap;

/// `flows.parquet`; 2: multipath.
pub(crate) const FLOWS: Version = Version { name: "knee-flows/2", before: Some("knee-flows/1") };
/// `samples.parquet` and `path-samples.parquet`; 2: reassembly.
pub(crate) const SAMPLES: Version =
    Version { name: "knee-samples/2", before: Some("knee-samples/1") };
/// `links.parquet`; 2: what was used.
pub(crate) const LINKS: Version = Version { name: "knee-links/2", before: Some("knee-links/1") };
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
            row.phase =
                knee_cc::intern_phase(value).ok_or_else(|| format!("{value:?} is no phase"))?;
            Ok(())
        },
    });
    let added = integers!(FlowSample: reassembly_bytes; or_null:);
    columns.extend(added.into_iter().map(Column::added));
    columns
}

pub(crate) fn link_columns() -> Vec<Column<LinkSample>> {
    let mut columns = integers!(LinkSample:
        link, time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes, capacity_bytes,
        entered_packets, dropped_packets, lost_packets, marked_packets;
        or_null:);
    let added = integers!(LinkSample: used_bytes; or_null:);
    columns.extend(added.into_iter().map(Column::added));
    columns
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
pub(crate) struct Names {
    flows: BTreeMap<u32, String>,
    paths: BTreeMap<(u32, u16), String>,
    links: Vec<String>,
}

impl Names {
    /// Those of rows that are there already.
    pub(crate) fn of(records: &Records) -> Names {
        let paths = records.paths.iter();
        Names {
            flows: records.flows.iter().map(|flow| (flow.flow, flow.label())).collect(),
            paths: paths.map(|row| ((row.flow, row.path), row.name.clone())).collect(),
            links: records.link_names.clone(),
        }
    }

    /// Those of rows to come.
    pub(crate) fn of_scenario(scenario: &Scenario) -> Names {
        let flows = scenario.flows.iter().zip(0u32..);
        let several = flows.clone().filter(|(flow, _)| flow.multipath.is_some());
        let paths = several.flat_map(|(flow, number)| {
            flow.paths
                .iter()
                .map(move |path| ((number, *path as u16), scenario.paths[*path].name.clone()))
        });
        Names {
            paths: paths.collect(),
            flows: flows
                .map(|(flow, number)| (number, label(&flow.name, flow.index as u32)))
                .collect(),
            links: scenario.links.iter().map(|link| link.name.clone()).collect(),
        }
    }

    fn flow(&self, flow: u32) -> &str {
        self.flows.get(&flow).map_or("", String::as_str)
    }

    fn path(&self, row: &FlowSample) -> &str {
        self.paths.get(&(row.flow, row.path)).map_or("", String::as_str)
    }

    fn link(&self, link: u32) -> &str {
        self.links.get(link as usize).map_or("", String::as_str)
    }
}

/// The column `flow_name`, of rows that have a flow.
macro_rules! flow_name {
    ($row:ty) => {
        Derived { name: "flow_name", get: |names, row: &$row| names.flow(row.flow) }
    };
}

pub(crate) fn flows() -> Layout<FlowRecord> {
    Layout { version: FLOWS, columns: flow_columns(), derived: Vec::new() }
}

pub(crate) fn samples() -> Layout<FlowSample> {
    let derived = vec![flow_name!(FlowSample)];
    Layout { version: SAMPLES, columns: sample_columns(), derived }
}

pub(crate) fn path_samples() -> Layout<FlowSample> {
    let path = Derived { name: "path_name", get: |names, row| names.path(row) };
    let derived = vec![flow_name!(FlowSample), path];
    Layout { version: SAMPLES, columns: sample_columns(), derived }
}

pub(crate) fn links() -> Layout<LinkSample> {
    let link = Derived { name: "link_name", get: |names, row: &LinkSample| names.link(row.link) };
    Layout { version: LINKS, columns: link_columns(), derived: vec![link] }
}

pub(crate) fn paths() -> Layout<PathRecord> {
    Layout { version: PATHS, columns: path_columns(), derived: vec![flow_name!(PathRecord)] }
}

pub(crate) fn objects() -> Layout<ObjectRecord> {
    let derived = vec![flow_name!(ObjectRecord)];
    Layout { version: OBJECTS, columns: object_columns(), derived }
}

pub(crate) fn transfers() -> Layout<TransferRecord> {
    let derived = vec![flow_name!(TransferRecord)];
    Layout { version: TRANSFERS, columns: transfer_columns(), derived }
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
