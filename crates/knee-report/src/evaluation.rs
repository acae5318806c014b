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
    Evaluation, EvaluationAgainst, EvaluationOutcome, EvaluationWord, Interval, Paired, WorstFound,
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
    /// Result; also a class in the style sheet.
    word: String,
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
    let searched: Vec<Found> = evaluation.searched.iter().map(found).collect();
    let names: Vec<&String> =
        std::iter::once(&evaluation.plan.candidate).chain(&evaluation.plan.standards).collect();
    let template = environment.get_template("evaluation.html")?;
    let context =
        minijinja::context! { plan, sections, finished, others, names, worse, searched, assets };
    Ok(template.render(context)?)
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

/// Formats a ratio with its interval, three digits each; empty if there is none.
pub fn evaluation_size(ratio: &Paired) -> String {
    match (ratio.estimate, ratio.low, ratio.high) {
        (Some(estimate), Some(low), Some(high)) if low != high => {
            let [estimate, low, high] = [estimate, low, high].map(evaluation_figures);
            match low == estimate && high == estimate {
                true => estimate,
                false => format!("{estimate} ({low} to {high})"),
            }
        }
        (Some(estimate), ..) => evaluation_figures(estimate),
        _ => String::new(),
    }
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
                anchor: anchor(&asks.section),
                title: asks.title.clone(),
                asks: asks.asks.clone(),
                drawing: drawing.map(|drawing| Value::from_safe_string(drawing.inline())),
                lines: lines.into_iter().map(line).collect(),
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
            anchor: anchor(&one.section),
            title: String::new(),
            asks: String::new(),
            lines: Vec::new(),
            drawing: None,
            cases: Vec::new(),
            not_tried: missing(&one.section),
        });
    }
    all.sort_by_key(|section| order(&section.number));
    all
}

/// Orders sections as in the RFC; other sections come last.
fn order(number: &str) -> Vec<u32> {
    number.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

fn anchor(section: &str) -> String {
    format!("s-{}", words::slug(section))
}

fn line(outcome: &EvaluationOutcome) -> Line {
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
            command: format!("knee run {}", worst.scenario),
        }),
    }
}

fn cell(outcome: &EvaluationOutcome, one: &EvaluationAgainst) -> Cell {
    let (word, size) = match (one.word, &one.ratio) {
        _ if outcome.could_not_be_tried.is_some() => ("not tested".to_string(), String::new()),
        (Some(word), Some(ratio)) => (word.to_string(), evaluation_size(ratio)),
        _ => ("no value".to_string(), String::new()),
    };
    Cell { standard: one.standard.clone(), word, size }
}

/// Returns the names of the lines in which the candidate is worse than every standard.
fn worse_than_all(evaluation: &Evaluation) -> Vec<[String; 2]> {
    let all = evaluation.lines.iter().filter(|line| line.worse_than_all);
    all.map(|line| {
        let name = format!("{} {}", line.line.section, line.line.title);
        [anchor(&line.line.section), name]
    })
    .collect()
}

/// Returns whether the candidate is worse, for drawing.
fn is_worse(one: &EvaluationAgainst) -> bool {
    one.word == Some(EvaluationWord::Worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorted by number, not alphabetically.
    #[test]
    fn sections_stand_in_the_order_of_the_rfc() {
        let mut numbers = ["safecc", "7.10", "7.2", "5.2.1", "5.1.5", "7.9"];
        numbers.sort_by_key(|number| order(number));
        assert_eq!(numbers, ["5.1.5", "5.2.1", "7.2", "7.9", "7.10", "safecc"]);
    }
}
