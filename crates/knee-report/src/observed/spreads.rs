//! The range from the 5th to the 95th percentile, with the median, by size class and controller.

use super::Picture;
use super::tables::label;
use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::{count, rate, time_us};
use knee_record::{ObservedCell, ObservedReport, ObservedSpread};
use minijinja::Value;

const LEFT: f64 = 286.0;
const RIGHT: f64 = WIDTH - 52.0;
const ROW: f64 = 28.0;
const TOP: f64 = 12.0;
/// Number of colours; further controllers start again with the first.
const COLOURS: usize = 8;
/// Largest number of group rows drawn.
const GROUPS_MAX: usize = 24;

/// A row of a picture.
pub(crate) struct Row {
    /// Its name, beside the line.
    pub name: String,
    /// Its name in full.
    pub told: String,
    /// Number of its colour.
    pub colour: usize,
    pub spread: ObservedSpread,
}

/// Returns the pictures of throughput and time, first for all connections, then by group.
pub(super) fn pictures(report: &ObservedReport) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for (cells, of) in [(&report.controllers, ""), (&report.groups, ", by group")] {
        let mut names: Vec<&str> = cells.iter().map(|cell| cell.controller.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let large = |cell: &ObservedCell| {
            matches!(cell.class.as_str(), "3 MB and more" | "3 to 30 MB" | "30 MB and more")
        };
        let rows = |is_large: bool, get: fn(&ObservedCell) -> Option<ObservedSpread>| {
            let mine = cells.iter().filter(move |cell| large(cell) == is_large);
            let row = |cell: &ObservedCell| {
                let colour = names.iter().position(|name| *name == cell.controller).unwrap_or(0);
                Some(Row { name: shortened(cell), told: label(cell), colour, spread: get(cell)? })
            };
            mine.filter_map(row).take(GROUPS_MAX).collect()
        };
        let throughput: Vec<Row> = rows(true, |cell| cell.throughput_bps);
        let time: Vec<Row> = rows(false, |cell| cell.busy_us);
        let what = "connections";
        let title = format!("Throughput, 3 MB and more{of}");
        pictures.extend(picture(title, &throughput, what, |bps| rate(Some(bps))));
        let title = format!("Time, below 3 MB{of}");
        pictures.extend(picture(title, &time, what, |us| time_us(Some(us))));
    }
    pictures
}

/// Draws a row for each spread of `what`; `None` if there are none.
pub(crate) fn picture(
    title: String,
    rows: &[Row],
    what: &str,
    show: fn(f64) -> String,
) -> Option<Picture> {
    let low = rows.iter().map(|row| row.spread.p5).reduce(f64::min)?;
    let high = rows.iter().map(|row| row.spread.p95).reduce(f64::max)?;
    let decade = |value: f64, up: fn(f64) -> f64| 10f64.powf(up(value.log10() + 1e-9));
    let axis = Axis {
        low: decade(low, f64::floor),
        high: decade(high, f64::ceil),
        low_at: LEFT,
        high_at: RIGHT,
        decades: true,
        names: show,
    };
    let bottom = TOP + ROW * rows.len() as f64;
    let mut drawing = Drawing::new(bottom + 42.0, &title);
    drawing.axis(&axis, TOP, bottom, "");
    for (at, Row { name, told, colour, spread }) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let colour = colour % COLOURS;
        drawing
            .line(format!("curve c{colour}"), &[(axis.at(spread.p5), y), (axis.at(spread.p95), y)]);
        let told = format!(
            "{told}: median {} (5 % {}, 95 % {}), {} {what}",
            show(spread.p50),
            show(spread.p5),
            show(spread.p95),
            count(spread.count)
        );
        drawing.dot(format!("k{colour}"), axis.at(spread.p50), y, told);
        drawing.words("", "end", (LEFT - 12.0, y + 4.0), name.as_str());
    }
    Some(Picture {
        title,
        note: format!("Dot: median; line: from the 5th to the 95th percentile of {what}."),
        drawing: Value::from_safe_string(drawing.inline()),
    })
}

/// Returns the label without what the title already says.
fn shortened(cell: &ObservedCell) -> String {
    let (group, controller) = (&cell.group, &cell.controller);
    let controller = if controller.is_empty() { "not seen" } else { controller };
    let first = if group.is_empty() { &cell.class } else { group };
    crate::applications::shortened(&format!("{first} · {controller}"), 30)
}
