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
type Row<'r> = (&'r ObservedCell, ObservedSpread);

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
            mine.filter_map(move |cell| Some((cell, get(cell)?))).take(GROUPS_MAX).collect()
        };
        let throughput: Vec<Row<'_>> = rows(true, |cell| cell.throughput_bps);
        let time: Vec<Row<'_>> = rows(false, |cell| cell.busy_us);
        pictures.extend(picture(
            format!("Throughput, 3 MB and more{of}"),
            &throughput,
            &names,
            |bps| rate(Some(bps)),
        ));
        pictures.extend(picture(format!("Time, below 3 MB{of}"), &time, &names, |us| {
            time_us(Some(us))
        }));
    }
    pictures
}

fn picture(
    title: String,
    rows: &[Row<'_>],
    names: &[&str],
    show: fn(f64) -> String,
) -> Option<Picture> {
    let low = rows.iter().map(|(_, spread)| spread.p5).reduce(f64::min)?;
    let high = rows.iter().map(|(_, spread)| spread.p95).reduce(f64::max)?;
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
    for (at, (cell, spread)) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let colour = names.iter().position(|name| *name == cell.controller).unwrap_or(0) % COLOURS;
        drawing
            .line(format!("curve c{colour}"), &[(axis.at(spread.p5), y), (axis.at(spread.p95), y)]);
        let told = format!(
            "{}: median {} (5 % {}, 95 % {}), {} connections",
            label(cell),
            show(spread.p50),
            show(spread.p5),
            show(spread.p95),
            count(spread.count)
        );
        drawing.dot(format!("k{colour}"), axis.at(spread.p50), y, told);
        drawing.words("", "end", (LEFT - 12.0, y + 4.0), shortened(cell));
    }
    Some(Picture {
        title,
        note: "Dot: median; line: from the 5th to the 95th percentile of connections.".to_string(),
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
