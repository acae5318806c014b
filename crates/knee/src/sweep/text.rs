//! Table of a sweep.

use knee_present::words::{NONE, capitalised};
use knee_present::{Cell, Document, Table, number, text};
use knee_record::{HALF_AND_HALF, PointGroup, PointMeasure, SweepMeasure, SweepSummary, Unit};

/// Measures for the table, in order of preference; the first available ones are shown.
const SHOWN: [&str; 11] = [
    "completion_s",
    "completion_over_bound",
    "burst_time_s",
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

/// Title, points and conclusions.
pub fn document(summary: &SweepSummary) -> Document {
    let mut document = Document::default().words(format!("{}\n\n", summary.name));
    if summary.half_and_half {
        document = document.said(format!("{}.", capitalised(HALF_AND_HALF))).words("\n");
    }
    let document = document.table(points(summary));
    match verdicts(summary) {
        says if says.is_empty() => document,
        says => says.into_iter().fold(document.words("\n"), Document::said),
    }
}

/// One row for each point and flow group.
fn points(summary: &SweepSummary) -> Table {
    let measures = shown(summary);
    let groups: Vec<&String> = summary.groups.iter().filter(|group| *group != "*").collect();
    let keys = summary.keys.iter().map(|key| text(&key.name));
    let heads = keys.chain((groups.len() > 1).then(|| text("flows")));
    let figures = measures.iter().map(|measure| {
        number(short(measure)).holds(Some(measure.unit), &["", "low", "high", "never"])
    });
    let heads = heads.chain(figures);
    let mut table = Table::new(heads).called("points");
    for point in &summary.points {
        let at = summary.keys.iter().zip(&point.at);
        let values: Vec<Cell> = at.map(|(key, at)| Cell::from(&key.values[*at])).collect();
        for group in point.groups.iter().filter(|group| group.group != "*") {
            let name = (groups.len() > 1).then(|| Cell::from(&group.group));
            let figures = measures.iter().map(|measure| figure(measure, group));
            table.row(values.iter().cloned().chain(name).chain(figures));
        }
    }
    table
}

/// Heading of a column.
fn short(measure: &SweepMeasure) -> String {
    let name = measure.name.trim_end_matches("_bps").trim_end_matches("_s");
    name.replace("rtt", "RTT").replace("retransmit_ratio", "retransmitted").replace('_', " ")
}

/// Measures that some group in the table has, those of the varied group first; groups of one flow
/// have no fairness.
fn shown(summary: &SweepSummary) -> Vec<&SweepMeasure> {
    let groups = || summary.points.iter().flat_map(|point| &point.groups);
    let has = |name: &str, wanted: &dyn Fn(&str) -> bool| {
        groups().any(|group| wanted(&group.group) && group.measures.contains_key(name))
    };
    let varied = summary.varied_group();
    let (first, others): (Vec<&str>, Vec<&str>) =
        SHOWN.iter().partition(|name| has(name, &|group| Some(group) == varied));
    let others = others.into_iter().filter(|name| has(name, &|group| group != "*"));
    let found = first.into_iter().chain(others);
    let found = found.filter_map(|name| summary.measures.iter().find(|m| m.name == name));
    found.take(COLUMNS_MAX).collect()
}

fn figure(measure: &SweepMeasure, group: &PointGroup) -> Cell {
    value(measure.unit, group.measures.get(&measure.name))
}

/// Formats a measure over several runs: the mean with its interval, or in how many runs the event
/// never occurred.
pub fn value(unit: Unit, measure: Option<&PointMeasure>) -> Cell {
    match measure {
        None => NONE.into(),
        Some(PointMeasure { interval: None, never }) => {
            Cell::from(unit.show(f64::INFINITY)).with("never", *never as f64)
        }
        Some(PointMeasure { interval: Some(interval), never: 0 }) => Cell::interval(unit, interval),
        Some(PointMeasure { interval: Some(interval), never }) => {
            let (mean, runs) = (unit.show(interval.mean), interval.runs + never);
            let shown = format!("{mean}, never in {never} of {runs}");
            Cell::interval(unit, interval).reading(shown).with("never", *never as f64)
        }
    }
}

/// Conclusions about the headline setting, or about the last compared setting if the headline's
/// values are not compared.
fn verdicts(summary: &SweepSummary) -> Vec<String> {
    let compared: Vec<usize> = summary.verdicts.iter().map(|verdict| verdict.key).collect();
    let about = summary.about.filter(|key| compared.contains(key));
    let mut said = summary.not_compared();
    let Some(key) = about.or(compared.last().copied()) else { return said };
    let mut groups: Vec<&String> = summary.groups.iter().filter(|group| *group != "*").collect();
    groups.sort_by_key(|group| Some(group.as_str()) != summary.varied_group());
    for measure in shown(summary) {
        for group in &groups {
            let mut verdicts = summary.verdicts.iter();
            let found = verdicts.find(|verdict| {
                (verdict.key, &verdict.group, &verdict.measure) == (key, group, &measure.name)
            });
            let whose = if groups.len() > 1 { format!("{group}: ") } else { String::new() };
            said.extend(found.map(|verdict| format!("{whose}{}", verdict.says)));
        }
    }
    said
}
