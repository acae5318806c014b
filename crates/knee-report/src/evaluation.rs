//! The page of an evaluation: one line for every criterion, then a part for each section of RFC
//! 9743 with its requirement, a picture, all values, the cases run, and the case in which the
//! candidate does worst.

mod picture;

use crate::ReportError;
use crate::chart::style;
use crate::page::environment;
use crate::words;
use knee_present::words::{NONE, listed};
use knee_record::{
    Better, Evaluation, EvaluationAgainst, EvaluationOutcome, EvaluationPlan, Interval, Judgement,
    Paired, PairedScale, Unit, WorstFound,
};
use minijinja::Value;
use serde::Serialize;
use std::collections::BTreeSet;

const TEMPLATE: &str = include_str!("../assets/evaluation.html");
const STYLE: &str = include_str!("../assets/report.css");
const OWN_STYLE: &str = include_str!("../assets/evaluation.css");

/// A section on the page.
#[derive(Serialize)]
struct Section {
    number: String,
    anchor: String,
    title: String,
    asks: String,
    lines: Vec<Line>,
    drawing: Option<Value>,
    cases: Vec<String>,
    /// What is missing, and why.
    not_tried: Vec<[String; 2]>,
}

/// A criterion.
#[derive(Serialize)]
struct Line {
    title: String,
    worse_than_all: bool,
    why_not: Option<String>,
    cells: Vec<Cell>,
    /// Values of the candidate and the standards.
    values: Vec<String>,
    worst: Option<Worst>,
}

/// Comparison with one standard.
#[derive(Serialize)]
struct Cell {
    standard: String,
    /// Result in words.
    word: String,
    /// Class in the style sheet; empty without a result.
    class: String,
    size: String,
}

#[derive(Serialize)]
struct Worst {
    case: String,
    ratio: String,
    command: String,
}

/// A worst case found by a search.
#[derive(Serialize)]
struct Found {
    title: String,
    case: String,
    /// Values of the candidate and the standards.
    values: Vec<String>,
    ratio: String,
    fixed: String,
    command: String,
}

fn found(one: &WorstFound) -> Found {
    let ratio = |ratio: Option<f64>| {
        ratio.map_or_else(|| NONE.to_string(), |ratio| format!("× {}", evaluation_figures(ratio)))
    };
    let values = one.candidate.iter().chain(&one.standards);
    Found {
        title: one.title.clone(),
        case: one.case.clone(),
        values: values.map(|value| one.unit.show(*value)).collect(),
        ratio: ratio(one.ratio),
        fixed: ratio(one.fixed_ratio),
        command: match one.scenario.is_empty() {
            true => "could not be tried".to_string(),
            false => format!("knee run {}", one.scenario),
        },
    }
}

/// Returns the page of an evaluation as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn evaluation_page(evaluation: &Evaluation) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("evaluation.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), OWN_STYLE].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("evaluation.json"),
    };
    let plan = Value::from_serialize(&evaluation.plan);
    let (sections, finished) = (sections(evaluation), evaluation.runs_finished);
    let others = listed(&evaluation.plan.standards);
    let worse = worse_than_all(evaluation);
    let says = evaluation_says(evaluation);
    let seeds = evaluation_seeds(evaluation);
    let picture = evaluation.worst_lines().first().and_then(|line| {
        let drawing = picture::drawing(&line.line.section_title, &[line])?;
        Some(Value::from_safe_string(drawing.inline()))
    });
    let searched: Vec<Found> = evaluation.searched.iter().map(found).collect();
    let names: Vec<&String> =
        std::iter::once(&evaluation.plan.candidate).chain(&evaluation.plan.standards).collect();
    let template = environment.get_template("evaluation.html")?;
    let context = minijinja::context! { plan, sections, finished, others, seeds, names, says, picture, worse, searched, assets };
    Ok(template.render(context)?)
}

/// Returns the number of seeds in words: `5 seeds (10 where 5 would call it worse than all)`.
pub fn evaluation_seeds(evaluation: &Evaluation) -> String {
    let seeds = evaluation.plan.repeats;
    match evaluation.lines.iter().map(|line| line.seeds.len()).max() {
        Some(most) if most as u64 > seeds => {
            format!("{seeds} seeds ({most} where {seeds} would call it worse than all)")
        }
        _ => format!("{seeds} seeds"),
    }
}

/// Formats a ratio with three digits.
pub fn evaluation_figures(ratio: f64) -> String {
    match ratio {
        value if value.abs() >= 99.5 => format!("{value:.0}"),
        value if value.abs() >= 9.95 => format!("{value:.1}"),
        value if value.abs() >= 0.095 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// Formats a ratio with its interval, three digits each, `× 1.07 (1.04 to 1.09)`; a difference, for
/// which a value was zero, in the unit of the line: `+7.5 s (2.1 s to 12.9 s)`. Empty if there is
/// neither.
pub fn evaluation_size(unit: Unit, ratio: &Paired) -> String {
    let Some(estimate) = ratio.estimate else { return String::new() };
    let is_ratio = ratio.scale == PairedScale::Ratio;
    let show = |value: f64| if is_ratio { evaluation_figures(value) } else { unit.show(value) };
    let estimate = match is_ratio {
        true => format!("× {}", show(estimate)),
        false if estimate > 0.0 => format!("+{}", show(estimate)),
        false => show(estimate),
    };
    let Some((low, high)) = ratio.low.zip(ratio.high).filter(|(low, high)| low != high) else {
        return estimate;
    };
    let ends = [low, high].map(|end| if is_ratio { beside_one(end) } else { show(end) });
    match ends.iter().all(|end| estimate == format!("× {end}")) {
        true => estimate,
        false => format!("{estimate} ({} to {})", ends[0], ends[1]),
    }
}

/// Formats the end of a ratio's interval; one that excludes 1 does not read as 1, and one that says
/// nothing takes no room.
fn beside_one(end: f64) -> String {
    if end > 10_000.0 {
        return "over 10000".to_string();
    }
    let shown = evaluation_figures(end);
    let more = (3..7).map(|digits| format!("{end:.digits$}"));
    let is_one = |shown: &str| shown.parse() == Ok(1.0) && (end - 1.0).abs() > 1e-6;
    match is_one(&shown) {
        true => more.into_iter().find(|shown| !is_one(shown)).unwrap_or(shown),
        false => shown,
    }
}

/// Returns how the candidate compares with a standard in a line, in words.
pub fn evaluation_word(line: &EvaluationOutcome, one: &EvaluationAgainst) -> String {
    match (&line.could_not_be_tried, one.word, &line.line.within) {
        (Some(_), ..) => "could not be tried".to_string(),
        (None, Some(Judgement::Alike | Judgement::Better), Some(within)) => within.clone(),
        (None, Some(word), _) => word.to_string(),
        (None, None, _) => "no value".to_string(),
    }
}

/// Says what is worst about the candidate: the line in which it is farthest behind all standards,
/// by how much, and in which case.
pub fn evaluation_says(evaluation: &Evaluation) -> String {
    let plan = &evaluation.plan;
    let candidate = &plan.candidate;
    let worst = evaluation.worst_lines();
    let failed = evaluation.lines.iter().filter(|line| line.could_not_be_tried.is_some()).count();
    let lines = evaluation.lines.len();
    let untried = match failed {
        0 => String::new(),
        1 => format!(" 1 of {lines} lines could not be tried."),
        failed => format!(" {failed} of {lines} lines could not be tried."),
    };
    let others: Vec<String> =
        plan.standards.iter().filter(|name| *name != candidate).cloned().collect();
    let all = match others.as_slice() {
        [only] => only.clone(),
        [one, other] => format!("both {one} and {other}"),
        several => format!("all of {}", listed(several)),
    };
    let Some(first) = worst.first() else {
        let none = match lines - failed {
            0 => return format!("{candidate} could not be tried."),
            1 => "The one line does not show".to_string(),
            tried => format!("None of {tried} lines shows"),
        };
        return format!("{none} {candidate} worse than {all}.{untried}");
    };
    let more = match worst.len() - 1 {
        0 => String::new(),
        1 => format!(" 1 more line is worse than {all}."),
        more => format!(" {more} more lines are worse than {all}."),
    };
    let (section, title) = (&first.line.section, &first.line.title);
    let size = evaluation_worst(evaluation, first);
    let case = first.worst.as_ref();
    let case = case.map_or_else(String::new, |worst| format!(", most in \"{}\"", worst.case));
    format!("{candidate} is worst in {section}, {title}: {size}{case}.{more}{untried}")
}

/// Says how much worse than the standard next to it the candidate is in a line: `11.4 times reno's
/// (2.1 Mbit/s against 184 kbit/s)`.
pub fn evaluation_worst(evaluation: &Evaluation, line: &EvaluationOutcome) -> String {
    let standards = &evaluation.plan.standards;
    let Some((harm, at)) = line.worse_than_next() else {
        return "worse than all".to_string();
    };
    let standard = &standards[at];
    let size = match (line.line.better, harm) {
        (Better::Less, harm) => format!("{} times {standard}'s", evaluation_figures(harm)),
        (Better::More, harm) if harm >= 10.0 => {
            format!("1/{} of {standard}'s", evaluation_figures(harm.round()))
        }
        (Better::More, harm) => format!("{:.0} % of {standard}'s", 100.0 / harm),
    };
    let mean = |values: Vec<f64>| {
        (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
    };
    let both = line.seeds.iter().filter_map(|seed| seed.candidate.zip(seed.standards[at]));
    let (own, theirs): (Vec<f64>, Vec<f64>) = both.unzip();
    let (unit, floor) = (line.line.unit, line.line.floor);
    let with = [mean(own), mean(theirs)];
    let without = with.map(|value| (value - floor).max(0.0));
    // Readers divide: where that does not give the ratio, the floor is named.
    let differs = ((without[0] / without[1]) / (with[0] / with[1])).ln().abs();
    let floor = match differs < 0.02 {
        true => String::new(),
        false => format!(", {} added to both", unit.show(floor)),
    };
    format!("{size} ({} against {}{floor})", unit.show(without[0]), unit.show(without[1]))
}

/// Returns the values of a line, of the candidate and of each standard: the mean over the seeds of
/// geometric means over the cases, with its 95 % interval.
pub fn evaluation_values(line: &EvaluationOutcome) -> Vec<String> {
    let of = |values: Vec<f64>| {
        let Some(interval) = Interval::new(&values) else { return NONE.to_string() };
        let show = |value: f64| line.line.unit.show((value - line.line.floor).max(0.0));
        let mean = show(interval.mean);
        match interval.low.zip(interval.high).map(|(low, high)| (show(low), show(high))) {
            Some((low, high)) if low != mean || high != mean => format!("{mean} ({low} to {high})"),
            _ => mean,
        }
    };
    let candidate = line.seeds.iter().filter_map(|seed| seed.candidate).collect();
    let standard =
        |at: usize| line.seeds.iter().filter_map(move |seed| *seed.standards.get(at)?).collect();
    std::iter::once(of(candidate)).chain((0..line.against.len()).map(standard).map(of)).collect()
}

/// Returns the cases of a section's lines, each once, in order of first use.
pub fn evaluation_cases(evaluation: &Evaluation, section: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let cases = of_section(evaluation, section).flat_map(|line| &line.line.cases);
    cases.filter(|case| seen.insert(*case)).cloned().collect()
}

fn of_section<'e>(
    evaluation: &'e Evaluation,
    section: &'e str,
) -> impl Iterator<Item = &'e EvaluationOutcome> {
    evaluation.lines.iter().filter(move |line| line.line.section == section)
}

fn sections(evaluation: &Evaluation) -> Vec<Section> {
    let plan = &evaluation.plan;
    let missing = |number: &str| {
        let own = plan.not_tried.iter().filter(|one| one.section == number);
        own.map(|one| [one.what.clone(), one.why.clone()]).collect::<Vec<_>>()
    };
    let mut all: Vec<Section> = plan
        .asks
        .iter()
        .map(|asks| {
            let lines: Vec<&EvaluationOutcome> = of_section(evaluation, &asks.section).collect();
            let drawing = picture::drawing(&asks.title, &lines);
            Section {
                number: asks.section.clone(),
                anchor: evaluation_anchor(&asks.section),
                title: asks.title.clone(),
                asks: asks.asks.clone(),
                drawing: drawing.map(|drawing| Value::from_safe_string(drawing.inline())),
                lines: lines.into_iter().map(|one| line(plan, one)).collect(),
                cases: evaluation_cases(evaluation, &asks.section),
                not_tried: missing(&asks.section),
            }
        })
        .collect();
    for one in &plan.not_tried {
        if all.iter().any(|section| section.number == one.section) {
            continue;
        }
        all.push(Section {
            number: one.section.clone(),
            anchor: evaluation_anchor(&one.section),
            title: String::new(),
            asks: String::new(),
            lines: Vec::new(),
            drawing: None,
            cases: Vec::new(),
            not_tried: missing(&one.section),
        });
    }
    all.sort_by_key(|section| evaluation_order(&section.number));
    all
}

/// Returns a key by which sections are ordered as in the RFC; others come last.
pub fn evaluation_order(number: &str) -> Vec<u32> {
    number.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// Returns the part of the page on a section: its link without the page's name.
pub fn evaluation_anchor(section: &str) -> String {
    format!("s-{}", words::slug(section))
}

fn line(plan: &EvaluationPlan, outcome: &EvaluationOutcome) -> Line {
    let worst = outcome.worst.as_ref().filter(|worst| !worst.scenario.is_empty());
    Line {
        title: outcome.line.title.clone(),
        worse_than_all: outcome.worse_than_all,
        why_not: outcome.could_not_be_tried.clone(),
        cells: outcome.against.iter().map(|one| cell(outcome, one)).collect(),
        values: evaluation_values(outcome),
        worst: worst.map(|worst| Worst {
            case: worst.case.clone(),
            ratio: evaluation_figures(worst.ratio),
            command: plan.run_command(&worst.scenario),
        }),
    }
}

fn cell(outcome: &EvaluationOutcome, one: &EvaluationAgainst) -> Cell {
    let tried = outcome.could_not_be_tried.is_none();
    let ratio = one.ratio.as_ref().filter(|_| tried && one.word.is_some());
    Cell {
        standard: one.standard.clone(),
        word: evaluation_word(outcome, one),
        class: one.word.filter(|_| tried).map_or_else(String::new, |word| word.to_string()),
        size: ratio.map_or_else(String::new, |ratio| evaluation_size(outcome.line.unit, ratio)),
    }
}

/// A line in which the candidate is worse than every standard.
#[derive(Serialize)]
struct WorseThanAll {
    anchor: String,
    name: String,
    size: String,
    case: String,
    command: String,
}

/// Returns the lines in which the candidate is worse than every standard, the worst first.
fn worse_than_all(evaluation: &Evaluation) -> Vec<WorseThanAll> {
    let all = evaluation.worst_lines().into_iter();
    all.map(|line| WorseThanAll {
        anchor: evaluation_anchor(&line.line.section),
        name: format!("{} {}", line.line.section, line.line.title),
        size: evaluation_worst(evaluation, line),
        case: line.worst.as_ref().map_or_else(String::new, |worst| worst.case.clone()),
        command: line
            .worst
            .as_ref()
            .map_or_else(String::new, |worst| evaluation.plan.run_command(&worst.scenario)),
    })
    .collect()
}

/// Returns whether the candidate is worse, for drawing.
fn is_worse(one: &EvaluationAgainst) -> bool {
    one.word == Some(Judgement::Worse)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A difference has its unit, and an interval that excludes 1 does not read as if it did not.
    #[test]
    fn figures_have_their_unit_and_agree_with_the_word() {
        let of =
            |pairs: &[(f64, f64)]| evaluation_size(Unit::Seconds, &Paired::new(pairs).unwrap());
        assert_eq!(of(&[(7.0, 0.0), (8.0, 0.0)]), "+7.5 s (1.15 s to 13.9 s)");
        assert_eq!(of(&[(2.0, 1.0), (2.0, 1.0)]), "× 2.00");
        let mut close = Paired::new(&[(1.12, 1.0), (1.10, 1.0), (1.14, 1.0)]).unwrap();
        close.low = Some(1.0004);
        assert!(evaluation_size(Unit::Seconds, &close).contains("(1.0004 to"));
        // Two seeds that differ widely.
        assert!(of(&[(0.1, 1.0), (1.0, 0.01)]).ends_with("(0.000 to over 10000)"));
    }

    /// Sorted by number, not alphabetically.
    #[test]
    fn sections_stand_in_the_order_of_the_rfc() {
        let mut numbers = ["safecc", "7.10", "7.2", "5.2.1", "5.1.5", "7.9"];
        numbers.sort_by_key(|number| evaluation_order(number));
        assert_eq!(numbers, ["5.1.5", "5.2.1", "7.2", "7.9", "7.10", "safecc"]);
    }
}
