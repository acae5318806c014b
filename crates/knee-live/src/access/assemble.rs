//! Builds the report from sums.

use super::sums::{Cell, Cells, Side, Sums};
use crate::cells::Size;
use crate::report::size_name;
use knee_foreign::Protocol;
use knee_record::{
    LOG_REPORT_SCHEMA, LogBeside, LogCell, LogFile, LogReport, ObservedBin, ObservedSpread,
    size_classes,
};
use knee_units::statistics::Sketch;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SIZES: [Size; 2] = [Size::Large, Size::Small];
/// Prefixes of clients in the report.
const PREFIXES_MAX: usize = 200;

pub(super) fn report(sums: &Sums, logs: Vec<LogFile>) -> LogReport {
    let by_size = |size| of(sums, |(_, _, class)| size_of(*class) == size);
    let classes = size_classes();
    let by_class = (0..classes.len()).map(|at| {
        let cell = of(sums, |(_, _, class)| *class == at);
        log_cell(&cell, "", classes[at].name)
    });
    let timed: u64 = sums.cells.values().map(|cell| cell.time_us.count()).sum();
    let coarsest = |finer: u64, seconds| (timed > 0 && finer == 0).then_some(seconds);
    let [finer_than_s, finer_than_ms] = sums.finer_than;
    let prefixes = named(&sums.prefixes, |prefix| prefix.to_string());
    LogReport {
        schema: LOG_REPORT_SCHEMA.to_string(),
        logs,
        from_unix_s: sums.span_s.map(|(from, _)| from),
        to_unix_s: sums.span_s.map(|(_, to)| to),
        dated: sums.dated,
        without_time: sums.without_time,
        without_duration: sums.without_duration,
        without_unit: sums.without_unit,
        too_short: sums.too_short,
        resolution_s: coarsest(finer_than_s, 1.0).or(coarsest(finer_than_ms, 1e-3)),
        all: log_cell(&of(sums, |_| true), "", ""),
        large: log_cell(&by_size(Size::Large), "", size_name(Size::Large)),
        small: log_cell(&by_size(Size::Small), "", size_name(Size::Small)),
        classes: by_class.filter(|cell| cell.transfers > 0).collect(),
        protocols: protocols(sums),
        controllers: named(&sums.controllers, String::clone),
        groups: named(&sums.groups, ToString::to_string),
        providers: named(&sums.providers, |at| provider(sums, *at)),
        other_prefixes: sums.other_prefixes + left_out(&prefixes),
        prefixes: prefixes.into_iter().take(PREFIXES_MAX).collect(),
        heat: heat(sums, |_| true),
        course: sums.course.points(),
        since_unix_s: sums.settings.since_ns.map(|at| at.div_euclid(1_000_000_000)),
        beside: beside(sums),
    }
}

fn left_out(prefixes: &[LogCell]) -> u64 {
    prefixes.iter().skip(PREFIXES_MAX).map(|cell| cell.transfers).sum()
}

fn size_of(class: usize) -> Size {
    Size::of(size_classes()[class].sizes.at_least)
}

/// Merges the cells that count.
fn of(sums: &Sums, counts: impl Fn(&(Side, Protocol, usize)) -> bool) -> Cell {
    let mut all = Cell::default();
    sums.cells.iter().filter(|(key, _)| counts(key)).for_each(|(_, cell)| all.merge(cell));
    all
}

fn protocols(sums: &Sums) -> Vec<LogCell> {
    let mut found: Vec<Protocol> = sums.cells.keys().map(|(_, protocol, _)| *protocol).collect();
    found.sort_unstable();
    found.dedup();
    if found.iter().all(|protocol| *protocol == Protocol::Unknown) {
        return Vec::new();
    }
    let mut cells = Vec::new();
    for size in SIZES {
        for protocol in &found {
            let cell = of(sums, |(_, one, class)| one == protocol && size_of(*class) == size);
            let name = if *protocol == Protocol::Unknown { "others" } else { protocol.name() };
            cells.push(log_cell(&cell, name, size_name(size)));
        }
    }
    cells.retain(|cell| cell.transfers > 0);
    cells
}

fn provider(sums: &Sums, at: Option<usize>) -> String {
    let Some((at, table)) = at.zip(sums.settings.providers.as_ref()) else {
        return "in no line of the table".to_string();
    };
    match table.network(at) {
        (number, "") => format!("AS{number}"),
        (number, name) => format!("{name} (AS{number})"),
    }
}

/// Transfers by name and size, the name with the most bytes first.
fn named<K: Ord>(all: &BTreeMap<K, Cells>, name: impl Fn(&K) -> String) -> Vec<LogCell> {
    let bytes = |cells: &Cells| cells.values().map(|cell| cell.bytes).sum::<u64>();
    let mut ranked: Vec<(&K, &Cells)> = all.iter().collect();
    ranked.sort_by_key(|(_, cells)| Reverse(bytes(cells)));
    let mut found = Vec::new();
    for (key, cells) in ranked {
        for size in SIZES {
            let cell = sized(cells, size, None);
            if cell.transfers > 0 {
                found.push(log_cell(&cell, &name(key), size_name(size)));
            }
        }
    }
    found
}

/// Merges the cells of a size, on one side or on all.
fn sized(cells: &Cells, size: Size, side: Option<Side>) -> Cell {
    let mut merged = Cell::default();
    let its = cells.iter().filter(|((one, of), _)| *of == size && side.is_none_or(|s| s == *one));
    its.for_each(|(_, cell)| merged.merge(cell));
    merged
}

fn heat(sums: &Sums, counts: impl Fn(Side) -> bool) -> Vec<ObservedBin> {
    let mut merged: BTreeMap<(u32, i32, i32), u64> = BTreeMap::new();
    for ((side, hour, size, time), count) in &sums.heat {
        if counts(*side) {
            *merged.entry((*hour, *size, *time)).or_default() += count;
        }
    }
    let bin = |((hour, size_bin, time_bin), connections)| ObservedBin {
        hour,
        size_bin,
        time_bin,
        connections,
    };
    merged.into_iter().map(bin).collect()
}

/// Before and after the moment of a change, and the two newer versions of HTTP.
fn beside(sums: &Sums) -> Vec<LogBeside> {
    let mut found = Vec::new();
    if sums.settings.since_ns.is_some() {
        let mut pairs = Vec::new();
        for size in SIZES {
            pairs.push([0, 1].map(|side| {
                let cell = of(sums, |(one, _, class)| *one == side && size_of(*class) == size);
                log_cell(&cell, "", size_name(size))
            }));
        }
        for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http3] {
            for size in SIZES {
                pairs.push([0, 1].map(|side| {
                    let cell = of(sums, |(one, other, class)| {
                        *one == side && *other == protocol && size_of(*class) == size
                    });
                    log_cell(&cell, protocol.name(), size_name(size))
                }));
            }
        }
        for (name, cells) in &sums.groups {
            pairs.extend(sides(name, cells));
        }
        for (at, cells) in &sums.providers {
            pairs.extend(sides(&provider(sums, *at), cells));
        }
        pairs.retain(|pair| pair.iter().any(|cell| cell.transfers > 0));
        let names = ["before", "after"].map(str::to_string);
        let heats = [0, 1].map(|side| heat(sums, |one| one == side)).to_vec();
        found.push(LogBeside { names, of_moment: true, pairs, heats });
    }
    let two = [Protocol::Http2, Protocol::Http3];
    let has = |protocol| sums.cells.keys().any(|(_, one, _)| *one == protocol);
    if two.into_iter().all(has) {
        let classes = size_classes();
        let pairs = (0..classes.len()).rev().map(|at| {
            two.map(|protocol| {
                let cell = of(sums, |(_, one, class)| *one == protocol && *class == at);
                log_cell(&cell, "", classes[at].name)
            })
        });
        let pairs = pairs.filter(|pair| pair.iter().any(|cell| cell.transfers > 0)).collect();
        let names = two.map(|protocol| protocol.name().to_string());
        found.push(LogBeside { names, of_moment: false, pairs, heats: Vec::new() });
    }
    found
}

fn sides(name: &str, cells: &Cells) -> [[LogCell; 2]; 2] {
    SIZES.map(|size| {
        [0, 1].map(|side| log_cell(&sized(cells, size, Some(side)), name, size_name(size)))
    })
}

fn log_cell(cell: &Cell, name: &str, class: &str) -> LogCell {
    LogCell {
        name: name.to_string(),
        class: class.to_string(),
        transfers: cell.transfers,
        bytes: cell.bytes,
        throughput_bps: spread(&cell.throughput_bps),
        throughput_median_bps: median(&cell.throughput_bps),
        time_us: spread(&cell.time_us),
        time_median_us: median(&cell.time_us),
        server_ratio: (cell.server_of_ns > 0)
            .then(|| cell.server_ns as f64 / cell.server_of_ns as f64),
        rtt_us: spread(&cell.rtt_us),
        delivery_rate_bps: spread(&cell.delivery_rate_bps),
        delivery_ratio: spread(&cell.delivery_ratio),
    }
}

/// The interval of 95 % of a median by ranks, which holds for any distribution (David and Nagaraja,
/// Order Statistics, 2003, section 7.1), with the normal approximation of the binomial, to whole
/// ranks. Below six values there is none: even from the smallest to the largest is less than 95 %.
fn median(sketch: &Sketch) -> Option<[f64; 2]> {
    const Z: f64 = 1.96;
    const COUNT_MIN: f64 = 6.0;
    let count = sketch.count() as f64;
    let half = Z * count.sqrt() / 2.0;
    let ranks = [(count / 2.0 - half).floor().max(0.0), (count / 2.0 + half).ceil().min(count)];
    let [low, high] = ranks.map(|rank| sketch.interpolated(rank / count.max(1.0)));
    Some([low?, high?]).filter(|_| count >= COUNT_MIN)
}

fn spread(sketch: &Sketch) -> Option<ObservedSpread> {
    let at = |part| sketch.interpolated(part);
    Some(ObservedSpread { count: sketch.count(), p5: at(0.05)?, p50: at(0.5)?, p95: at(0.95)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 values in order, the ranks are 40 and 60 or 61 (David and Nagaraja, 2003; the binomial
    /// itself gives 40 and 61): no more than a rank apart, and the sketch's own error.
    #[test]
    fn the_median_is_between_its_ranks() {
        let mut sketch = Sketch::default();
        (1..=100).for_each(|value| sketch.add(f64::from(value)));
        let [low, high] = median(&sketch).unwrap();
        assert!(
            (low / 40.0 - 1.0).abs() < 0.07 && (high / 60.5 - 1.0).abs() < 0.07,
            "{low} {high}"
        );
        assert_eq!(median(&Sketch::default()), None);
        let of = |count: u32| {
            let mut sketch = Sketch::default();
            (1..=count).for_each(|value| sketch.add(f64::from(value)));
            median(&sketch)
        };
        assert_eq!(of(5), None);
        let [low, high] = of(6).unwrap();
        assert!((low - 1.0).abs() < 0.05 && (high / 6.0 - 1.0).abs() < 0.05, "{low} {high}");
    }
}
