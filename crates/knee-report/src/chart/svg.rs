//! Draws a chart as SVG.

use super::axis::{marks, range};
use super::outline::{Frame, area, band, line, plain, tenths};
use super::values::{Columns, Points};
use super::{Chart, Curve, Reference, Source};
use crate::drawing::escaped;
use std::fmt::Write;

/// Margins of the frame: for the title and the labels of the vertical axis, and for those of the
/// horizontal axis.
pub(super) const LEFT: f64 = 54.0;
pub(super) const ABOVE: f64 = 26.0;
pub(super) const RIGHT: f64 = 14.0;
pub(super) const BELOW: f64 = 48.0;
/// Size of a legend entry: beside its text, per character, and from row to row. It suffices for the
/// larger text of narrow screens.
const ENTRY: f64 = 44.0;
const LETTER: f64 = 8.2;
const ROW: f64 = 20.0;
/// Longest text in the legend, characters.
const LETTERS_MAX: usize = 44;
/// Space of a mark on the horizontal and the vertical axis.
const MARK: (f64, f64) = (84.0, 34.0);
/// Height of the name of a level.
const NAME: f64 = 14.0;
/// Height of the mark for a drop.
const DROP: f64 = 9.0;

impl Chart {
    /// Returns the chart for a page, which supplies the style. Unless `drawn`, it has only its
    /// frame: the script draws the rest when it is first visible.
    pub(crate) fn svg(&self, of: &dyn Columns, drawn: bool) -> String {
        let [width, height] = self.size;
        let name = &self.name;
        format!(
            "<svg class=\"chart\" data-chart=\"{name}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-label=\"{}\">{}</svg>",
            escaped(&self.label),
            self.body(of, drawn)
        )
    }

    /// Returns the chart as a separate SVG file in a palette for paper, `pixels`
    /// wide.
    pub(crate) fn file(&self, of: &dyn Columns, pixels: f64) -> String {
        let [width, height] = self.size;
        crate::drawing::file(
            [width, height],
            pixels,
            &self.label,
            &format!("<g class=\"chart\">{}</g>", self.body(of, true)),
        )
    }

    fn body(&self, of: &dyn Columns, drawn: bool) -> String {
        let view = self.x.whole;
        let shown = |curve: &&Curve| drawn && !curve.optional;
        let lines: Vec<Vec<Points>> = self
            .curves
            .iter()
            .map(|curve| match Some(curve).filter(shown) {
                Some(curve) => self.lines(of, &curve.source, view),
                None => Vec::new(),
            })
            .collect();
        let [left, top, right, bottom] = self.frame;
        // Named levels are drawn however far they are from the curves.
        let seen = self.extent(&lines, view).map(|ends| {
            let named = self.levels(of, |level| level.named).into_iter();
            named.fold(ends, |(low, high), value| (low.min(value), high.max(value)))
        });
        let range = range(seen, &self.levels(of, |_| true), self.y.from_zero);
        let frame = Frame { left, top, right, bottom, view, range };
        let mut svg = String::new();
        let part = |svg: &mut String, class: &str, body: String| {
            let _ = write!(
                svg,
                "<g class=\"{class}\">{}</g>",
                if drawn { body } else { String::new() }
            );
        };
        part(&mut svg, "shade", self.shades(of, &frame));
        part(&mut svg, "grid", grid(&frame));
        let (wide, high) = (right - left, bottom - top);
        let _ = write!(
            svg,
            "<svg class=\"inside\" x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"{left} {top} {wide} {high}\">"
        );
        for (number, (curve, lines)) in self.curves.iter().zip(&lines).enumerate() {
            let drawn = drawn_curve(curve, lines, &frame);
            let _ = write!(svg, "<g data-curve=\"{number}\">{drawn}</g>");
        }
        part(&mut svg, "drops", self.drop_marks(of, &frame));
        part(&mut svg, "references", self.reference_lines(of, &frame));
        svg.push_str("</svg>");
        self.titles(&mut svg);
        self.legend(&mut svg);
        svg
    }

    /// Returns the values of the levels chosen, in the axis' unit.
    fn levels(&self, of: &dyn Columns, chosen: impl Fn(&Reference) -> bool) -> Vec<f64> {
        let level = self.references.iter().filter(|one| !one.upright && chosen(one));
        let known = level.filter_map(|level| level.value(of.picked()));
        known.map(|value| value / self.y.divisor).collect()
    }

    fn reference_lines(&self, of: &dyn Columns, frame: &Frame) -> String {
        let mut upright = 0.0;
        let named = self.levels(of, |level| level.named).into_iter();
        let named: Vec<f64> = named.map(|value| frame.y(value)).collect();
        let line = |reference: &Reference| {
            let value = reference.value(of.picked())?;
            let [left, top, right, bottom] =
                [frame.left, frame.top, frame.right, frame.bottom].map(|side| plain(tenths(side)));
            let (path, place) = if reference.upright {
                let at = frame.x(value / self.x.divisor);
                let x = plain(tenths(at));
                upright += 1.0;
                (format!("M{x} {top}V{bottom}"), (at, frame.top + ROW * upright))
            } else {
                let at = frame.y(value / self.y.divisor);
                // Another's name is where its own would be: it goes below the line.
                let crowded = named.iter().any(|other| *other < at && at - other < NAME);
                let y = if crowded { at + NAME + 4.0 } else { at };
                (format!("M{left} {}H{right}", plain(tenths(at))), (frame.right, y))
            };
            let name =
                if reference.named { beside(reference, place, frame) } else { String::new() };
            Some(format!("<path class=\"reference\" d=\"{path}\"/>{name}"))
        };
        self.references.iter().filter_map(line).collect()
    }

    /// Returns the spans behind the curves: for each unit of width, the span that covers most of
    /// it.
    fn shades(&self, of: &dyn Columns, frame: &Frame) -> String {
        let place = |name: &str| format!("{}.{name}", self.shade);
        let at = of.column(&place("phases.at"));
        let phase = of.column(&place("phases.phase"));
        let end = of.column(&place("time_ns")).and_then(|times| times.last());
        let (Some(at), Some(phase), Some(&end)) = (at, phase, end) else { return String::new() };
        let tints = of.tints();
        let columns = (frame.right - frame.left) as usize;
        let unit = (frame.view[1] - frame.view[0]) * self.x.divisor / columns as f64;
        let begin = frame.view[0] * self.x.divisor;
        let mut paths = vec![String::new(); tints.len()];
        let mut open: Option<(usize, usize)> = None;
        let mut span = at.partition_point(|from| *from as f64 <= begin).saturating_sub(1);
        let (top, bottom) = (plain(tenths(frame.top)), plain(tenths(frame.bottom)));
        let mut close = |open: Option<(usize, usize)>, column: usize| {
            let Some((phase, from)) = open else { return };
            let [from, to] = [from, column].map(|column| plain(tenths(frame.left + column as f64)));
            let _ = write!(paths[phase], "M{from} {top}H{to}V{bottom}H{from}z");
        };
        for column in 0..columns {
            let (from, to) = (begin + column as f64 * unit, begin + (column + 1) as f64 * unit);
            let mut lasted = vec![0.0; tints.len()];
            while span < at.len() {
                let until = at.get(span + 1).map_or(end, |next| *next) as f64;
                let time = until.min(to) - (at[span] as f64).max(from);
                lasted[phase[span] as usize] += time.max(0.0);
                if until > to {
                    break;
                }
                span += 1;
            }
            let mut longest: Option<usize> = None;
            for (phase, &time) in lasted.iter().enumerate() {
                if time > 0.0 && longest.is_none_or(|best| time > lasted[best]) {
                    longest = Some(phase);
                }
            }
            if open.map(|(phase, _)| phase) != longest {
                close(open, column);
                open = longest.map(|phase| (phase, column));
            }
        }
        close(open, columns);
        let used = tints.iter().zip(&paths).filter(|(_, path)| !path.is_empty());
        used.map(|(tint, path)| format!("<path class=\"{tint}\" d=\"{path}\"/>")).collect()
    }

    /// Returns a mark at the bottom for each unit of width in which packets were dropped.
    fn drop_marks(&self, of: &dyn Columns, frame: &Frame) -> String {
        let column = |name: &str| of.column(&format!("{}.{name}", self.drops));
        let (Some(time), Some(dropped)) = (column("time_ns"), column("dropped_packets")) else {
            return String::new();
        };
        let (mut path, mut last) = (String::new(), f64::NAN);
        let mut before = 0;
        for (time, dropped) in time.iter().zip(dropped) {
            let more = *dropped > before;
            before = *dropped;
            let x = (frame.x(*time as f64 / self.x.divisor) + 0.5).floor();
            if more && x != last && x >= frame.left && x <= frame.right {
                let foot = plain(tenths(frame.bottom));
                let _ = write!(path, "M{} {foot}v-{}", plain(tenths(x)), plain(tenths(DROP)));
                last = x;
            }
        }
        if path.is_empty() { path } else { format!("<path d=\"{path}\"/>") }
    }

    fn titles(&self, svg: &mut String) {
        let [left, _, right, bottom] = self.frame;
        let middle = (left + right) / 2.0;
        let [y, x] = [(&*self.y.title, self.y.unit), (self.x.title, self.x.unit)].map(titled);
        let _ = write!(
            svg,
            "<text class=\"y\" x=\"4\" y=\"15\">{}</text><text x=\"{middle}\" y=\"{}\" \
             text-anchor=\"middle\">{}</text>",
            escaped(&y),
            bottom + 38.0,
            escaped(&x)
        );
    }

    /// Writes the names of curves and levels below the frame.
    fn legend(&self, svg: &mut String) {
        svg.push_str("<g class=\"keys\">");
        for ((class, words, number), (x, y)) in self.entries().into_iter().zip(self.places()) {
            let y = self.frame[3] + BELOW + y;
            let (middle, foot) = (y + ROW / 2.0, y + ROW / 2.0 + 4.0);
            let mark = match class {
                "area" => format!("M{x} {}h20v-10h-20z", middle + 5.0),
                _ => format!("M{x} {middle}h20"),
            };
            let edge = format!("M{x} {}h20v-10h-20z", middle + 5.0);
            let (curve, band) = match number {
                Some(number) => {
                    let is_band = matches!(self.curves[number].source, Source::Band { .. });
                    let band = format!("<path class=\"band {class}\" d=\"{edge}\"/>");
                    (format!(" data-key=\"{number}\""), if is_band { band } else { String::new() })
                }
                None => Default::default(),
            };
            let _ = write!(
                svg,
                "<g class=\"key\"{curve}>{band}<path class=\"{class}\" d=\"{mark}\"/>\
                 <text x=\"{}\" y=\"{foot}\">{}</text></g>",
                x + 26.0,
                escaped(&words)
            );
        }
        svg.push_str("</g>");
    }

    /// Returns class, text and curve number of each entry.
    fn entries(&self) -> Vec<(&str, String, Option<usize>)> {
        let short = |label: &str| crate::applications::shortened(label, LETTERS_MAX);
        let curves = self.curves.iter().enumerate().filter(|(_, curve)| !curve.optional);
        let curves =
            curves.map(|(number, curve)| (&*curve.class, short(&curve.label), Some(number)));
        let levels = self.references.iter().filter(|level| !level.named);
        curves.chain(levels.map(|level| ("reference", short(&level.label), None))).collect()
    }

    /// Returns the place of each entry, below the frame's labels.
    fn places(&self) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (LEFT, 0.0);
        let place = |(_, words, _): (&str, String, Option<usize>)| {
            let wide = ENTRY + LETTER * words.chars().count() as f64;
            if x + wide > self.size[0] && x > LEFT {
                (x, y) = (LEFT, y + ROW);
            }
            let at = (x, y);
            x += wide;
            at
        };
        self.entries().into_iter().map(place).collect()
    }
}

/// Returns the height of the legend.
pub(super) fn legend_height(chart: &Chart) -> f64 {
    chart.places().last().map_or(0.0, |(_, y)| y + ROW + 4.0)
}

/// Returns the name of a line beside a place on it, on the side with more room.
fn beside(reference: &Reference, (x, y): (f64, f64), frame: &Frame) -> String {
    let over_half = x > (frame.left + frame.right) / 2.0;
    let (x, anchor) = if over_half { (x - 4.0, "end") } else { (x + 4.0, "start") };
    let above = y - 4.0;
    let y = if above < frame.top + 12.0 { y + 14.0 } else { above };
    format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
        plain(tenths(x)),
        plain(tenths(y)),
        escaped(&reference.label)
    )
}

fn titled((title, unit): (&str, &str)) -> String {
    if unit.is_empty() { title.to_string() } else { format!("{title} ({unit})") }
}

fn drawn_curve(curve: &Curve, lines: &[Points], frame: &Frame) -> String {
    let class = &curve.class;
    match lines {
        [points] if class == "area" => {
            format!("<path class=\"{class}\" d=\"{}\"/>", area(points, frame))
        }
        [points] => format!("<path class=\"{class}\" d=\"{}\"/>", line(points, frame)),
        [low, median, high] => format!(
            "<path class=\"band {class}\" d=\"{}\"/><path class=\"{class}\" d=\"{}\"/>",
            band(low, high, frame),
            line(median, frame)
        ),
        _ => String::new(),
    }
}

/// Returns lines at round values, with their labels.
fn grid(frame: &Frame) -> String {
    let Frame { left, top, right, bottom, view, range } = frame;
    let (across, decimals) = marks(view[0], view[1], (right - left) / MARK.0);
    let (mut path, mut words) = (String::new(), String::new());
    for value in across {
        let x = plain(tenths(frame.x(value)));
        let _ = write!(path, "M{x} {top}V{}", bottom + 4.0);
        let _ = write!(
            words,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{value:.decimals$}</text>",
            bottom + 18.0
        );
    }
    let (upwards, decimals) = marks(range.0, range.1, (bottom - top) / MARK.1);
    for value in upwards {
        let at = frame.y(value);
        let y = plain(tenths(at));
        let _ = write!(path, "M{} {y}H{right}", left - 4.0);
        let _ = write!(
            words,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{value:.decimals$}</text>",
            left - 7.0,
            plain(tenths(at + 4.0))
        );
    }
    format!("<path d=\"{path}\"/>{words}")
}
