//! Delay against throughput: a dot for the mean of the runs of each kind, an ellipse for its runs,
//! a line along the Pareto front. Used by rankings and comparisons.

mod ellipse;
mod labels;

use crate::drawing::{Axis, Drawing, Plot};
use ellipse::ellipse;

const LEFT: f64 = 58.0;
const TOP: f64 = 30.0;
/// Margins to the right of the frame and below it.
const BESIDE: f64 = 14.0;
const BELOW: f64 = 46.0;
/// Number of colours; further marks start again with the first.
pub(crate) const COLOURS: usize = 8;

/// The runs of one kind.
pub(crate) struct Mark<'m> {
    /// Its position among all, which determines its colour.
    pub place: usize,
    /// Name in the plane.
    pub name: &'m str,
    /// Whether the name is emphasised.
    pub strong: bool,
    /// Delay and rate of each run.
    pub points: Vec<(f64, f64)>,
}

/// Text of a plane.
pub(crate) struct Words<'w> {
    pub label: String,
    pub x: String,
    pub y: String,
    /// Returns the tooltip of a mark from its name and its mean delay and rate.
    pub title: &'w dyn Fn(&str, (f64, f64)) -> String,
}

/// Returns the class with the colour of a position.
pub(crate) fn colour(place: usize) -> String {
    format!("k{}", place % COLOURS)
}

/// Draws the plane in the given size. `knee` is delay and rate of the full path with an empty
/// queue, if known. Returns `None` if there is nothing to draw.
pub(crate) fn scatter(
    [width, height]: [f64; 2],
    marks: &[Mark<'_>],
    knee: Option<(f64, f64)>,
    words: &Words<'_>,
) -> Option<Drawing> {
    let (right, bottom) = (width - BESIDE, height - BELOW);
    let (x, y) = axes(marks, knee, [LEFT, TOP, right, bottom])?;
    let mut drawing = Drawing::sized(width, height, &words.label);
    drawing.levels(&y, LEFT, right, &words.y);
    drawing.axis(&x, TOP, bottom, &words.x);
    if let Some((delay, rate)) = knee {
        drawing.line("edge", &[(x.at(delay), bottom), (x.at(delay), TOP)]);
        drawing.line("edge", &[(LEFT, y.at(rate)), (right, y.at(rate))]);
    }
    let mut dots = Vec::new();
    for mark in marks {
        let Some((mean, outline)) = ellipse(&mark.points) else { continue };
        let title = (words.title)(mark.name, mean);
        if mark.points.len() > 1 {
            let outline: Vec<(f64, f64)> =
                outline.into_iter().map(|(cx, cy)| (x.at(cx), y.at(cy))).collect();
            drawing.shape(colour(mark.place), &outline, title.clone());
        }
        dots.push((mark, (x.at(mean.0), y.at(mean.1)), title));
    }
    front(&mut drawing, &dots.iter().map(|(_, at, _)| *at).collect::<Vec<_>>());
    name(&mut drawing, &dots, [LEFT, TOP - 8.0, right, bottom]);
    drawing.plot(Plot {
        frame: [LEFT, TOP, right, bottom],
        x: Some([x.low, x.high]),
        y: Some([y.low, y.high]),
        both: true,
        units: ["", ""],
    });
    Some(drawing)
}

/// Returns axes that end at the outermost runs, with a margin.
fn axes(
    marks: &[Mark<'_>],
    knee: Option<(f64, f64)>,
    [left, top, right, bottom]: [f64; 4],
) -> Option<(Axis, Axis)> {
    let all = || marks.iter().flat_map(|mark| mark.points.iter().copied());
    let ends = |of: fn((f64, f64)) -> f64| {
        let values = all().map(of);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (low.is_finite() && high.is_finite()).then_some((low, high))
    };
    let ((soonest, slowest), (lowest, fastest)) = (ends(|at| at.0)?, ends(|at| at.1)?);
    let (soonest, fastest) = match knee {
        Some((delay, rate)) => (soonest.min(delay), fastest.max(rate)),
        None => (soonest, fastest),
    };
    let least = |known: Option<f64>, value: f64| 0.05 * known.unwrap_or(value);
    let wide = (slowest - soonest).max(least(knee.map(|knee| knee.0), slowest));
    let high = (fastest - lowest).max(least(knee.map(|knee| knee.1), fastest));
    let x = Axis::between((soonest - 0.04 * wide, slowest + 0.08 * wide), left, right);
    let y = Axis::between(((lowest - 0.1 * high).max(0.0), fastest + 0.04 * high), bottom, top);
    Some((x, y))
}

/// Draws a line through the dots that have no other dot to the left and above.
fn front(drawing: &mut Drawing, dots: &[(f64, f64)]) {
    let beaten =
        |own: &(f64, f64)| dots.iter().any(|dot| dot != own && dot.0 <= own.0 && dot.1 <= own.1);
    let mut front: Vec<(f64, f64)> = dots.iter().filter(|dot| !beaten(dot)).copied().collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    drawing.line("front", &front);
}

fn name(drawing: &mut Drawing, dots: &[(&Mark<'_>, (f64, f64), String)], frame: [f64; 4]) {
    let places: Vec<(f64, f64)> = dots.iter().map(|(_, at, _)| *at).collect();
    let names: Vec<&str> = dots.iter().map(|(mark, ..)| mark.name).collect();
    for ((mark, at, title), label) in dots.iter().zip(labels::place(&places, &names, frame)) {
        drawing.dot(colour(mark.place), at.0, at.1, title.clone());
        let Some(label) = label else { continue };
        if label.leads {
            let end = if label.x > at.0 { label.x - 2.0 } else { label.x + 8.0 };
            drawing.line("lead", &[*at, (end, label.y - 4.0)]);
        }
        let class = if mark.strong { "name front" } else { "name" };
        drawing.label(class, (label.x, label.y), mark.name, *at);
    }
}
