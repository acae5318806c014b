//! The table of a sweep.

use crate::figures::NONE;
use crate::table::Table;
use knee_record::{Interval, PointGroup, PointMeasure, SweepMeasure, SweepSummary, Unit};

/// Measures in the table: of those that there are, the first few.
const SHOWN: [&str; 10] = [
    "completion_s",
    "completion_over_bound",
    "page_load_s",
    "video_bitrate_bps",
    "video_stall_s",
    "transfer_completion_p95_s",
    "goodput_bps",
    "jain",
    "rtt_p95_s",
    "retransmit_ratio",
];
const COLUMNS_MAX: usize = 5;
/// A relative difference below this is none.
const ROUNDING: f64 = 1e-9;

/// A row for each point and group of flows.
pub fn text(summary: &SweepSummary) -> String {
    let measures = shown(summary);
    let groups: Vec<&String> = summary.groups.iter().filter(|group| *group != "*").collect();
    let mut heads: Vec<String> = summary.keys.iter().map(|key| key.name.clone()).collect();
    if groups.len() > 1 {
        heads.push("flows".to_string());
    }
    heads.extend(measures.iter().map(|measure| format!(">{}", short(measure))));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for point in &summary.points {
        let at = summary.keys.iter().zip(&point.at);
        let values: Vec<String> = at.map(|(key, at)| key.values[*at].clone()).collect();
        for group in point.groups.iter().filter(|group| group.group != "*") {
            let name = (groups.len() > 1).then(|| group.group.clone());
            let figures = measures.iter().map(|measure| figure(measure, group));
            table.row(values.iter().cloned().chain(name).chain(figures));
        }
    }
    table.text()
}

/// The heading of a column.
fn short(measure: &SweepMeasure) -> String {
    let name = measure.name.trim_end_matches("_bps").trim_end_matches("_s");
    name.replace("rtt", "RTT").replace("retransmit_ratio", "sent again").replace('_', " ")
}

fn shown(summary: &SweepSummary) -> Vec<&SweepMeasure> {
    let found = SHOWN.iter().filter_map(|name| summary.measures.iter().find(|m| m.name == *name));
    found.take(COLUMNS_MAX).collect()
}

fn figure(measure: &SweepMeasure, group: &PointGroup) -> String {
    match group.measures.get(&measure.name) {
        None => NONE.to_string(),
        Some(PointMeasure { interval: None, .. }) => measure.unit.show(f64::INFINITY),
        Some(PointMeasure { interval: Some(interval), never: 0 }) => {
            with_interval(measure.unit, interval)
        }
        Some(PointMeasure { interval: Some(interval), never }) => {
            let (mean, runs) = (measure.unit.show(interval.mean), interval.runs + never);
            format!("{mean}, never in {never} of {runs}")
        }
    }
}

/// Mean, and how far the ends of its 95 % confidence interval are from it.
fn with_interval(unit: Unit, interval: &Interval) -> String {
    let mean = unit.show(interval.mean);
    let half = interval.high.map_or(0.0, |high| high - interval.mean);
    // Equal runs differ from their mean by its rounding.
    match half > interval.mean.abs() * ROUNDING {
        true => format!("{mean} ± {}", unit.show(half)),
        false => mean,
    }
}
