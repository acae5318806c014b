//! Drawings of rectangles, lines, dots and text in their own units, as SVG, both within a page and
//! as a separate file. Charts over time are in `chart.rs`.

use crate::chart::on_paper;
use knee_units::printable;
use serde::{Serialize, Serializer};

/// Width of every drawing, in its own units.
pub(crate) const WIDTH: f64 = 760.0;

/// A drawing; a template receives it as the SVG of [`Drawing::inline`].
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    width: f64,
    height: f64,
    /// Description for screen readers.
    label: String,
    bars: Vec<Bar>,
    shapes: Vec<Shape>,
    lines: Vec<Line>,
    dots: Vec<Dot>,
    words: Vec<Words>,
    cells: Vec<Cell>,
    plot: Option<Plot>,
}

/// What a page's script needs to show a part of a drawing larger, and values.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Left, top, right and bottom of the frame.
    pub frame: [f64; 4],
    /// Ends of a linear axis along the foot; none: its labels move with what is drawn.
    pub x: Option<[f64; 2]>,
    /// Ends of a linear axis along the left; none: values are not read from it.
    pub y: Option<[f64; 2]>,
    /// Whether the axis along the left is zoomed too.
    pub both: bool,
    /// Units of the two.
    pub units: [&'static str; 2],
}

/// A group around a place, whose contents a page may exchange.
#[derive(Debug)]
struct Cell {
    x: String,
    y: String,
    /// What stands for it in the page; none: its contents never change.
    point: Option<usize>,
    name: String,
    contents: String,
}

#[derive(Debug)]
struct Bar {
    x: String,
    y: String,
    width: String,
    height: String,
    class: &'static str,
    /// Empty if opaque.
    opacity: String,
    title: String,
}

/// A filled outline.
#[derive(Debug)]
struct Shape {
    class: String,
    points: String,
    title: String,
}

#[derive(Debug)]
struct Line {
    class: String,
    points: String,
    /// Whose values it has; empty: it has none.
    name: String,
}

#[derive(Debug)]
struct Dot {
    x: String,
    y: String,
    class: String,
    title: String,
}

#[derive(Debug)]
struct Words {
    /// The place that it belongs to, where that is another one: `x y`.
    of: String,
    x: String,
    y: String,
    anchor: &'static str,
    class: String,
    text: String,
}

impl Serialize for Drawing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.inline())
    }
}

impl Line {
    fn svg(&self, page: bool) -> String {
        let name = match page && !self.name.is_empty() {
            true => format!(" data-name=\"{}\"", escaped(&self.name)),
            false => String::new(),
        };
        format!("<polyline class=\"{}\" points=\"{}\"{name}/>\n", self.class, self.points)
    }
}

impl Drawing {
    pub(crate) fn new(height: f64, label: &str) -> Drawing {
        Drawing::sized(WIDTH, height, label)
    }

    /// Creates a drawing whose width differs from [`WIDTH`].
    pub(crate) fn sized(width: f64, height: f64, label: &str) -> Drawing {
        Drawing { width, height, label: label.to_string(), ..Drawing::default() }
    }

    /// Adds a bar with a tooltip; corners at `(x, y)` and `(right, bottom)`. A bar too narrow to be
    /// visible is widened.
    pub(crate) fn bar(
        &mut self,
        class: &'static str,
        [x, y, right, bottom]: [f64; 4],
        title: String,
    ) {
        self.shade(class, [x, y, right, bottom], None, title);
    }

    /// Adds a translucent bar; opacity `0.0..=1.0`.
    pub(crate) fn shade(
        &mut self,
        class: &'static str,
        [x, y, right, bottom]: [f64; 4],
        opacity: Option<f64>,
        title: String,
    ) {
        self.bars.push(Bar {
            x: place(x),
            y: place(y),
            width: place((right - x).max(1.0)),
            height: place(bottom - y),
            class,
            opacity: opacity.map_or_else(String::new, |part| format!("{part:.2}")),
            title,
        });
    }

    pub(crate) fn line(&mut self, class: impl Into<String>, points: &[(f64, f64)]) {
        self.curve(class, points, "");
    }

    /// A line whose values the script of a page tells, under a name.
    pub(crate) fn curve(&mut self, class: impl Into<String>, points: &[(f64, f64)], name: &str) {
        let (class, name) = (class.into(), name.to_string());
        self.lines.push(Line { class, points: places(points), name });
    }

    /// A group around a place, drawn last; `name` says where it is.
    pub(crate) fn cell(
        &mut self,
        (x, y): (f64, f64),
        point: Option<usize>,
        name: String,
        contents: String,
    ) {
        self.cells.push(Cell { x: place(x), y: place(y), point, name, contents });
    }

    /// A page's script may show a part of this drawing larger.
    pub(crate) fn plot(&mut self, plot: Plot) {
        self.plot = Some(plot);
    }

    /// Adds a filled outline, below lines and dots.
    pub(crate) fn shape(
        &mut self,
        class: impl Into<String>,
        points: &[(f64, f64)],
        title: impl Into<String>,
    ) {
        let (class, title) = (class.into(), title.into());
        self.shapes.push(Shape { class, points: places(points), title });
    }

    pub(crate) fn dot(&mut self, class: impl Into<String>, x: f64, y: f64, title: String) {
        self.dots.push(Dot { x: place(x), y: place(y), class: class.into(), title });
    }

    /// Adds text. `anchor` is `start`, `middle` or `end`.
    pub(crate) fn words(
        &mut self,
        class: impl Into<String>,
        anchor: &'static str,
        (x, y): (f64, f64),
        text: impl Into<String>,
    ) {
        let (class, text) = (class.into(), text.into());
        let of = String::new();
        self.words.push(Words { of, x: place(x), y: place(y), anchor, class, text });
    }

    /// Words that stay beside a place when a page shows a part of the drawing larger.
    pub(crate) fn label(&mut self, class: &str, (x, y): (f64, f64), text: &str, of: (f64, f64)) {
        self.words(class, "start", (x, y), text);
        if let Some(words) = self.words.last_mut() {
            words.of = format!("{} {}", place(of.0), place(of.1));
        }
    }

    /// Returns the drawing as a separate SVG file in a palette for paper, `pixels`
    /// wide.
    pub(crate) fn file(&self, pixels: f64) -> String {
        self.styled_file(pixels, "")
    }

    /// The same with further rules of style.
    pub(crate) fn styled_file(&self, pixels: f64, rules: &str) -> String {
        let body = format!("<g class=\"figure\">\n{}</g>", self.body(false));
        styled_file([self.width, self.height], pixels, &self.label, &body, rules)
    }

    /// Returns the same drawing for a page, which supplies the style.
    pub(crate) fn inline(&self) -> String {
        let size = format!("viewBox=\"0 0 {} {}\"", place(self.width), place(self.height));
        self.svg(&size)
    }

    /// The same, at its own size however wide the screen is.
    pub(crate) fn inline_as_it_is(&self) -> String {
        let (width, height) = (place(self.width), place(self.height));
        self.svg(&format!("viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\""))
    }

    fn svg(&self, size: &str) -> String {
        let numbers =
            |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
        let plot = self.plot.as_ref().map_or_else(String::new, |plot| {
            let Plot { frame, x, y, both, units } = plot;
            let axis = |name: &str, ends: &Option<[f64; 2]>| match ends {
                Some(ends) => format!(" data-{name}=\"{}\"", numbers(ends)),
                None => String::new(),
            };
            let (frame, zoom) = (numbers(frame), if *both { "both" } else { "x" });
            let (x, y, units) = (axis("x", x), axis("y", y), units.join(" "));
            format!(" data-frame=\"{frame}\" data-zoom=\"{zoom}\"{x}{y} data-units=\"{units}\"")
        });
        format!(
            "<svg class=\"figure\" {size}{plot} role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escaped(&self.label),
            self.body(true)
        )
    }

    /// Writes grids first, then areas, lines, dots and text, each in the order in which they were
    /// added.
    fn body(&self, page: bool) -> String {
        let mut svg = String::new();
        let grid = |line: &&Line| line.class == "grid";
        self.lines.iter().filter(grid).for_each(|line| svg += &line.svg(page));
        for Bar { x, y, width, height, class, opacity, title } in &self.bars {
            let opacity = match opacity.is_empty() {
                true => String::new(),
                false => format!(" fill-opacity=\"{opacity}\""),
            };
            svg += &format!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
                 height=\"{height}\"{opacity}><title>{}</title></rect>\n",
                escaped(title)
            );
        }
        for Shape { class, points, title } in &self.shapes {
            svg += &format!(
                "<polygon class=\"{class}\" points=\"{points}\"><title>{}</title></polygon>\n",
                escaped(title)
            );
        }
        self.lines.iter().filter(|line| !grid(line)).for_each(|line| svg += &line.svg(page));
        for Dot { x, y, class, title } in &self.dots {
            svg += &format!(
                "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"3.6\">\
                 <title>{}</title></circle>\n",
                escaped(title)
            );
        }
        for Words { of, x, y, anchor, class, text } in &self.words {
            let of = match page && !of.is_empty() {
                true => format!(" data-of=\"{of}\""),
                false => String::new(),
            };
            svg += &format!(
                "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{of} text-anchor=\"{anchor}\">{}</text>\n",
                escaped(text)
            );
        }
        for Cell { x, y, point, name, contents } in &self.cells {
            let title = match page {
                true => String::new(),
                false => format!("<title>{}</title>", escaped(name)),
            };
            let name = match (page, point) {
                (false, _) => String::new(),
                (true, Some(point)) => format!(" data-point=\"{point}\""),
                (true, None) => format!(" data-told=\"{}\"", escaped(name)),
            };
            svg += &format!(
                "<g class=\"cell\"{name} transform=\"translate({x} {y})\">{title}{contents}</g>\n"
            );
        }
        svg
    }

    /// Adds vertical lines with labels at round values along the bottom of a frame.
    pub(crate) fn axis(&mut self, axis: &Axis, top: f64, bottom: f64, title: &str) {
        for (value, label) in axis.ticks() {
            let x = axis.at(value);
            self.line("grid", &[(x, top), (x, bottom)]);
            self.words("quiet tick", "middle", (x, bottom + 15.0), label);
        }
        let middle = 0.5 * (axis.low_at + axis.high_at);
        self.words("quiet", "middle", (middle, bottom + 32.0), title);
    }

    /// Adds horizontal lines with labels at round values along the left of a frame.
    pub(crate) fn levels(&mut self, axis: &Axis, left: f64, right: f64, title: &str) {
        self.levels_at(axis, [left, right], 4.0, title);
    }

    /// Adds the lines of [`Drawing::levels`] to a frame that is not the leftmost; the title begins
    /// at `title_at`.
    pub(crate) fn levels_at(
        &mut self,
        axis: &Axis,
        [left, right]: [f64; 2],
        title_at: f64,
        title: &str,
    ) {
        for (value, label) in axis.ticks() {
            let y = axis.at(value);
            self.line("grid", &[(left, y), (right, y)]);
            self.words("quiet tick", "end", (left - 6.0, y + 4.0), label);
        }
        self.words("quiet", "start", (title_at, axis.high_at.min(axis.low_at) - 8.0), title);
    }
}

/// Mapping from values to places, linear or logarithmic.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub low: f64,
    pub high: f64,
    pub low_at: f64,
    pub high_at: f64,
    /// Whether the axis is logarithmic, with marks at powers of ten labelled by `names`.
    pub decades: bool,
    /// Formats the label of a power of ten.
    pub names: fn(f64) -> String,
}

impl Axis {
    /// Returns a linear axis between two values.
    pub(crate) fn between((low, high): (f64, f64), low_at: f64, high_at: f64) -> Axis {
        let high = if high > low { high } else { low + 1.0 };
        Axis { low, high, ..Axis::from_zero(high, low_at, high_at) }
    }

    /// Returns a linear axis from zero.
    pub(crate) fn from_zero(high: f64, low_at: f64, high_at: f64) -> Axis {
        let high = if high > 0.0 { high } else { 1.0 };
        Axis { low: 0.0, high, low_at, high_at, decades: false, names: |_| String::new() }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = match self.decades {
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.low_at + part.clamp(0.0, 1.0) * (self.high_at - self.low_at)
    }

    /// Returns round values with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.decades {
            let (first, last) = (self.low.log10() - 1e-9, self.high.log10() + 1e-9);
            let (first, last) = (first.ceil() as i32, last.floor() as i32);
            return (first..=last)
                .map(|power| 10f64.powi(power))
                .map(|value| (value, (self.names)(value)))
                .collect();
        }
        let step = round_step((self.high - self.low) / 6.0);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|count| count as f64 * step)
            .map(|value| (value, format!("{value:.decimals$}")))
            .collect()
    }
}

/// Rounds a value up to 1, 2 or 5 times a power of ten.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

/// Returns a picture as a separate SVG file with its style, on white, `pixels` wide.
pub(crate) fn file(size: [f64; 2], pixels: f64, label: &str, body: &str) -> String {
    styled_file(size, pixels, label, body, "")
}

fn styled_file(
    [width, height]: [f64; 2],
    pixels: f64,
    label: &str,
    body: &str,
    rules: &str,
) -> String {
    let high = (pixels * height / width * 10.0).round() / 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{pixels}\" height=\"{high}\" role=\"img\">\n<title>{}</title>\n\
         <style>{}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}\n\
         </svg>\n",
        escaped(label),
        on_paper(rules)
    )
}

/// Escapes a text for XML; what it hides is spelt out.
pub(crate) fn escaped(text: &str) -> String {
    let text = printable(text, |_| false);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn places(points: &[(f64, f64)]) -> String {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", place(*x), place(*y))).collect();
    points.join(" ")
}

fn place(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_has_round_marks() {
        let axis = Axis::from_zero(13.0, 100.0, 230.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "5", "10"]);
        assert_eq!(axis.at(6.5), 165.0);
        assert_eq!(axis.at(99.0), 230.0);
    }

    #[test]
    fn decades_are_evenly_spaced() {
        let (low, high) = (1e3, 1e6);
        let axis = Axis {
            low,
            high,
            low_at: 0.0,
            high_at: 300.0,
            decades: true,
            names: |value| format!("{value}"),
        };
        assert_eq!(axis.at(1e4), 100.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["1000", "10000", "100000", "1000000"]);
    }
}
