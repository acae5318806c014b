//! Builds the report from sums.

use super::gather::{Gathered, Objects, size_name};
use crate::cells::{Cell, Kind, LOST_MAX, Size};
use crate::group::{IPV4_BITS, IPV6_BITS};
use crate::minutes::MINUTE_S;
use knee_record::{
    OBSERVED_REPORT_SCHEMA, ObservedBeside, ObservedBin, ObservedCell, ObservedCourse,
    ObservedHour, ObservedObjectCell, ObservedObjects, ObservedPoint, ObservedProvider,
    ObservedReport, ObservedSpread, size_classes,
};
use knee_units::statistics::Sketch;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Steps of the time series; the shortest with at most [`POINTS_MAX`] points is used.
const STEPS_S: [u64; 6] = [60, 300, 900, 3600, 6 * 3600, 24 * 3600];
const POINTS_MAX: u64 = 240;

pub(crate) fn report(gathered: Gathered) -> ObservedReport {
    let points = gathered.minutes.values();
    let sum = |get: fn(&ObservedPoint) -> u64| points.clone().map(get).sum::<u64>();
    let is_lost = |lost: u64, heard: u64| lost as f64 > LOST_MAX * (lost + heard) as f64;
    let (connections, lost_reports) = (sum(|p| p.connections), sum(|p| p.lost_reports));
    let lossy = points.clone().filter(|point| is_lost(point.lost_reports, point.connections));
    let by_size = merged(gathered.cells.iter(), |(_, kind)| Some(kind.size()));
    let mut all = Cell::default();
    by_size.values().for_each(|cell| all.merge(cell));
    let of = |size| {
        observed_cell(by_size.get(&Some(size)).unwrap_or(&Cell::default()), "", size_name(size), "")
    };
    let silent = gathered.cells.iter().filter(|((_, kind), _)| kind.class.is_none());
    ObservedReport {
        schema: OBSERVED_REPORT_SCHEMA.to_string(),
        from_unix_s: from_unix_s(&gathered.minutes),
        to_unix_s: to_unix_s(&gathered.minutes),
        valid: !is_lost(lost_reports, connections),
        connections,
        silent: silent.map(|(_, cell)| cell.connections).sum(),
        lost_reports,
        minutes: gathered.minutes.len() as u64,
        observed_s: (sum(|p| p.observed_ns) + 500_000_000) / 1_000_000_000,
        minutes_with_loss: lossy.count() as u64,
        rows: gathered.rows,
        all: observed_cell(&all, "", "", ""),
        large: of(Size::Large),
        small: of(Size::Small),
        controllers: controllers(&gathered),
        groups: groups(&gathered),
        arms: arms(&gathered),
        hours: hours(&gathered),
        heat: gathered.heat.iter().map(bin).collect(),
        providers: providers(&gathered),
        prefixes_too_long: gathered
            .settings
            .providers
            .as_ref()
            .map_or(0, |providers| providers.longer_than(IPV4_BITS, IPV6_BITS)),
        course: course(&gathered.minutes),
        beside: beside(&gathered),
        objects: objects(&gathered),
    }
}

/// Begin of what was observed: the first minute was observed until its end, unless it is the only
/// one.
fn from_unix_s(minutes: &BTreeMap<u64, ObservedPoint>) -> u64 {
    let Some((begin, first)) = minutes.first_key_value() else { return 0 };
    if minutes.len() == 1 { *begin } else { begin + MINUTE_S - observed_s(first) }
}

/// End of what was observed: the last minute was observed from its begin.
fn to_unix_s(minutes: &BTreeMap<u64, ObservedPoint>) -> u64 {
    let last = minutes.last_key_value();
    last.map_or(0, |(begin, last)| {
        begin + if minutes.len() == 1 { MINUTE_S } else { observed_s(last) }
    })
}

/// Seconds of a minute that were observed.
fn observed_s(point: &ObservedPoint) -> u64 {
    (point.observed_ns / 1_000_000_000).min(MINUTE_S)
}

type Cells<'c> = std::collections::btree_map::Iter<'c, (usize, Kind), Cell>;

/// Merges cells by key; drops those without a key.
fn merged<K: Ord>(
    cells: Cells<'_>,
    key: impl Fn(&(usize, Kind)) -> Option<K>,
) -> BTreeMap<K, Cell> {
    let mut found: BTreeMap<K, Cell> = BTreeMap::new();
    for (of, cell) in cells {
        if let Some(key) = key(of) {
            found.entry(key).or_default().merge(cell);
        }
    }
    found
}

fn controllers(gathered: &Gathered) -> Vec<ObservedCell> {
    let by = merged(gathered.cells.iter(), |(_, kind)| {
        let cc = &kind.controller;
        // An unknown controller sorts last.
        Some((kind.class?, cc.is_empty(), cc.clone()))
    });
    let classes = size_classes();
    by.iter()
        .map(|((class, _, cc), cell)| observed_cell(cell, "", classes[*class].name, cc))
        .collect()
}

fn groups(gathered: &Gathered) -> Vec<ObservedCell> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, kind), cell) in &gathered.cells {
        *bytes.entry(&kind.group).or_default() += cell.acked_bytes;
    }
    if bytes.keys().all(|group| group.is_empty()) {
        return Vec::new();
    }
    let by = merged(gathered.cells.iter(), |(_, kind)| {
        let (group, cc) = (&kind.group, &kind.controller);
        let rank = Reverse(bytes[&**group]);
        Some((rank, group.clone(), kind.size()?, cc.is_empty(), cc.clone()))
    });
    by.iter()
        .map(|((_, group, size, _, cc), cell)| observed_cell(cell, group, size_name(*size), cc))
        .collect()
}

fn arms(gathered: &Gathered) -> Vec<ObservedCell> {
    let by = merged(gathered.cells.iter(), |(_, kind)| {
        let Kind { group, arm, controller: cc, .. } = kind;
        let size = kind.size().filter(|_| !arm.is_empty())?;
        Some((group.clone(), size, arm.clone(), cc.is_empty(), cc.clone()))
    });
    by.iter()
        .map(|((group, size, arm, _, cc), cell)| ObservedCell {
            arm: arm.to_string(),
            ..observed_cell(cell, group, size_name(*size), cc)
        })
        .collect()
}

fn hours(gathered: &Gathered) -> Vec<ObservedHour> {
    let mut hours: Vec<ObservedHour> = Vec::new();
    for hour in 0..24 {
        let of = |size| gathered.hours.get(&(hour, size)).cloned().unwrap_or_default();
        let [small, large, silent] = [Some(Size::Small), Some(Size::Large), None].map(of);
        let mut all = silent;
        all.merge(&small);
        all.merge(&large);
        if all.connections > 0 {
            hours.push(ObservedHour {
                hour,
                all: observed_cell(&all, "", "", ""),
                large: observed_cell(&large, "", size_name(Size::Large), ""),
                small: observed_cell(&small, "", size_name(Size::Small), ""),
            });
        }
    }
    hours
}

fn bin((&(hour, size_bin, time_bin), &connections): (&(u32, i32, i32), &u64)) -> ObservedBin {
    ObservedBin { hour, size_bin, time_bin, connections }
}

fn providers(gathered: &Gathered) -> Vec<ObservedProvider> {
    let Some(table) = &gathered.settings.providers else { return Vec::new() };
    let mut places: Vec<Option<usize>> = gathered.networks.keys().map(|(at, _)| *at).collect();
    places.dedup();
    let mut found: Vec<ObservedProvider> = places
        .into_iter()
        .map(|at| {
            let of = |size| gathered.networks.get(&(at, size)).cloned().unwrap_or_default();
            let [small, large] = [Size::Small, Size::Large].map(of);
            let mut all = small.clone();
            all.merge(&large);
            let network = at.map(|at| table.network(at));
            let observed_cell = |cell, class| observed_cell(cell, "", class, "");
            ObservedProvider {
                asn: network.map(|(number, _)| number),
                name: network.map_or("", |(_, name)| name).to_string(),
                all: observed_cell(&all, ""),
                large: observed_cell(&large, size_name(Size::Large)),
                small: observed_cell(&small, size_name(Size::Small)),
            }
        })
        .collect();
    found.sort_by_key(|one| Reverse(one.all.acked_bytes));
    found
}

fn course(minutes: &BTreeMap<u64, ObservedPoint>) -> ObservedCourse {
    let first = minutes.keys().next().copied().unwrap_or_default();
    let span = minutes.keys().last().map_or(0, |last| last + MINUTE_S - first);
    let fits = |step: &&u64| span.div_ceil(**step) < POINTS_MAX;
    let step_s = *STEPS_S.iter().find(fits).unwrap_or(&STEPS_S[STEPS_S.len() - 1]);
    let mut steps: BTreeMap<u64, ObservedPoint> = BTreeMap::new();
    for (unix_s, minute) in minutes {
        let unix_s = unix_s / step_s * step_s;
        let step = steps.entry(unix_s).or_default();
        step.unix_s = unix_s;
        step.minutes += minute.minutes;
        step.observed_ns += minute.observed_ns;
        step.connections += minute.connections;
        step.acked_bytes += minute.acked_bytes;
        step.sent_bytes += minute.sent_bytes;
        step.retransmitted_bytes += minute.retransmitted_bytes;
        step.lost_reports += minute.lost_reports;
    }
    ObservedCourse { step_s, points: steps.into_values().collect() }
}

/// The two periods to compare, or the two controllers over all periods.
fn beside(gathered: &Gathered) -> Option<ObservedBeside> {
    let names = match (&gathered.settings.controllers, &gathered.settings.periods[..]) {
        (Some(controllers), _) => controllers.clone(),
        (None, [one, other]) => [one.to_string(), other.to_string()],
        _ => return None,
    };
    let of_controllers = gathered.settings.controllers.is_some();
    let side = |(period, kind): &(usize, Kind)| match of_controllers {
        true => names.iter().position(|name| **name == *kind.controller),
        false => Some(*period).filter(|period| *period < 2),
    };
    let mut by = merged(gathered.cells.iter(), |of| Some((String::new(), of.1.size()?, side(of)?)));
    by.extend(merged(gathered.cells.iter(), |of| {
        let group = Some(of.1.group.to_string()).filter(|group| !group.is_empty())?;
        Some((group, of.1.size()?, side(of)?))
    }));
    let mut keys: Vec<(String, Size)> =
        by.keys().map(|(group, size, _)| (group.clone(), *size)).collect();
    keys.dedup();
    let pairs = keys.into_iter().map(|(group, size)| {
        [0, 1].map(|side| {
            let cell = by.get(&(group.clone(), size, side)).cloned().unwrap_or_default();
            let controller = if of_controllers { &names[side] } else { "" };
            observed_cell(&cell, &group, size_name(size), controller)
        })
    });
    Some(ObservedBeside { pairs: pairs.collect(), of_controllers, names: names.clone() })
}

fn objects(gathered: &Gathered) -> Option<ObservedObjects> {
    let log = gathered.settings.log.as_ref()?;
    let classes = size_classes();
    let cells = gathered.objects.iter().map(|((class, cc), objects)| {
        let Objects { sent_bytes, retransmitted_bytes, .. } = *objects;
        ObservedObjectCell {
            class: classes[*class].name.to_string(),
            controller: cc.to_string(),
            objects: objects.objects,
            alone: objects.alone,
            log_throughput_bps: spread(&objects.log_throughput_bps),
            throughput_bps: spread(&objects.throughput_bps),
            rtt_min_us: spread(&objects.rtt_min_us),
            retransmit_ratio: (sent_bytes > 0)
                .then(|| retransmitted_bytes as f64 / sent_bytes as f64),
        }
    });
    Some(ObservedObjects {
        lines: log.lines(),
        passed_over: log.passed_over(),
        joined: gathered.joined,
        cells: cells.collect(),
    })
}

fn observed_cell(cell: &Cell, group: &str, class: &str, controller: &str) -> ObservedCell {
    ObservedCell {
        group: group.to_string(),
        arm: String::new(),
        class: class.to_string(),
        controller: controller.to_string(),
        connections: cell.connections,
        unfinished: cell.unfinished,
        acked_bytes: cell.acked_bytes,
        sent_bytes: cell.sent_bytes,
        retransmitted_bytes: cell.retransmitted_bytes,
        timeouts: cell.timeouts,
        receive_limited_ratio: (cell.busy_ns > 0)
            .then(|| cell.receive_limited_ns as f64 / cell.busy_ns as f64),
        throughput_bps: spread(&cell.throughput_bps),
        busy_us: spread(&cell.busy_us),
        rtt_min_us: spread(&cell.rtt_min_us),
    }
}

fn spread(sketch: &Sketch) -> Option<ObservedSpread> {
    let at = |part| sketch.percentile(part);
    Some(ObservedSpread { count: sketch.count(), p5: at(0.05)?, p50: at(0.5)?, p95: at(0.95)? })
}
