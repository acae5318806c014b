//! The page of `knee advise`: how much faster each candidate would be, for which part of the
//! traffic, at which cost.

use crate::ReportError;
use crate::chart::style;
use crate::drawing::{Axis, Drawing, WIDTH};
use crate::fitted::Fitted;
use crate::page::{CHART_SCRIPT, SCRIPT, STYLE, environment};
use crate::ratio_scale::ratio_scale;
use knee_present::Table;
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/advice.html");
const OWN_STYLE: &str = include_str!("../assets/rank.css");
/// Height of a row, of a row with its text above it, and of the margin at the top.
const ROW: f64 = 22.0;
const NARROW_ROW: f64 = 42.0;
const TOP: f64 = 22.0;
/// Width of the text on either side.
const NAMES: f64 = 270.0;
const WORDS: f64 = 200.0;
/// Room of a mark's name.
const MARK: f64 = 38.0;
/// Largest number of letters of a name.
const LETTERS: usize = 38;
/// Largest number of rows drawn; the table has all.
const ROWS_MAX: usize = 40;

/// Input of the page.
#[derive(Clone, Debug)]
pub struct AdvicePage<'a> {
    /// Sentences with the order of the experiments worth making.
    pub says: &'a [String],
    /// One row for each group, class of sizes and candidate.
    pub rows: &'a [AdviceRow],
    /// The path that explains each group best.
    pub paths: Table,
    /// The policy of these experiments.
    pub policy: Option<&'a str>,
    /// Command that repeats the advice.
    pub command: &'a str,
}

/// What is expected of a candidate for a part of the traffic.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceRow {
    /// The group of connections.
    pub group: String,
    /// The sizes of the objects.
    pub objects: &'static str,
    /// The controller in use.
    pub in_use: String,
    /// The candidate.
    pub candidate: String,
    /// The advice in a few words.
    pub advice: String,
    /// The advice as a class.
    pub word: AdviceWord,
    /// Speed under the candidate over that under the controller in use, and its 80 % interval.
    pub speed: Option<[f64; 3]>,
    /// The same in words.
    pub change: String,
    /// Retransmitted part of the payload under both, in words.
    pub retransmitted: String,
    /// Answer of the rule of thumb; empty without one.
    pub rule_of_thumb: &'static str,
    /// Answer of the rule of an operator; empty without one.
    pub operators_rule: &'static str,
    /// Part of the group's bytes, in words.
    pub bytes: String,
}

/// Kind of an advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdviceWord {
    /// To try the candidate.
    Try,
    /// To keep what is in use.
    Keep,
    /// Neither.
    Unclear,
}

/// Returns the page as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn advice_page(page: &AdvicePage<'_>) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("advice.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), OWN_STYLE].join("\n")),
        script => Value::from_safe_string([CHART_SCRIPT, SCRIPT].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
    };
    let (first, then) = page.says.split_first().map_or(("", page.says), |(a, b)| (a.as_str(), b));
    let context = minijinja::context! {
        assets, first, then,
        rows => page.rows,
        paths => page.paths,
        policy => page.policy,
        command => page.command,
        speeds => Fitted::new(|narrow| drawing(page.rows, narrow)),
    };
    Ok(environment.get_template("advice.html")?.render(context)?)
}

/// Draws the expected speeds: a dot with its interval on a logarithmic axis. `None` if no row has
/// one.
fn drawing(rows: &[AdviceRow], narrow: bool) -> Option<Drawing> {
    let shown: Vec<(&AdviceRow, [f64; 3])> =
        rows.iter().filter_map(|row| Some((row, row.speed?))).take(ROWS_MAX).collect();
    let farthest = shown.iter().flat_map(|(_, speed)| *speed).map(|speed| speed.max(1.0 / speed));
    let (end, marks) = ratio_scale(farthest.reduce(f64::max)?, 1.06);
    let (width, row) = if narrow { (400.0, NARROW_ROW) } else { (WIDTH, ROW) };
    let (left, right) = if narrow { (12.0, width - 12.0) } else { (NAMES, width - WORDS) };
    let bottom = TOP + row * shown.len() as f64;
    let axis =
        Axis { low: 1.0 / end, high: end, decades: true, ..Axis::from_zero(end, left, right) };
    let label = "expected speed of each candidate over the controller in use: faster to the right";
    let mut drawing = Drawing::sized(width, bottom + 42.0, label);
    // From the outermost mark inwards, as far as their names have room.
    let mut room = f64::INFINITY;
    for mark in marks.into_iter().rev() {
        let at = axis.at(mark);
        let is_named = room - at >= MARK && at - axis.at(1.0) >= MARK;
        for (value, name) in [(mark, format!("× {mark}")), (1.0 / mark, format!("÷ {mark}"))] {
            drawing.line("grid", &[(axis.at(value), TOP - 4.0), (axis.at(value), bottom)]);
            if is_named {
                drawing.words("quiet", "middle", (axis.at(value), bottom + 15.0), name);
            }
        }
        room = if is_named { at } else { room };
    }
    drawing.line("edge", &[(axis.at(1.0), TOP - 4.0), (axis.at(1.0), bottom)]);
    drawing.words("quiet", "middle", (axis.at(1.0), bottom + 15.0), "1");
    drawing.words("quiet", "start", (left, bottom + 34.0), "← slower");
    drawing.words("quiet", "end", (right, bottom + 34.0), "faster →");
    for (at, (one, speed)) in shown.iter().enumerate() {
        let top = TOP + row * at as f64;
        let name = format!("{}, {}: {}", one.group, one.objects, one.candidate);
        let said = format!("{}, {}", one.change, one.advice);
        let y = if narrow {
            drawing.words("quiet", "start", (12.0, top + 12.0), shortened(&name, LETTERS + 14));
            drawing.words("quiet", "end", (right, top + 26.0), one.advice.clone());
            top + NARROW_ROW - 10.0
        } else {
            let y = top + ROW / 2.0;
            drawing.words("quiet", "end", (left - 10.0, y + 4.0), shortened(&name, LETTERS));
            drawing.words("quiet", "start", (right + 14.0, y + 4.0), said.clone());
            y
        };
        // The palette's first three colours.
        let colour = match one.word {
            AdviceWord::Try => 2,
            AdviceWord::Keep => 1,
            AdviceWord::Unclear => 0,
        };
        let ends = [speed[1], speed[2]].map(|end| (axis.at(end), y));
        drawing.line(format!("curve c{colour}"), &ends);
        drawing.dot(format!("k{colour}"), axis.at(speed[0]), y, format!("{name}: {said}"));
    }
    Some(drawing)
}

/// The end of a name, which tells rows apart, if it is too long.
fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_string();
    }
    std::iter::once('…').chain(name.chars().skip(count - letters)).collect()
}
