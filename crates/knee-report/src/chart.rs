//! Charts: curves, bands and areas over a common axis, with the values that
//! they were drawn from.
//!
//! A chart names its columns by their place in what the page embeds, such as
//! `flows.0.rtt_ns`. [`Chart::svg`] draws it here, once; `assets/chart.js` draws
//! a part of it again from the same columns and by the same rules, and a test in
//! Node compares the two. Nothing is ever drawn over the frame but curves: the
//! legend stands below.

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

/// A chart, ready to be drawn and to be embedded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// Name of the chart on its page.
    pub name: String,
    /// What it shows, for those who cannot see it.
    #[serde(skip)]
    pub label: String,
    /// Width and height of the whole, in its own units.
    pub size: [f64; 2],
    /// Left, top, right and bottom of the frame.
    pub frame: [f64; 4],
    /// The axis along the foot.
    pub x: Horizontal,
    /// The axis along the left.
    pub y: Vertical,
    /// Curves, in the order in which they are drawn.
    pub curves: Vec<Curve>,
    /// Values that the curves are compared with.
    pub references: Vec<Reference>,
    /// Columns of the spans that tints mark, by their place; empty: none.
    pub shade: String,
    /// Columns of the link whose drops are marked at the foot; empty: none.
    pub drops: String,
    /// Shortest time that a rate is taken over, nanoseconds.
    pub interval_ns: u64,
}

/// The axis along the foot.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Horizontal {
    /// Ends of the axis, in its unit.
    pub whole: [f64; 2],
    /// How many of a column's units one of the axis' is.
    pub divisor: f64,
    /// Unit of the labels.
    pub unit: &'static str,
    /// Title, without the unit.
    pub title: &'static str,
}

/// The axis along the left.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Vertical {
    /// How many of a column's units one of the axis' is.
    pub divisor: f64,
    /// Unit of the labels.
    pub unit: &'static str,
    /// Title, without the unit.
    pub title: String,
    /// Begins at zero, even where all values lie far above.
    pub from_zero: bool,
}

/// A curve, or a band around one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Curve {
    /// As the legend has it.
    pub label: String,
    /// Classes of the style sheet.
    pub class: String,
    /// Where its values are.
    pub source: Source,
    /// Not drawn, and not in the legend, until asked for.
    pub optional: bool,
}

/// Columns of a curve, by their place among what is embedded.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub(crate) enum Source {
    /// Values as they are.
    Gauge {
        /// Column of the axis along the foot.
        x: String,
        /// Column of the values.
        y: String,
        /// Zero is a value; otherwise it stands for "there was none".
        zero: bool,
    },
    /// How fast counters of bytes grow together, in bit/s.
    Rate {
        /// Columns of times and counters.
        of: Vec<[String; 2]>,
    },
    /// Median, and a band from a low to a high percentile.
    Band {
        /// Column of times.
        x: String,
        /// Lower edge, line and upper edge.
        y: [String; 3],
        /// As above.
        zero: bool,
    },
}

/// A value that curves are compared with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reference {
    /// As the legend has it.
    pub label: String,
    /// In the units of the columns, for each flow that can be picked; one for
    /// all. Zero: unknown, not drawn.
    pub values: Vec<f64>,
    /// Stands upright, at a place of the axis along the foot.
    pub upright: bool,
}

impl Chart {
    /// A chart without curves: `width` in its own units.
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

    /// Adds a level that curves are compared with, where it is known.
    pub(crate) fn level(&mut self, label: &str, values: Vec<f64>) {
        if values.iter().any(|value| *value > 0.0) {
            let label = label.to_string();
            self.references.push(Reference { label, values, upright: false });
        }
    }

    /// Makes room below for the legend; to be called last.
    pub(crate) fn finished(mut self) -> Chart {
        self.size[1] = self.frame[3] + svg::BELOW + svg::legend_height(&self);
        self
    }
}

impl Reference {
    /// The value for a flow that is picked; none: unknown.
    fn value(&self, picked: usize) -> Option<f64> {
        let one = if self.values.len() > 1 { picked } else { 0 };
        self.values.get(one).copied().filter(|value| *value > 0.0)
    }
}

impl Horizontal {
    /// Time in seconds between two instants in nanoseconds.
    pub(crate) fn time(from_ns: u64, to_ns: u64) -> Horizontal {
        let whole = [from_ns as f64 / 1e9, to_ns.max(from_ns + 1) as f64 / 1e9];
        Horizontal { whole, divisor: 1e9, unit: "s", title: "time" }
    }
}

impl Vertical {
    /// An axis whose unit fits the largest value.
    pub(crate) fn of(title: &str, kind: Kind, largest: f64) -> Vertical {
        let Scale { divisor, unit } = kind.scale(largest);
        let from_zero = kind != Kind::Time;
        Vertical { divisor, unit, title: title.to_string(), from_zero }
    }
}
