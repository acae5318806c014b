//! Activity over time: payload acknowledged, connections ended, payload retransmitted.

use super::Picture;
use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::{count, percent, rate};
use knee_record::{ObservedPoint, ObservedReport, rfc3339};
use minijinja::Value;

const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 20.0;
/// Height of a panel, and of the gap above it.
const PANEL: f64 = 96.0;
const GAP: f64 = 34.0;
/// Possible distances between two marks of the time axis, seconds.
const MARKS_S: [u64; 15] = [
    10,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    2 * 3600,
    4 * 3600,
    8 * 3600,
    86_400,
    2 * 86_400,
    7 * 86_400,
];
const MARKS_MAX: u64 = 8;
const MINUTE_S: u64 = 60;
const DAY_S: u64 = 86_400;
/// Steps with a smaller gap between them are one line, seconds.
const GAP_S: f64 = 0.5;

/// A panel: its title, class, value, and the formatter of the value.
pub(crate) type Panel<P> = (&'static str, &'static str, fn(&P) -> f64, fn(f64) -> String);

const PANELS: [Panel<ObservedPoint>; 3] = [
    ("acknowledged, Mbit/s", "curve c0", mbit_per_s, |mbit| rate(Some(mbit * 1e6))),
    ("connections ended per second", "curve c2", per_second, |number| {
        format!("{number:.1} per second")
    }),
    ("retransmitted, %", "curve c1", again, |part| percent(Some(part / 100.0))),
];

fn seconds(point: &ObservedPoint) -> f64 {
    (point.minutes * 60).max(1) as f64
}

fn mbit_per_s(point: &ObservedPoint) -> f64 {
    point.acked_bytes as f64 * 8e-6 / seconds(point)
}

fn per_second(point: &ObservedPoint) -> f64 {
    point.connections as f64 / seconds(point)
}

fn again(point: &ObservedPoint) -> f64 {
    100.0 * point.retransmitted_bytes as f64 / point.sent_bytes.max(1) as f64
}

/// Draws the picture, or returns `None` if there are fewer than two steps.
pub(super) fn picture(report: &ObservedReport) -> Option<Picture> {
    let (points, step_s) = (&report.course.points, report.course.step_s);
    let label = "acknowledged, ended and retransmitted over time";
    let span = |point: &ObservedPoint| [point.unix_s, point.unix_s + step_s].map(|s| s as f64);
    let is_lossy = |point: &ObservedPoint| point.lost_reports > 0;
    let shade = |point: &ObservedPoint| {
        is_lossy(point).then(|| format!("{} reports lost", count(point.lost_reports)))
    };
    let drawing = panels(label, points, &PANELS, span, shade, None)?;
    let lost = if points.iter().any(is_lossy) { " Red: reports were lost." } else { "" };
    Some(Picture {
        title: "Over time".to_string(),
        note: format!(
            "Connections by the time of their end (UTC), in steps of {} min. A long connection \
             counts with all its bytes at its end.{lost}",
            step_s / 60
        ),
        drawing: Value::from_safe_string(drawing.inline()),
    })
}

/// Draws values of steps below each other over one time axis; `None` if there are fewer than two.
/// `span` is the begin and the end of a step, seconds since 1970 (UTC); `shade` says why it is shaded;
/// `moment` is marked. A step whose value is not finite has none.
pub(crate) fn panels<P>(
    label: &str,
    points: &[P],
    panels: &[Panel<P>],
    span: impl Fn(&P) -> [f64; 2],
    shade: impl Fn(&P) -> Option<String>,
    moment: Option<f64>,
) -> Option<Drawing> {
    let (first, last) = points.first().zip(points.last()).filter(|_| points.len() > 1)?;
    let (from, to) = (span(first)[0], span(last)[1]);
    let bottom = (GAP + PANEL) * panels.len() as f64;
    let mut drawing = Drawing::new(bottom + 24.0, label);
    let time = Axis::between((from, to), LEFT, RIGHT);
    for point in points {
        let [x, right] = span(point).map(|at| time.at(at));
        if let Some(told) = shade(point) {
            drawing.bar("lost", [x, GAP, right, bottom], told);
        }
    }
    for (at, (title, class, value, show)) in panels.iter().enumerate() {
        let top = (GAP + PANEL) * at as f64 + GAP;
        let has_value = |point: &&P| value(point).is_finite();
        let most = points.iter().map(value).fold(0.0, f64::max);
        let axis = Axis::from_zero(1.08 * most, top + PANEL, top);
        drawing.levels(&axis, LEFT, RIGHT, title);
        let place = |point: &P| {
            let [from, to] = span(point);
            (time.at(0.5 * (from + to)), axis.at(value(point)))
        };
        let follows = |one: &P, next: &P| span(next)[0] - span(one)[1] < GAP_S;
        for run in points.chunk_by(follows) {
            drawing.line(*class, &run.iter().filter(has_value).map(place).collect::<Vec<_>>());
        }
        // Invisible dots, which the pointer finds.
        for point in points.iter().filter(has_value) {
            let (x, y) = place(point);
            let [from, to] = span(point);
            let at = clock(from as u64, to - from < MINUTE_S as f64);
            drawing.dot("hidden", x, y, format!("{at} {}", show(value(point))));
        }
    }
    marks(&mut drawing, &time, [from as u64, to as u64], bottom);
    if let Some(moment) = moment.filter(|moment| (from..=to).contains(moment)) {
        let x = time.at(moment);
        drawing.line("moment", &[(x, GAP - 14.0), (x, bottom)]);
        let (anchor, x) =
            if x > 0.5 * (LEFT + RIGHT) { ("end", x - 5.0) } else { ("start", x + 5.0) };
        drawing.words("", anchor, (x, GAP - 6.0), clock(moment as u64, false));
    }
    Some(drawing)
}

fn marks(drawing: &mut Drawing, time: &Axis, [from, to]: [u64; 2], bottom: f64) {
    let fits = |mark: &&u64| (to - from) / **mark < MARKS_MAX;
    let mark = *MARKS_S.iter().find(fits).unwrap_or(&MARKS_S[MARKS_S.len() - 1]);
    let mut at = from.div_ceil(mark) * mark;
    while at <= to {
        let x = time.at(at as f64);
        drawing.line("grid", &[(x, GAP), (x, bottom)]);
        let text = clock(at, mark < MINUTE_S);
        let text = if mark >= DAY_S { &text[..10] } else { &text[11..] };
        drawing.words("quiet", "middle", (x, bottom + 16.0), text);
        at += mark;
    }
}

/// Formats a time: `2026-11-24 18:05`, or with seconds.
pub(crate) fn clock(unix_s: u64, seconds: bool) -> String {
    let length = if seconds { 19 } else { 16 };
    rfc3339(unix_s).replace('T', " ").get(..length).unwrap_or_default().to_string()
}
