//! The table of a sweep.

use crate::repeats::with_interval;
use crate::table::Table;
use knee_lab::words::NONE;
use knee_record::{PointGroup, PointMeasure, SweepMeasure, SweepSummary};

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
            with_interval(|value| measure.unit.show(value), interval)
        }
        Some(PointMeasure { interval: Some(interval), never }) => {
            let (mean, runs) = (measure.unit.show(interval.mean), interval.runs + never);
            format!("{mean}, never in {never} of {runs}")
        }
    }
}

/// What the measures of the table say about the setting that is compared:
/// the first whose values are no numbers, else the first.
pub fn verdicts(summary: &SweepSummary) -> String {
    let is_name = |key: usize| {
        let first = summary.keys[key].values.first();
        first.is_some_and(|value| !value.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut compared: Vec<usize> = summary.verdicts.iter().map(|verdict| verdict.key).collect();
    compared.dedup();
    let named = compared.iter().copied().find(|key| is_name(*key));
    let Some(key) = named.or(compared.first().copied()) else { return String::new() };
    let groups: Vec<&String> = summary.groups.iter().filter(|group| *group != "*").collect();
    let mut text = String::from("\n");
    for measure in shown(summary) {
        for group in &groups {
            let mut verdicts = summary.verdicts.iter();
            let found = verdicts.find(|verdict| {
                (verdict.key, &verdict.group, &verdict.measure) == (key, group, &measure.name)
            });
            let whose = if groups.len() > 1 { format!("{group}: ") } else { String::new() };
            text.extend(found.map(|verdict| format!("{whose}{}\n", verdict.says)));
        }
    }
    text
}
