//! Chart of a measure over one setting: bars if the values are names, a line if they
//! are numbers.

use super::readings::{Readings, Value, View, along};
use crate::drawing::{Axis, Drawing, Plot};

const WIDTH: f64 = 560.0;
/// Frame of a line.
const HEIGHT: f64 = 338.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 38.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = HEIGHT - 54.0;
/// A bar with its name above it.
const ROW: f64 = 46.0;
/// Space for the value next to the longest bar.
const BESIDE: f64 = 200.0;
/// Minimum distance between labels of the setting.
const NAMES_APART: f64 = 62.0;
/// Half the width of the end of a whisker.
const CAP: f64 = 4.0;
/// Ratio of the largest to the smallest value from which the axis is logarithmic; it is
/// also logarithmic if the steps are equal factors.
const SPAN: f64 = 20.0;
const EQUAL: f64 = 1.05;

struct Row<'n> {
    name: &'n str,
    place: Vec<usize>,
    value: Option<Value>,
}

/// Draws a view over the values of one key. Returns `None` if there are no values.
pub(super) fn drawing(readings: &Readings<'_>, view: &View, key: usize) -> Option<Drawing> {
    let values = readings.summary.keys[key].values.iter().enumerate();
    let rows: Vec<Row<'_>> = values
        .map(|(value, name)| {
            let place = along(&readings.origin(), key, value);
            let value = readings.value(view, &place);
            Row { name, place, value }
        })
        .collect();
    let reach = |row: &Row<'_>| {
        let value = row.value.as_ref()?;
        let middle = value.middle?;
        Some(value.ends.map_or(middle, |(_, high)| high))
    };
    let tops: Vec<f64> = rows.iter().filter_map(reach).collect();
    if tops.is_empty() {
        return None;
    }
    let least = if view.base.is_some() { 1.0 } else { 0.0 };
    let top = tops.into_iter().fold(least, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    match readings.numbers[key].as_deref().filter(|_| rows.len() > 2) {
        Some(places) => Some(line(readings, (view, key), &rows, places, top)),
        None => Some(bars(readings, &rows, top)),
    }
}

fn bars(readings: &Readings<'_>, rows: &[Row<'_>], top: f64) -> Drawing {
    let (left, right) = (8.0, WIDTH - BESIDE);
    let mut drawing = Drawing::sized(WIDTH, rows.len() as f64 * ROW + 10.0, "bars");
    let at = |value: f64| left + (value / top).clamp(0.0, 1.0) * (right - left);
    for (number, row) in rows.iter().enumerate() {
        let above = number as f64 * ROW + 18.0;
        let (from, to) = (above + 6.0, above + 26.0);
        let middle = (from + to) / 2.0;
        drawing.words("head", "start", (left, above), row.name);
        let mut end = left;
        let mut words = match readings.reason(&row.place) {
            Some(_) => "not possible".to_string(),
            None => "–".to_string(),
        };
        if let Some(value) = &row.value {
            words = value.text.join(" ").trim().to_string();
            if let Some(mean) = value.middle {
                end = at(value.ends.map_or(mean, |(_, high)| high));
                let class = if value.best { "bar best" } else { "bar" };
                let told = format!("{}: {words}", row.name);
                drawing.bar(class, [left, from, at(mean), to], told);
                whisker(&mut drawing, value.ends, |value, across| (at(value), middle + across));
            }
            if value.best {
                words = format!("★ {words}");
            }
        }
        drawing.words("", "start", (end + 8.0, middle + 4.0), words);
    }
    drawing
}

/// From one end of an interval to the other, with short lines across both. `at`: the
/// place of a value, so far across.
fn whisker(drawing: &mut Drawing, ends: Option<(f64, f64)>, at: impl Fn(f64, f64) -> (f64, f64)) {
    let Some((low, high)) = ends else { return };
    let points =
        [at(low, -CAP), at(low, CAP), at(low, 0.0), at(high, 0.0), at(high, -CAP), at(high, CAP)];
    drawing.line("interval", &points);
}

/// The axis of the setting, logarithmic if its values grow by factors.
fn across(places: &[f64]) -> impl Fn(f64) -> f64 {
    let mut order = places.to_vec();
    order.sort_by(f64::total_cmp);
    let (from, to) = (order[0], order[order.len() - 1]);
    let steps: Vec<f64> = order.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let widest = steps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
    let by_ratio = from > 0.0 && (to / from > SPAN || widest / least < EQUAL);
    move |value| {
        let part = match by_ratio {
            _ if to <= from => 0.5,
            true => (value / from).ln() / (to / from).ln(),
            false => (value - from) / (to - from),
        };
        LEFT + part * (RIGHT - LEFT)
    }
}

fn line(
    readings: &Readings<'_>,
    (view, key): (&View, usize),
    rows: &[Row<'_>],
    places: &[f64],
    top: f64,
) -> Drawing {
    let mut drawing = Drawing::sized(WIDTH, HEIGHT, "values over the setting");
    let x = across(places);
    let y = Axis::from_zero(top * 1.06, BOTTOM, TOP);
    for (value, _) in y.ticks() {
        drawing.line("grid", &[(LEFT, y.at(value)), (RIGHT, y.at(value))]);
        let name = if value == 0.0 { "0".to_string() } else { readings.mark(view, value) };
        drawing.words("tick", "end", (LEFT - 8.0, y.at(value) + 4.0), name);
    }
    if view.base.is_some() {
        drawing.line("reference", &[(LEFT, y.at(1.0)), (RIGHT, y.at(1.0))]);
    }
    let mut sorted: Vec<(f64, &Row<'_>)> = places.iter().map(|place| x(*place)).zip(rows).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = f64::NEG_INFINITY;
    for (at, row) in &sorted {
        if at - last >= NAMES_APART {
            last = *at;
            drawing.words("tick", "middle", (*at, BOTTOM + 23.0), row.name);
        }
    }
    let middle = 0.5 * (LEFT + RIGHT);
    drawing.words("quiet", "middle", (middle, HEIGHT - 8.0), &*readings.summary.keys[key].name);
    let mut points = Vec::new();
    for (at, row) in sorted {
        let Some(value) = &row.value else { continue };
        let Some(mean) = value.middle else { continue };
        points.push((at, y.at(mean)));
        whisker(&mut drawing, value.ends, |value, across| (at + across, y.at(value)));
        let class = if value.best { "best" } else { "strong" };
        let words = value.text.join(" ");
        let star = if value.best { "★ " } else { "" };
        drawing.dot(class, at, y.at(mean), format!("{}: {star}{}", row.name, words.trim()));
    }
    drawing.line("curve c0", &points);
    let frame = [LEFT, TOP, RIGHT, BOTTOM];
    drawing.plot(Plot { frame, x: None, y: None, both: false, units: ["", ""] });
    drawing
}
