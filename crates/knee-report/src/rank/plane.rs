//! The delay-throughput plane: a dot for the mean of each candidate alone, an
//! ellipse for its runs, a line along the Pareto front.

use super::colour;
use super::ellipse::ellipse;
use super::labels;
use crate::drawing::{Axis, Drawing, WIDTH};
use crate::words::{percent, rate, time_us};
use knee_record::{RankEntry, RankSummary};

const HEIGHT: f64 = 440.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 46.0;

/// What the plane over all scenarios shows.
pub(super) fn caption(summary: &RankSummary) -> &'static str {
    match summary.ranking.repeats {
        1 => {
            "Each controller alone: best is up and to the left. Dashed: the Pareto front. One run \
             each, so there are no ellipses: use --repeat."
        }
        _ => {
            "Each controller alone: best is up and to the left. Dot: mean; ellipse: one standard \
             deviation over the seeds. Dashed: the Pareto front."
        }
    }
}

/// A candidate in a plane.
struct Placed<'e> {
    /// Its place in the ranking, from zero.
    place: usize,
    entry: &'e RankEntry,
    /// Delay and rate of each run.
    points: Vec<(f64, f64)>,
}

/// Over all scenarios: part of the path that is used, over how many times the
/// empty RTT.
pub(super) fn overall(summary: &RankSummary) -> Option<Drawing> {
    let points = |entry: &RankEntry| {
        entry.overall.iter().map(|[used, stretch]| (*stretch, *used * 100.0)).collect()
    };
    let placed = placed(summary, points);
    let words = Words {
        label: "part of the path used over RTT, each controller alone".to_string(),
        x: "RTT, 95th percentile, over the RTT of the empty path".to_string(),
        y: "part of the path that is used (%)".to_string(),
        title: |entry, (x, y)| {
            format!(
                "{}: {} at {x:.2} times the empty RTT",
                entry.candidate,
                percent(Some(y / 100.0))
            )
        },
    };
    draw(&placed, 1.0, 100.0, &words)
}

/// In one scenario: goodput over RTT.
pub(super) fn of_scenario(summary: &RankSummary, at: usize) -> Option<Drawing> {
    let points = |entry: &RankEntry| {
        entry.places[at].points.iter().map(|[bps, s]| (*s * 1e3, *bps / 1e6)).collect()
    };
    let placed = placed(summary, points);
    let first = summary.entries.iter().map(|entry| &entry.places[at]);
    let capacity = first.clone().find_map(|place| place.capacity_bps)?;
    let base_rtt = first.clone().find_map(|place| place.base_rtt_s)?;
    let words = Words {
        label: format!(
            "goodput over RTT, each controller alone: {}",
            summary.ranking.scenarios[at].name
        ),
        x: "RTT, 95th percentile (ms)".to_string(),
        y: "goodput (Mbit/s)".to_string(),
        title: |entry, (x, y)| {
            format!("{}: {} at {}", entry.candidate, rate(Some(y * 1e6)), time_us(Some(x * 1e3)))
        },
    };
    draw(&placed, base_rtt * 1e3, capacity / 1e6, &words)
}

struct Words {
    label: String,
    x: String,
    y: String,
    title: fn(&RankEntry, (f64, f64)) -> String,
}

fn placed(
    summary: &RankSummary,
    points: impl Fn(&RankEntry) -> Vec<(f64, f64)>,
) -> Vec<Placed<'_>> {
    let all = summary.entries.iter().enumerate();
    let all = all.map(|(place, entry)| Placed { place, entry, points: points(entry) });
    all.filter(|placed| !placed.points.is_empty()).collect()
}

/// `knee`: delay and rate of the full path with an empty queue.
fn draw(placed: &[Placed<'_>], knee_x: f64, knee_y: f64, words: &Words) -> Option<Drawing> {
    let all = || placed.iter().flat_map(|one| &one.points);
    let slowest = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let lowest = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    if !slowest.is_finite() || !lowest.is_finite() {
        return None;
    }
    let fastest = all().map(|point| point.1).fold(knee_y, f64::max);
    let soonest = all().map(|point| point.0).fold(knee_x, f64::min);
    // Axes end where the runs do, with some room for the outermost.
    let wide = (slowest - soonest).max(0.05 * knee_x);
    let high = (fastest - lowest).max(0.05 * knee_y);
    let x = Axis::between((soonest - 0.04 * wide, slowest + 0.08 * wide), LEFT, RIGHT);
    let low = (lowest - 0.1 * high).max(0.0);
    let y = Axis::between((low, fastest + 0.04 * high), BOTTOM, TOP);
    let mut drawing = Drawing::new(HEIGHT, &words.label);
    drawing.levels(&y, LEFT, RIGHT, &words.y);
    drawing.axis(&x, TOP, BOTTOM, &words.x);
    drawing.line("edge", &[(x.at(knee_x), BOTTOM), (x.at(knee_x), TOP)]);
    drawing.line("edge", &[(LEFT, y.at(knee_y)), (RIGHT, y.at(knee_y))]);
    let mut dots = Vec::new();
    for one in placed {
        let Some((mean, outline)) = ellipse(&one.points) else { continue };
        let title = (words.title)(one.entry, mean);
        let at = (x.at(mean.0), y.at(mean.1));
        if one.points.len() > 1 {
            let outline: Vec<(f64, f64)> =
                outline.into_iter().map(|(cx, cy)| (x.at(cx), y.at(cy))).collect();
            drawing.shape(colour(one.place), &outline, title.clone());
        }
        dots.push((one, at, title));
    }
    front(&mut drawing, &dots.iter().map(|(_, at, _)| *at).collect::<Vec<_>>());
    name(&mut drawing, &dots);
    Some(drawing)
}

/// Along those that no other one is left of and above.
fn front(drawing: &mut Drawing, dots: &[(f64, f64)]) {
    let beaten =
        |own: &(f64, f64)| dots.iter().any(|dot| dot != own && dot.0 <= own.0 && dot.1 <= own.1);
    let mut front: Vec<(f64, f64)> = dots.iter().filter(|dot| !beaten(dot)).copied().collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    drawing.line("front", &front);
}

fn name(drawing: &mut Drawing, dots: &[(&Placed<'_>, (f64, f64), String)]) {
    let places: Vec<(f64, f64)> = dots.iter().map(|(_, at, _)| *at).collect();
    let names: Vec<&str> = dots.iter().map(|(one, ..)| one.entry.candidate.as_str()).collect();
    let frame = [LEFT, TOP - 8.0, RIGHT, BOTTOM];
    for ((one, at, title), label) in dots.iter().zip(labels::place(&places, &names, frame)) {
        drawing.dot(colour(one.place), at.0, at.1, title.clone());
        let Some(label) = label else { continue };
        if label.leads {
            let end = if label.x > at.0 { label.x - 2.0 } else { label.x + 8.0 };
            drawing.line("lead", &[*at, (end, label.y - 4.0)]);
        }
        let class = if one.entry.on_front { "name front" } else { "name" };
        drawing.words(class, "start", (label.x, label.y), one.entry.candidate.clone());
    }
}
