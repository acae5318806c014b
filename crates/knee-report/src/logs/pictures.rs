//! The pictures of access logs.

use super::tables::is_large;
use crate::observed::Picture;
use crate::observed::course::{Panel, clock, panels};
use crate::observed::heat::{self as maps, Counted};
use crate::observed::spreads::{self, Row};
use knee_present::words::{rate, time_us};
use knee_record::{LogCell, LogPoint, LogReport};
use minijinja::Value;

const COUNTED: Counted = Counted { what: "transfers", sizes: "size", which: " with a duration" };
/// Rows of a picture.
const ROWS_MAX: usize = 16;

/// A step with its length.
struct Step {
    point: LogPoint,
    step_s: u64,
}

const PANELS: [Panel<Step>; 4] = [
    ("median throughput, 3 MB and more, Mbit/s", "curve c0", throughput, |mbit| {
        rate(Some(mbit * 1e6))
    }),
    ("median time, below 3 MB, ms", "curve c1", milliseconds, |ms| time_us(Some(ms * 1e3))),
    ("sent, Mbit/s", "curve c2", sent, |mbit| rate(Some(mbit * 1e6))),
    ("transfers per second", "curve c3", per_second, |number| format!("{number:.1} per second")),
];

fn throughput(step: &Step) -> f64 {
    step.point.throughput_bps.map_or(f64::NAN, |bps| bps / 1e6)
}

fn milliseconds(step: &Step) -> f64 {
    step.point.time_us.map_or(f64::NAN, |us| us / 1e3)
}

fn sent(step: &Step) -> f64 {
    step.point.bytes as f64 * 8e-6 / step.step_s as f64
}

fn per_second(step: &Step) -> f64 {
    step.point.transfers as f64 / step.step_s as f64
}

/// Draws the course over time, with the moment of a change; `None` if there are fewer than two steps.
pub(super) fn course(report: &LogReport) -> Option<Picture> {
    let step_s = report.course.step_s;
    let steps = report.course.points.iter().map(|point| Step { point: *point, step_s });
    let steps: Vec<Step> = steps.collect();
    let label = "throughput, time and traffic over time";
    let span = |step: &Step| {
        let from = step.point.unix_s as f64;
        [from, from + step.step_s as f64]
    };
    let with_values: Vec<Panel<Step>> = PANELS
        .into_iter()
        .filter(|(_, _, value, _)| steps.iter().any(|step| value(step).is_finite()))
        .collect();
    let moment = report.since_unix_s.map(|at| at as f64);
    let drawing = panels(label, &steps, &with_values, span, |_| None, moment)?;
    let length = match step_s {
        step if step < 60 => format!("{step} s"),
        step if step < 3600 => format!("{} min", step / 60),
        step => format!("{} h", step / 3600),
    };
    let zone = if report.dated { " (UTC)" } else { "" };
    let marked = match report.since_unix_s {
        Some(at) => format!(" The line marks {}.", clock(at.unsigned_abs(), false)),
        None => String::new(),
    };
    Some(Picture {
        title: "Over time".to_string(),
        note: format!(
            "Transfers by the time that is logged{zone}, in steps of {length}. A long transfer counts \
             with all its bytes there.{marked}"
        ),
        drawing: Value::from_safe_string(drawing.inline()),
    })
}

pub(super) fn heat(report: &LogReport) -> Option<Picture> {
    maps::picture(&report.heat, COUNTED)
}

/// Returns a map of what was before the moment of a change, and one of what was after it.
pub(super) fn sides(report: &LogReport) -> Vec<Picture> {
    let Some(beside) = report.beside.iter().find(|beside| beside.of_moment) else {
        return Vec::new();
    };
    let sets: Vec<(&str, &[_])> = beside
        .names
        .iter()
        .zip(&beside.heats)
        .map(|(name, bins)| (name.as_str(), &bins[..]))
        .collect();
    maps::sets(&report.heat, &sets, COUNTED.what)
}

pub(super) fn hours(report: &LogReport) -> Vec<Picture> {
    maps::hours(&report.heat, COUNTED.what)
}

/// Returns the pictures of throughput and of time: by what tells transfers apart, or by size.
pub(super) fn spreads(report: &LogReport) -> Vec<Picture> {
    let lists = [
        (&report.controllers, ", by controller"),
        (&report.protocols, ", by version of HTTP"),
        (&report.groups, ", by group"),
        (&report.providers, ", by network"),
    ];
    let mut lists: Vec<_> = lists.into_iter().filter(|(cells, _)| !cells.is_empty()).collect();
    if lists.is_empty() {
        lists.push((&report.classes, ""));
    }
    let mut pictures = Vec::new();
    for (cells, of) in lists {
        let mut names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        names.dedup();
        let row = |cell: &LogCell, spread| {
            let colour = names.iter().position(|name| *name == cell.name).unwrap_or(0);
            let name = if cell.name.is_empty() { &cell.class } else { &cell.name };
            let told = format!("{} {}", cell.name, cell.class).trim().to_string();
            Some(Row {
                name: crate::applications::shortened(name, 30),
                told,
                colour,
                spread: spread?,
            })
        };
        let large = cells.iter().filter(|cell| is_large(&cell.class));
        let large: Vec<Row> =
            large.filter_map(|cell| row(cell, cell.throughput_bps)).take(ROWS_MAX).collect();
        let small = cells.iter().filter(|cell| !is_large(&cell.class));
        let small: Vec<Row> =
            small.filter_map(|cell| row(cell, cell.time_us)).take(ROWS_MAX).collect();
        let title = format!("Throughput, 3 MB and more{of}");
        pictures.extend(spreads::picture(title, &large, COUNTED.what, |bps| rate(Some(bps))));
        let title = format!("Time, below 3 MB{of}");
        pictures.extend(spreads::picture(title, &small, COUNTED.what, |us| time_us(Some(us))));
    }
    pictures
}
