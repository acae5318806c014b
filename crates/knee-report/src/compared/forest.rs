//! Shows how many times better or worse each side is than the first, measure by measure: a dot with
//! its interval on a logarithmic axis, oriented so that better is always on the right.

use crate::drawing::{Axis, Drawing, WIDTH};
use crate::ratio_scale::ratio_scale;
use knee_record::{Better, MeasureCompared, PairedScale, SideAgainst};

/// Height of a measure's title and of a row below it, the gap after it, and the margin at the top.
const TITLE: f64 = 20.0;
const ROW: f64 = 18.0;
const APART: f64 = 8.0;
const TOP: f64 = 22.0;
/// Width of a letter, and the largest width of names.
const LETTER: f64 = 6.7;
const NAMES_MAX: f64 = 220.0;
/// Width of the text on the right.
const WORDS: f64 = 296.0;
/// Largest number of rows drawn; the table has all.
const ROWS_MAX: usize = 40;

/// How many times better: estimate and ends of the interval.
struct Gain {
    estimate: f64,
    ends: [f64; 2],
}

/// Returns the drawing for a page, or for a narrow screen with the text above each row. `None` if
/// no measure has a ratio.
pub(super) fn drawing(
    names: &[String],
    measures: &[&MeasureCompared],
    narrow: bool,
) -> Option<Drawing> {
    let gains = measures.iter().flat_map(|one| one.against.iter().flatten().map(|a| gain(one, a)));
    let farthest = gains.flatten().flat_map(|gain| [gain.estimate, gain.ends[0], gain.ends[1]]);
    let farthest = farthest.map(|value| value.max(1.0 / value)).reduce(f64::max)?;
    let (end, marks) = ratio_scale(farthest, 1.06);
    let plan = Plan::new(names, measures, narrow, end);
    let mut drawing = Drawing::sized(
        plan.width,
        plan.bottom + 42.0,
        "each against the first, measure by measure: better to the right",
    );
    plan.frame(&mut drawing, &marks);
    let mut y = TOP;
    for one in &plan.shown {
        y = plan.add(&mut drawing, one, y);
    }
    Some(drawing)
}

/// The layout of the drawing.
struct Plan<'p> {
    names: &'p [String],
    /// Whether groups are named, because there are several.
    grouped: bool,
    shown: Vec<&'p MeasureCompared>,
    narrow: bool,
    width: f64,
    row: f64,
    left: f64,
    right: f64,
    bottom: f64,
    axis: Axis,
}

impl<'p> Plan<'p> {
    fn new(
        names: &'p [String],
        measures: &[&'p MeasureCompared],
        narrow: bool,
        end: f64,
    ) -> Plan<'p> {
        let rows = names.len().saturating_sub(1).max(1);
        let shown: Vec<&MeasureCompared> =
            measures.iter().copied().take((ROWS_MAX / rows).max(1)).collect();
        let longest = names.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0);
        let (width, row) = if narrow { (400.0, 2.0 * ROW) } else { (WIDTH, ROW) };
        let left = if narrow { 12.0 } else { 24.0 + (LETTER * longest as f64).min(NAMES_MAX) };
        let right = if narrow { width - 12.0 } else { width - WORDS };
        let body = shown.len() as f64 * (TITLE + APART + row * rows as f64);
        let bottom = TOP + body;
        let axis =
            Axis { low: 1.0 / end, high: end, decades: true, ..Axis::from_zero(end, left, right) };
        let grouped = shown.iter().any(|one| one.group != shown[0].group);
        Plan { names, grouped, shown, narrow, width, row, left, right, bottom, axis }
    }

    fn frame(&self, drawing: &mut Drawing, marks: &[f64]) {
        let (axis, bottom) = (&self.axis, self.bottom);
        for mark in marks {
            for (value, name) in [(*mark, format!("× {mark}")), (1.0 / mark, format!("÷ {mark}"))]
            {
                drawing.line("grid", &[(axis.at(value), TOP - 4.0), (axis.at(value), bottom)]);
                drawing.words("quiet", "middle", (axis.at(value), bottom + 15.0), name);
            }
        }
        drawing.line("edge", &[(axis.at(1.0), TOP - 4.0), (axis.at(1.0), bottom)]);
        drawing.words("quiet", "middle", (axis.at(1.0), bottom + 15.0), "1");
        drawing.words("quiet", "start", (self.left, bottom + 34.0), "← worse");
        drawing.words("quiet", "end", (self.right, bottom + 34.0), "better →");
    }

    /// Draws a measure; returns the place where the next begins.
    fn add(&self, drawing: &mut Drawing, one: &MeasureCompared, top: f64) -> f64 {
        let group = if one.group == "*" { "all flows" } else { &one.group };
        let title = match self.grouped {
            true => format!("{}, {group}", one.measure.title),
            false => one.measure.title.clone(),
        };
        drawing.words("name front", "start", (4.0, top + 13.0), title);
        for (at, against) in one.against.iter().enumerate().skip(1) {
            let y = top + TITLE + self.row * (at as f64 - 0.5);
            self.add_row(drawing, one, (at, against.as_ref()), y);
        }
        top + TITLE + self.row * (one.against.len() as f64 - 1.0) + APART
    }

    fn add_row(
        &self,
        drawing: &mut Drawing,
        one: &MeasureCompared,
        (at, against): (usize, Option<&SideAgainst>),
        y: f64,
    ) {
        let name = &self.names[at];
        let said = against.map_or_else(
            || "no value".to_string(),
            |against| format!("{}, {}", against.size(one.measure.unit), against.word),
        );
        let y = match self.narrow {
            true => {
                drawing.words("name quiet", "start", (12.0, y - 2.0), format!("{name}: {said}"));
                y + ROW - 6.0
            }
            false => {
                let letters = ((self.left - 24.0) / LETTER) as usize + 1;
                let mut short: String = name.chars().take(letters).collect();
                if short.len() < name.len() {
                    short.push('…');
                }
                drawing.words("quiet", "end", (self.left - 10.0, y + 4.0), short);
                drawing.words("quiet", "start", (self.right + 14.0, y + 4.0), said.clone());
                y
            }
        };
        let Some(gain) = against.and_then(|against| gain(one, against)) else { return };
        let ends = gain.ends.map(|end| (self.axis.at(end), y));
        drawing.line(format!("curve c{}", at % 8), &ends);
        let title = format!("{name}, {}: {said}", one.measure.title);
        drawing.dot(format!("k{}", at % 8), self.axis.at(gain.estimate), y, title);
    }
}

/// Returns how much better the side is, or `None` if the comparison has no ratio.
fn gain(one: &MeasureCompared, against: &SideAgainst) -> Option<Gain> {
    let compared = &against.compared;
    let turned = |value: f64| match one.measure.better {
        Better::More => value,
        Better::Less => 1.0 / value,
    };
    let is_good = |value: &f64| *value > 0.0 && value.is_finite();
    let estimate = compared.estimate.filter(is_good)?;
    let end = |value: Option<f64>| turned(value.filter(is_good).unwrap_or(estimate));
    let ends = [end(compared.low), end(compared.high)];
    (compared.scale == PairedScale::Ratio).then(|| Gain { estimate: turned(estimate), ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All values and marks lie within the axis.
    #[test]
    fn the_axis_holds_all_its_values() {
        for farthest in [1.0, 1.05, 1.24, 2.0, 5.0, 11.0, 13.0, 100.0, 4e3, 1e6] {
            let (end, marks) = ratio_scale(farthest, 1.06);
            assert!(end >= farthest, "{farthest}: {end}");
            assert!(!marks.is_empty() && marks.len() < 6, "{farthest}: {marks:?}");
            assert!(marks.iter().all(|mark| *mark > 1.0 && *mark <= end), "{farthest}: {marks:?}");
        }
    }
}
