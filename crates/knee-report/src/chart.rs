//! Charts: curves, bands and areas over a common axis, with the values from which they are drawn.
//!
//! A chart refers to its columns by their path in the embedded data, such as `flows.0.rtt_ns`.
//! [`Chart::svg`] draws it once; `assets/chart.js` redraws parts of it from the same columns by the
//! same rules, and a test in Node compares the two. Only curves are drawn inside the frame: the
//! legend is below it.

mod axis;
mod outline;
mod style;
mod svg;
mod values;

pub(crate) use axis::Kind;
use axis::Scale;
pub(crate) use style::{on_paper, style};
pub(crate) use values::Columns;

use serde::Serialize;

/// Width of a chart in its own units, and height of its frame.
pub(crate) const SIZE: (f64, f64) = (580.0, 178.0);

/// A chart, ready to be drawn and embedded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// Name of the chart on its page.
    pub name: String,
    /// Description for screen readers.
    #[serde(skip)]
    pub label: String,
    /// Width and height of the whole, in its own units.
    pub size: [f64; 2],
    /// Left, top, right and bottom of the frame.
    pub frame: [f64; 4],
    /// Horizontal axis.
    pub x: Horizontal,
    /// Vertical axis.
    pub y: Vertical,
    /// Curves, in the order in which they are drawn.
    pub curves: Vec<Curve>,
    /// Values with which the curves are compared.
    pub references: Vec<Reference>,
    /// Path of the columns with the spans shown as tints; empty if none.
    pub shade: String,
    /// Path of the columns of the link whose drops are marked at the bottom; empty if none.
    pub drops: String,
    /// Shortest time over which a rate is averaged, nanoseconds.
    pub interval_ns: u64,
}

/// The horizontal axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Horizontal {
    /// Ends of the axis, in its unit.
    pub whole: [f64; 2],
    /// Number of the column's units in one unit of the axis.
    pub divisor: f64,
    /// Unit of the labels.
    pub unit: &'static str,
    /// Title, without the unit.
    pub title: &'static str,
}

/// The vertical axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Vertical {
    /// Number of the column's units in one unit of the axis.
    pub divisor: f64,
    /// Unit of the labels.
    pub unit: &'static str,
    /// Title, without the unit.
    pub title: String,
    /// Whether the axis begins at zero even if all values are far above it.
    pub from_zero: bool,
}

/// A curve, or a band around one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Curve {
    /// Name in the legend.
    pub label: String,
    /// Classes in the style sheet.
    pub class: String,
    /// Source of its values.
    pub source: Source,
    /// Whether it is neither drawn nor in the legend until selected.
    pub optional: bool,
}

/// Columns of a curve, by their path in the embedded data.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub(crate) enum Source {
    /// Values as they are.
    Gauge {
        /// Column of the horizontal axis.
        x: String,
        /// Column of the values.
        y: String,
        /// Whether zero is a value; otherwise it means that there is none.
        zero: bool,
    },
    /// Joint growth of byte counters, in bit/s.
    Rate {
        /// Columns of times and counters.
        of: Vec<[String; 2]>,
    },
    /// A median, and a band from a low to a high percentile.
    Band {
        /// Column of times.
        x: String,
        /// Lower edge, line and upper edge.
        y: [String; 3],
        /// As for `Gauge`.
        zero: bool,
    },
}

/// A value with which curves are compared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reference {
    /// Name in the legend.
    pub label: String,
    /// Value in the units of the columns, for each flow that can be selected, or one for all. Zero
    /// if unknown: it is then not drawn.
    pub values: Vec<f64>,
    /// Whether it is a vertical line, at a place of the horizontal axis.
    pub upright: bool,
    /// Whether its name is written beside the line, not in the legend.
    #[serde(skip)]
    pub named: bool,
}

impl Chart {
    /// Creates a chart without curves, `width` in its own units.
    pub(crate) fn new(name: &str, width: f64, x: Horizontal, y: Vertical) -> Chart {
        let label = format!("{} over {}", y.title, x.title);
        Chart {
            name: name.to_string(),
            label,
            size: [width, svg::ABOVE + SIZE.1 + svg::BELOW],
            frame: [svg::LEFT, svg::ABOVE, width - svg::RIGHT, svg::ABOVE + SIZE.1],
            x,
            y,
            curves: Vec::new(),
            references: Vec::new(),
            shade: String::new(),
            drops: String::new(),
            interval_ns: 1,
        }
    }

    /// Changes the height of the frame.
    pub(crate) fn tall(mut self, height: f64) -> Chart {
        self.frame[3] = self.frame[1] + height;
        self
    }

    /// Adds a curve.
    pub(crate) fn curve(&mut self, label: &str, class: &str, source: Source) {
        let (label, class) = (label.to_string(), class.to_string());
        self.curves.push(Curve { label, class, source, optional: false });
    }

    /// Adds a level with which curves are compared, if it is known.
    pub(crate) fn level(&mut self, label: &str, values: Vec<f64>) {
        if values.iter().any(|value| *value > 0.0) {
            let label = label.to_string();
            self.references.push(Reference { label, values, upright: false, named: false });
        }
    }

    /// Makes room for the legend; call this last.
    pub(crate) fn finished(mut self) -> Chart {
        self.size[1] = self.frame[3] + svg::BELOW + svg::legend_height(&self);
        self
    }
}

impl Reference {
    /// Returns the value for a selected flow; `None` if unknown.
    fn value(&self, picked: usize) -> Option<f64> {
        let one = if self.values.len() > 1 { picked } else { 0 };
        self.values.get(one).copied().filter(|value| *value > 0.0)
    }
}

impl Horizontal {
    /// Returns a time axis in seconds between two instants in nanoseconds.
    pub(crate) fn time(from_ns: u64, to_ns: u64) -> Horizontal {
        let whole = [from_ns as f64 / 1e9, to_ns.max(from_ns + 1) as f64 / 1e9];
        Horizontal { whole, divisor: 1e9, unit: "s", title: "time" }
    }
}

impl Vertical {
    /// Returns an axis whose unit suits the largest value.
    pub(crate) fn of(title: &str, kind: Kind, largest: f64) -> Vertical {
        let Scale { divisor, unit } = kind.scale(largest);
        let from_zero = kind != Kind::Time;
        Vertical { divisor, unit, title: title.to_string(), from_zero }
    }
}
