//! The picture of a section: for each line and standard a dot for the candidate's value over the
//! standard's, with its interval, on a logarithmic axis oriented so that worse is always on the
//! right.

use super::{evaluation_size, evaluation_word, is_worse};
use crate::drawing::{Axis, Drawing, WIDTH};
use crate::ratio_scale::ratio_scale;
use knee_record::{Better, EvaluationAgainst, EvaluationOutcome, PairedScale};

/// Height of a line's title and of a row below it, the gap after it, and the margins.
const TITLE: f64 = 20.0;
const ROW: f64 = 18.0;
const APART: f64 = 8.0;
const TOP: f64 = 22.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 214.0;

/// How many times worse: estimate and ends of the interval.
struct Harm {
    estimate: f64,
    ends: [f64; 2],
}

/// Where the interval of two seeds ends in the picture, which may say nothing at all.
const FAR: f64 = 1000.0;

/// Draws the picture, or returns `None` if no line has a ratio.
pub(super) fn drawing(section: &str, lines: &[&EvaluationOutcome]) -> Option<Drawing> {
    let harms = lines.iter().flat_map(|line| line.against.iter().map(|one| harm(line, one)));
    let farthest = harms.flatten().flat_map(|harm| [harm.estimate, harm.ends[0], harm.ends[1]]);
    let farthest = farthest.map(|value| value.max(1.0 / value)).reduce(f64::max)?;
    let (end, marks) = ratio_scale(farthest, 1.25);
    let rows: usize = lines.iter().map(|line| line.against.len()).sum();
    let body = lines.len() as f64 * (TITLE + APART) + rows as f64 * ROW;
    let bottom = TOP + body;
    let label = format!("{section}: the candidate against each standard, worse to the right");
    let mut drawing = Drawing::new(bottom + 42.0, &label);
    let axis =
        Axis { low: 1.0 / end, high: end, decades: true, ..Axis::from_zero(end, LEFT, RIGHT) };
    frame(&mut drawing, &axis, &marks, bottom);
    let mut y = TOP;
    for line in lines {
        y = add(&mut drawing, &axis, line, y);
    }
    Some(drawing)
}

fn frame(drawing: &mut Drawing, axis: &Axis, marks: &[f64], bottom: f64) {
    for mark in marks {
        for (value, name) in [(*mark, format!("× {mark}")), (1.0 / mark, format!("÷ {mark}"))] {
            drawing.line("grid", &[(axis.at(value), TOP - 4.0), (axis.at(value), bottom)]);
            drawing.words("quiet", "middle", (axis.at(value), bottom + 15.0), name);
        }
    }
    drawing.line("edge", &[(axis.at(1.0), TOP - 4.0), (axis.at(1.0), bottom)]);
    drawing.words("quiet", "middle", (axis.at(1.0), bottom + 15.0), "1");
    drawing.words("quiet", "start", (LEFT, bottom + 34.0), "← candidate better");
    drawing.words("quiet", "end", (RIGHT, bottom + 34.0), "candidate worse →");
}

/// Draws a line of the section; returns the place where the next begins.
fn add(drawing: &mut Drawing, axis: &Axis, line: &EvaluationOutcome, top: f64) -> f64 {
    let rows = line.against.len() as f64;
    drawing.words("front", "start", (4.0, top + 13.0), line.line.title.clone());
    let margin = 1.0 + line.line.alike;
    let (above, below) = (top + TITLE - 2.0, top + TITLE + rows * ROW);
    let within = line.line.within.as_deref().unwrap_or("alike");
    let within = format!("{within}: within {:.0} %", line.line.alike * 100.0);
    drawing.bar("margin", [axis.at(1.0 / margin), above, axis.at(margin), below], within);
    for (at, one) in line.against.iter().enumerate() {
        let y = top + TITLE + ROW * (at as f64 + 0.5);
        row(drawing, axis, line, (at, one), y);
    }
    below + APART
}

fn row(
    drawing: &mut Drawing,
    axis: &Axis,
    line: &EvaluationOutcome,
    (at, one): (usize, &EvaluationAgainst),
    y: f64,
) {
    drawing.words("quiet", "end", (LEFT - 10.0, y + 4.0), one.standard.clone());
    let tried = one.word.is_some() && line.could_not_be_tried.is_none();
    let size = one.ratio.as_ref().filter(|_| tried);
    let size = size
        .map_or_else(String::new, |ratio| format!(" {}", evaluation_size(line.line.unit, ratio)));
    let said = evaluation_word(line, one) + &size;
    let class = if is_worse(one) { "bad" } else { "quiet" };
    drawing.words(class, "start", (RIGHT + 14.0, y + 4.0), said.clone());
    let Some(harm) = harm(line, one) else { return };
    let ends = harm.ends.map(|end| (axis.at(end), y));
    drawing.line(format!("c{}", at + 1), &ends);
    let title = format!("{} against {}: {said}", line.line.title, one.standard);
    drawing.dot(format!("k{}", at + 1), axis.at(harm.estimate), y, title);
}

/// Returns the harm against a standard, or `None` if there is no ratio or the case could not be
/// tried.
fn harm(line: &EvaluationOutcome, one: &EvaluationAgainst) -> Option<Harm> {
    let ratio = one.ratio.as_ref().filter(|_| line.could_not_be_tried.is_none())?;
    let turned = |value: f64| match line.line.better {
        Better::Less => value,
        Better::More => 1.0 / value,
    };
    let estimate = ratio.estimate.filter(|value| *value > 0.0 && value.is_finite())?;
    let end = |value: Option<f64>| {
        turned(value.filter(|value| *value > 0.0 && value.is_finite()).unwrap_or(estimate))
    };
    let ratios = ratio.scale == PairedScale::Ratio;
    let far = FAR.max(estimate).max(1.0 / estimate);
    let ends = [end(ratio.low), end(ratio.high)].map(|end| end.clamp(1.0 / far, far));
    ratios.then(|| Harm { estimate: turned(estimate), ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All values and marks lie within the axis.
    #[test]
    fn the_axis_holds_all_its_values() {
        for farthest in [1.0, 1.24, 2.0, 5.0, 11.0, 13.0, 100.0, 4e3, 1e6] {
            let (end, marks) = ratio_scale(farthest, 1.25);
            assert!(end >= farthest, "{farthest}: {end}");
            assert!(!marks.is_empty() && marks.len() < 6, "{farthest}: {marks:?}");
            assert!(marks.iter().all(|mark| *mark > 1.0 && *mark <= end), "{farthest}: {marks:?}");
        }
    }
}
