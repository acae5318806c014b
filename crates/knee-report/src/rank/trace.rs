//! A recorded link: its capacity as an area, and what left it as a line over it, as
//! `mm-throughput-graph` of Mahimahi does.

use crate::drawing::{Axis, Drawing, Plot};
use crate::scatter::{COLOURS, colour};
use knee_record::{RankSummary, RankTrace};

const HEIGHT: f64 = 250.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 44.0;
/// Largest number of lines that the eye can follow over one area.
const LINES_MAX: usize = 3;

pub(super) fn caption(summary: &RankSummary, trace: &RankTrace) -> String {
    let seed = "with the first seed";
    let which = match drawn(summary, trace).count() {
        shown if shown < summary.entries.len() => "the first of the ranking, ",
        _ => "",
    };
    format!("Area: capacity of link {}. Lines: its throughput, {which}alone, {seed}.", trace.link)
}

/// Returns place, name and throughput of the candidates that are drawn.
fn drawn<'s>(
    summary: &'s RankSummary,
    trace: &'s RankTrace,
) -> impl Iterator<Item = (usize, &'s str, &'s [u64])> {
    let all = summary.entries.iter().enumerate().filter_map(|(place, entry)| {
        let mut names = summary.ranking.candidates.iter();
        let number = names.position(|name| *name == entry.candidate)?;
        let rates = trace.throughput_bps.get(number).filter(|rates| !rates.is_empty())?;
        Some((place, entry.candidate.as_str(), rates.as_slice()))
    });
    all.take(LINES_MAX)
}

pub(super) fn drawing(summary: &RankSummary, trace: &RankTrace, width: f64) -> Drawing {
    let right = width - 14.0;
    let label = format!("capacity and throughput of link {}", trace.link);
    let mut drawing = Drawing::sized(width, HEIGHT, &label);
    let highest = trace.capacity_bps.iter().copied().max().unwrap_or(0) as f64 / 1e6;
    let end_s = trace.capacity_bps.len() as f64 * trace.bin_s;
    let x = Axis::from_zero(end_s, LEFT, right);
    let y = Axis::from_zero(highest * 1.05, BOTTOM, TOP);
    let middle = |bin: usize| x.at((bin as f64 + 0.5) * trace.bin_s);
    let places = |rates: &[u64]| -> Vec<(f64, f64)> {
        rates.iter().enumerate().map(|(bin, bps)| (middle(bin), y.at(*bps as f64 / 1e6))).collect()
    };
    let mut area = places(&trace.capacity_bps);
    area.extend([
        (middle(trace.capacity_bps.len().saturating_sub(1)), BOTTOM),
        (middle(0), BOTTOM),
    ]);
    drawing.shape("capacity", &area, "capacity of the link");
    drawing.levels(&y, LEFT, right, "IP rate (Mbit/s)");
    drawing.axis(&x, TOP, BOTTOM, "time (s)");
    let mut at = LEFT + 120.0;
    for (place, name, rates) in drawn(summary, trace) {
        let class = format!("curve c{}", place % COLOURS);
        drawing.curve(class.clone(), &places(rates), name);
        drawing.line(class, &[(at, 14.0), (at + 20.0, 14.0)]);
        drawing.words("name", "start", (at + 25.0, 18.0), name);
        drawing.dot(colour(place), at + 10.0, 14.0, String::new());
        at += 45.0 + 6.5 * name.chars().count() as f64;
    }
    drawing.plot(Plot {
        frame: [LEFT, TOP, right, BOTTOM],
        x: Some([x.low, x.high]),
        y: Some([y.low, y.high]),
        both: false,
        units: ["s", "Mbit/s"],
    });
    drawing
}
