//! The columns of the Parquet files. Each is named after the field of its row; docs/records.md
//! lists them.

use crate::rows::label;
use crate::table::{
    Column, Derived, GROUP_ROWS, Layout, Version, add_integers, add_optional, add_positive,
    to_signed,
};
use crate::{
    ClassSample, ConnectionRecord, ControllerSource, FlowRecord, FlowSample, LinkSample,
    ObjectRecord, PathRecord, Records, TransferRecord,
};
use knee_scenario::Scenario;
use std::collections::BTreeMap;

/// `flows.parquet`; version 2 adds multipath.
pub(crate) const FLOWS: Version = Version { name: "knee-flows/2", before: Some("knee-flows/1") };
/// `samples.parquet` and `path-samples.parquet`; version 2 adds reassembly.
pub(crate) const SAMPLES: Version =
    Version { name: "knee-samples/2", before: Some("knee-samples/1") };
/// `links.parquet`; version 2 adds the bytes used.
pub(crate) const LINKS: Version = Version { name: "knee-links/2", before: Some("knee-links/1") };
/// `classes.parquet`.
pub(crate) const CLASSES: Version = Version { name: "knee-classes/1", before: None };
/// `paths.parquet`.
pub(crate) const PATHS: Version = Version { name: "knee-paths/1", before: None };
/// `objects.parquet`.
pub(crate) const OBJECTS: Version = Version { name: "knee-objects/1", before: None };
/// `connections.parquet`.
pub(crate) const CONNECTIONS: Version = Version { name: "knee-connections/1", before: None };
/// `transfers.parquet`, which is only read.
pub(crate) const TRANSFERS: Version = Version { name: "knee-transfers/1", before: None };

/// Integer columns named after their field. In those after `or_null`, zero means that there is no
/// value.
macro_rules! integers {
    ($row:ty: $($field:ident),*; or_null: $($optional:ident),*) => {
        vec![
            $(Column::Integer {
                name: stringify!($field),
                nullable: false,
                append: |rows: &[$row], values, _| {
                    add_integers(rows, values, |row| row.$field as u64);
                },
                set: |row, value| {
                    let value = value.unwrap_or(0).try_into();
                    value.map(|value| row.$field = value).is_ok()
                },
            },)*
            $(Column::Integer {
                name: stringify!($optional),
                nullable: true,
                append: |rows: &[$row], values, present| {
                    add_positive(rows, |row| row.$optional, values, present);
                },
                set: |row, value| {
                    row.$optional = value.unwrap_or(0);
                    true
                },
            },)*
        ]
    };
}

/// Integer columns of optional fields.
macro_rules! optional_integers {
    ($row:ty: $($field:ident),+) => {
        [$(Column::Integer {
            name: stringify!($field),
            nullable: true,
            append: |rows: &[$row], values, present| {
                let get = |row: &$row| row.$field.map(|value| to_signed(value.into()));
                add_optional(rows, get, values, present);
            },
            set: |row, value| {
                let value = value.map(TryInto::try_into).transpose();
                value.map(|value| row.$field = value).is_ok()
            },
        }),+]
    };
}

/// Text columns named after their field.
macro_rules! texts {
    ($row:ty: $($field:ident),+) => {
        [$(Column::Text {
            name: stringify!($field),
            get: |row: &$row| &row.$field,
            set: |row, value| { row.$field = value.into(); Ok(()) },
        }),+]
    };
}

/// Integer columns of optional fields, which may be null only if `nullable` is set: a file without
/// unknown values keeps columns without nulls.
macro_rules! known_integers {
    ($row:ty: $nullable:expr; $($field:ident),+) => {
        [$(Column::Integer {
            name: stringify!($field),
            nullable: $nullable,
            append: |rows: &[$row], values, present| match present {
                None => add_integers(rows, values, |row| row.$field.unwrap_or(0)),
                present => {
                    let get = |row: &$row| row.$field.map(to_signed);
                    add_optional(rows, get, values, present);
                }
            },
            set: |row, value| {
                row.$field = value;
                true
            },
        }),+]
    };
}

/// Columns of `flows.parquet`; `nullable`: whether what the receiver of several paths counts may be
/// unknown.
pub(crate) fn flow_columns(nullable: bool) -> Vec<Column<FlowRecord>> {
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
    columns.extend(texts!(FlowRecord: scheduler).map(Column::added));
    let mut added = integers!(FlowRecord: reinjected_bytes; or_null:);
    added.extend(known_integers!(FlowRecord: nullable;
        duplicate_bytes, head_of_line_ns, reassembly_peak_bytes));
    added.extend(integers!(FlowRecord: suspicions; or_null:));
    columns.extend(added.into_iter().map(Column::added));
    columns.extend(optional_integers!(FlowRecord: perfect_completion_ns).map(Column::added));
    columns
}

/// Which columns of `samples.parquet` there are that few runs have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rare {
    /// Whether a controller may remove bytes from its window that only queue.
    shrinks: bool,
    /// Whether the network is asked for the RTT of flows.
    path_rtt: bool,
}

impl Rare {
    /// All of them, for reading.
    pub(crate) const ALL: Rare = Rare { shrinks: true, path_rtt: true };
}

/// Columns of `samples.parquet`.
pub(crate) fn sample_columns(rare: Rare) -> Vec<Column<FlowSample>> {
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
                knee_cc::intern_phase(value).ok_or_else(|| format!("{value:?} is not a phase"))?;
            Ok(())
        },
    });
    let added = integers!(FlowSample: reassembly_bytes; or_null:);
    columns.extend(added.into_iter().map(Column::added));
    if rare.shrinks {
        columns.extend(optional_integers!(FlowSample: shrink_bytes).map(Column::added));
    }
    if rare.path_rtt {
        let path_rtt = integers!(FlowSample: ; or_null: path_rtt_ns);
        columns.extend(path_rtt.into_iter().map(Column::added));
    }
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

pub(crate) fn class_columns() -> Vec<Column<ClassSample>> {
    let mut columns = integers!(ClassSample:
        link, class, time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes,
        dropped_packets, marked_packets;
        or_null:);
    columns.push(Column::Text {
        name: "name",
        get: |row| row.name,
        set: |row, value| {
            let known = knee_link::CLASS_NAMES.into_iter().find(|name| *name == value);
            row.name = known.ok_or_else(|| format!("{value:?} is not a class"))?;
            Ok(())
        },
    });
    columns
}

pub(crate) fn path_columns() -> Vec<Column<PathRecord>> {
    let mut columns = integers!(PathRecord:
        flow, path, sent_bytes, retransmitted_bytes, delivered_bytes, base_rtt_ns,
        one_way_delay_ns, timeouts, recoveries;
        or_null: rtt_min_ns, rtt_max_ns, rate_bps);
    columns.extend(optional_integers!(PathRecord: finished_ns));
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

/// Returns the columns in the order of [`crate::CONNECTION_COLUMNS`].
pub(crate) fn connection_columns() -> Vec<Column<ConnectionRecord>> {
    type Row = ConnectionRecord;
    let mut columns = integers!(Row: connection; or_null:);
    columns.extend(optional_integers!(Row: flow));
    columns.extend(texts!(Row: workload));
    columns.extend(optional_integers!(Row: start_ns));
    columns.extend(integers!(Row: end_ns; or_null:));
    columns.extend(optional_integers!(Row:
        completion_ns, size_bytes, delivered_bytes, acked_bytes, received_bytes, sent_bytes,
        retransmitted_bytes, sent_packets, retransmitted_packets, delivered_packets,
        marked_packets, rtt_min_ns, srtt_ns, rttvar_ns, delivery_rate_bps));
    columns.push(Column::OptionalFlag {
        name: "app_limited",
        get: |row| row.app_limited,
        set: |row, value| row.app_limited = value,
    });
    columns.extend(optional_integers!(Row:
        window_bytes, slow_start_threshold_bytes, pacing_rate_bps, busy_ns, receive_limited_ns,
        send_buffer_limited_ns, timeouts, dsacks, reorderings, mss_bytes));
    columns.extend(texts!(Row: cc));
    columns.push(Column::Text {
        name: "cc_source",
        get: |row| row.cc_source.name(),
        set: |row, value| {
            let source = ControllerSource::named(value);
            row.cc_source =
                source.ok_or_else(|| format!("{value:?} is not a source of controllers"))?;
            Ok(())
        },
    });
    columns.extend(texts!(Row: prefix));
    columns.extend(optional_integers!(Row: local_port, remote_port));
    columns.extend(texts!(Row: group));
    columns.extend(optional_integers!(Row: block));
    columns.extend(texts!(Row: arm));
    columns.push(Column::OptionalFloat {
        name: "weight",
        get: |row| row.weight,
        set: |row, value| row.weight = value,
    });
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
#[derive(Default)]
pub(crate) struct Names {
    /// Ascending; usually each is at the place of its number.
    flows: Vec<(u32, String)>,
    paths: BTreeMap<(u32, u16), String>,
    links: Vec<String>,
    rare: Rare,
}

impl Names {
    /// Takes the names from existing rows.
    pub(crate) fn of(records: &Records) -> Names {
        let paths = records.paths.iter();
        let has = |is: fn(&FlowSample) -> bool| {
            records.samples.iter().chain(records.path_samples.iter()).any(|row| is(&row))
        };
        Names {
            flows: ascending(records.flows.iter().map(|flow| (flow.flow, flow.label()))),
            paths: paths.map(|row| ((row.flow, row.path), row.name.clone())).collect(),
            links: records.link_names.clone(),
            rare: Rare {
                shrinks: has(|row| row.shrink_bytes.is_some()),
                path_rtt: has(|row| row.path_rtt_ns > 0),
            },
        }
    }

    /// Takes the names from the scenario, before there are rows.
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
            flows: ascending(
                flows.map(|(flow, number)| (number, label(&flow.name, flow.index as u32))),
            ),
            links: scenario.links.iter().map(|link| link.name.clone()).collect(),
            rare: Rare {
                shrinks: scenario.flows.iter().any(|flow| shrinks(&flow.controller)),
                path_rtt: scenario.flows.iter().any(|flow| flow.program.is_some()),
            },
        }
    }

    fn flow(&self, flow: u32) -> &str {
        let in_place = self.flows.get(flow as usize).filter(|(number, _)| *number == flow);
        let found = in_place.or_else(|| {
            let at = self.flows.binary_search_by_key(&flow, |(number, _)| *number);
            at.ok().map(|at| &self.flows[at])
        });
        found.map_or("", |(_, name)| name)
    }

    fn path(&self, row: &FlowSample) -> &str {
        self.paths.get(&(row.flow, row.path)).map_or("", String::as_str)
    }

    fn link(&self, link: u32) -> &str {
        self.links.get(link as usize).map_or("", String::as_str)
    }
}

/// Whether a controller removes bytes from its window that only queue.
fn shrinks(controller: &knee_cc::Selection) -> bool {
    knee_cc::settings(controller).is_ok_and(|settings| {
        let mut written = settings.written();
        let of = written.find(|(parameter, _)| parameter.name == "shrink_window");
        of.is_some_and(|(_, value)| value != knee_cc::Value::Switch(false))
    })
}

/// Sorts names by their numbers; of several with one number, the last stays.
fn ascending(names: impl Iterator<Item = (u32, String)>) -> Vec<(u32, String)> {
    names.collect::<BTreeMap<u32, String>>().into_iter().collect()
}

/// The column `flow_name` of rows that refer to a flow.
macro_rules! flow_name {
    ($row:ty) => {
        Derived { name: "flow_name", get: |names, row: &$row| names.flow(row.flow) }
    };
}

/// For reading.
pub(crate) fn flows() -> Layout<FlowRecord> {
    Layout::new(FLOWS, flow_columns(true), Vec::new())
}

/// For writing these rows.
pub(crate) fn flows_of(rows: &[FlowRecord]) -> Layout<FlowRecord> {
    let is_known = |row: &FlowRecord| {
        row.duplicate_bytes.is_some()
            && row.head_of_line_ns.is_some()
            && row.reassembly_peak_bytes.is_some()
    };
    Layout::new(FLOWS, flow_columns(!rows.iter().all(is_known)), Vec::new())
}

/// For reading.
pub(crate) fn samples() -> Layout<FlowSample> {
    samples_with(Rare::ALL)
}

/// For writing rows of what `names` name.
pub(crate) fn samples_of(names: &Names) -> Layout<FlowSample> {
    samples_with(names.rare)
}

fn samples_with(rare: Rare) -> Layout<FlowSample> {
    Layout::new(SAMPLES, sample_columns(rare), vec![flow_name!(FlowSample)])
}

/// For reading.
pub(crate) fn path_samples() -> Layout<FlowSample> {
    path_samples_with(Rare::ALL)
}

/// For writing rows of what `names` name.
pub(crate) fn path_samples_of(names: &Names) -> Layout<FlowSample> {
    path_samples_with(names.rare)
}

fn path_samples_with(rare: Rare) -> Layout<FlowSample> {
    let path = Derived { name: "path_name", get: |names, row| names.path(row) };
    Layout::new(SAMPLES, sample_columns(rare), vec![flow_name!(FlowSample), path])
}

pub(crate) fn links() -> Layout<LinkSample> {
    let link = Derived { name: "link_name", get: |names, row: &LinkSample| names.link(row.link) };
    Layout::new(LINKS, link_columns(), vec![link])
}

pub(crate) fn classes() -> Layout<ClassSample> {
    let link = Derived { name: "link_name", get: |names, row: &ClassSample| names.link(row.link) };
    Layout::new(CLASSES, class_columns(), vec![link])
}

pub(crate) fn paths() -> Layout<PathRecord> {
    Layout::new(PATHS, path_columns(), vec![flow_name!(PathRecord)])
}

pub(crate) fn objects() -> Layout<ObjectRecord> {
    Layout::new(OBJECTS, object_columns(), vec![flow_name!(ObjectRecord)])
}

/// The rows are wide, so fewer are kept in memory.
pub(crate) fn connections() -> Layout<ConnectionRecord> {
    let flow = Derived {
        name: "flow_name",
        get: |names, row: &ConnectionRecord| row.flow.map_or("", |flow| names.flow(flow)),
    };
    let columns = connection_columns();
    Layout { version: CONNECTIONS, columns, derived: vec![flow], group_rows: GROUP_ROWS / 4 }
}

pub(crate) fn transfers() -> Layout<TransferRecord> {
    Layout::new(TRANSFERS, transfer_columns(), vec![flow_name!(TransferRecord)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/records.md");
    const UNITS: [&str; 5] = ["_ns", "_bytes", "_bps", "_packets", "_overhead"];
    /// Columns without a unit: they count or name things.
    const WITHOUT_UNIT: [&str; 29] = [
        "class",
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
        "workload",
        "app_limited",
        "dsacks",
        "reorderings",
        "cc_source",
        "prefix",
        "local_port",
        "remote_port",
        "group",
        "block",
        "arm",
        "weight",
    ];

    /// Returns the heading of each file in the document, and the columns of its table.
    fn tables() -> [(&'static str, Vec<&'static str>); 6] {
        fn names<R>(columns: &[Column<R>]) -> Vec<&'static str> {
            columns.iter().map(Column::name).collect()
        }
        [
            ("## flows.parquet", names(&flow_columns(true))),
            ("## samples.parquet", names(&sample_columns(Rare::ALL))),
            ("## links.parquet", names(&link_columns())),
            ("## classes.parquet", names(&class_columns())),
            ("## paths.parquet", names(&path_columns())),
            ("## objects.parquet", names(&object_columns())),
        ]
    }

    /// Each column is listed in the section of its file.
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

    /// The documented columns are those written, in the same order.
    #[test]
    fn every_column_of_a_connection_has_a_meaning() {
        let layout = connections();
        let columns = layout.columns.iter().map(Column::name);
        let written: Vec<_> = columns.chain(layout.derived.iter().map(|one| one.name)).collect();
        let told: Vec<_> = crate::CONNECTION_COLUMNS.iter().map(|one| one.name).collect();
        assert_eq!(written, told);
    }

    #[test]
    fn names_end_in_their_unit() {
        let connection = connection_columns();
        let of_connections = connection.iter().map(Column::name);
        for name in tables().into_iter().flat_map(|(_, columns)| columns).chain(of_connections) {
            let unit = UNITS.iter().any(|unit| name.ends_with(unit));
            assert!(unit || WITHOUT_UNIT.contains(&name), "{name}");
        }
    }
}
