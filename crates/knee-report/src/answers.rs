//! Answers at the top of a run's page: whether its paths help together, and which controller suits
//! which traffic.

use crate::drawing::{Axis, Drawing, WIDTH};
use crate::page::environment;
use crate::{ReportError, Section, mix};
use knee_present::words::{capitalised, count, time_us};
use knee_record::{
    Answers, Judgement, MixAnswer, MixClass, PathsAnswer, PathsOutcome, Unit, offered_in_words,
};
use serde::Serialize;

const LEFT: f64 = 200.0;
const RIGHT: f64 = WIDTH - 26.0;
const ROW: f64 = 24.0;

const TEMPLATE: &str = include_str!("../assets/answers.html");

/// The answers, for the template.
#[derive(Debug, Serialize)]
struct Shown {
    /// Load offered to the links; empty without any.
    load: String,
    /// One entry for each group over several paths.
    paths: Vec<Paths>,
    /// Which of these groups have no entry; empty if all have.
    unanswered: String,
    mix: Option<Mix>,
}

/// Whether several paths together do better than one alone.
#[derive(Debug, Serialize)]
struct Paths {
    class: &'static str,
    sentence: String,
    /// Number and kind of the runs compared.
    rests_on: String,
    drawing: Drawing,
}

/// Which controller suits which traffic.
#[derive(Debug, Serialize)]
struct Mix {
    /// Sentences about pairs without a verdict, above their figures.
    overloaded: Vec<String>,
    sentences: Vec<String>,
    rests_on: String,
    rows: Vec<Row>,
    /// The ratios of times and those of rates, with their intervals.
    drawings: Vec<Drawing>,
}

/// A size class.
#[derive(Debug, Serialize)]
struct Row {
    /// Empty if the same as in the previous row.
    traffic: String,
    sizes: String,
    ratio: String,
    word: &'static str,
    class: &'static str,
    means: String,
    retransmitted: String,
    queue: String,
    split: String,
    transfers: String,
    cut_off: String,
}

/// Returns the answers to the questions of a scenario, for the top of the page of its run.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn answers_section(answers: &Answers) -> Result<Section, ReportError> {
    let seeds = answers.seeds.len();
    let shown = Shown {
        load: offered_in_words(&answers.load)
            .map_or_else(String::new, |load| capitalised(&load) + "."),
        paths: answers
            .paths
            .iter()
            .zip(answers.paths_say())
            .map(|(answer, said)| of_paths(answer, said, seeds))
            .collect(),
        unanswered: answers.unanswered_words().unwrap_or_default(),
        mix: answers.mix.as_ref().map(|answer| of_mix(answer, seeds)),
    };
    let mut environment = environment();
    environment.add_template("answers.html", TEMPLATE)?;
    let template = environment.get_template("answers.html")?;
    Ok(Section(template.render(minijinja::context! { shown })?))
}

fn class(effect: Judgement) -> &'static str {
    match effect {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Alike => "same",
        Judgement::Undecided | Judgement::TooShort => "undecided",
        Judgement::Overloaded => "overloaded",
        Judgement::CouldNotBeTried => "undecided",
    }
}

fn of_paths(answer: &PathsAnswer, sentence: String, seeds: usize) -> Paths {
    Paths {
        class: class(answer.effect),
        sentence,
        rests_on: format!(
            "{}, {}: {seeds} seeds each on the simulator, means with 95 % intervals; all paths \
             together compared with one alone, in pairs of the same seed.",
            answer.flow,
            answer.measure.replace('_', " ")
        ),
        drawing: draw(answer),
    }
}

/// Draws a line for each alternative, with a dot for each seed.
fn draw(answer: &PathsAnswer) -> Drawing {
    let together = std::iter::once(("together".to_string(), &answer.together));
    let alone = answer.alone.iter().map(|one| (format!("{} alone", one.paths.join(", ")), one));
    let rows: Vec<(String, &PathsOutcome)> = together.chain(alone).collect();
    let scale = match answer.unit {
        Unit::BitsPerSecond => 1e-6,
        _ => 1.0,
    };
    let there = |outcome: &PathsOutcome| -> Vec<f64> {
        outcome.values.iter().filter_map(|value| Some((*value)? * scale)).collect()
    };
    let highs = rows.iter().flat_map(|(_, outcome)| {
        let interval = outcome.interval.and_then(|interval| Some(interval.high? * scale));
        there(outcome).into_iter().chain(interval)
    });
    let axis = Axis {
        low_at: LEFT,
        high_at: RIGHT,
        ..Axis::from_zero(1.06 * highs.fold(0.0, f64::max), LEFT, RIGHT)
    };
    let (top, bottom) = (8.0, 8.0 + ROW * rows.len() as f64);
    let mut drawing = Drawing::new(bottom + 40.0, "together and each path alone, with intervals");
    let unit = if answer.unit == Unit::BitsPerSecond { "Mbit/s" } else { "s" };
    drawing.axis(&axis, top, bottom, &format!("{} ({unit})", answer.measure.replace('_', " ")));
    for (number, (label, outcome)) in rows.iter().enumerate() {
        let y = top + ROW * (number as f64 + 0.5);
        drawing.words("name", "end", (LEFT - 10.0, y + 4.0), label.clone());
        for value in there(outcome) {
            drawing.dot("faint", axis.at(value), y, answer.unit.show(value / scale));
        }
        let Some(interval) = outcome.interval else {
            let missing = outcome.values.iter().filter(|value| value.is_none()).count();
            let words = format!("{missing} of {} did not end within the run", outcome.values.len());
            drawing.words("small", "end", (RIGHT - 4.0, y + 4.0), words);
            continue;
        };
        if let Some((low, high)) = interval.low.zip(interval.high) {
            drawing.line("whisker", &[(axis.at(low * scale), y), (axis.at(high * scale), y)]);
        }
        drawing.dot("strong", axis.at(interval.mean * scale), y, answer.unit.show(interval.mean));
    }
    drawing
}

fn of_mix(answer: &MixAnswer, seeds: usize) -> Mix {
    let mut rows: Vec<Row> = Vec::new();
    let mut before = "";
    for class in &answer.classes {
        let first = class.pair != before;
        before = &class.pair;
        rows.push(row(answer, class, first));
    }
    let words = |said: Vec<&str>| said.into_iter().map(str::to_string).collect();
    let [overloaded, sentences] = answer.before_and_after().map(words);
    Mix {
        overloaded,
        sentences,
        rests_on: format!(
            "All transfers under one controller compared with all under the other: {seeds} seeds \
             each on the simulator, with the same arrivals and sizes. Ratio: {}, \
             geometric mean over the seeds with its interval, 95 % for all rows together; a lower \
             completion time and a higher throughput are better. Half and half: the two share one \
             run, which shows who takes from whom, not which is better.",
            answer.over()
        ),
        rows,
        drawings: mix::of_answer(answer),
    }
}

fn row(answer: &MixAnswer, of: &MixClass, first: bool) -> Row {
    let at = answer.pairs.iter().position(|pair| pair.name == of.pair);
    let pair = at.map(|at| &answer.pairs[at]);
    let only_first = |text: String| if first { text } else { String::new() };
    let names = pair.map_or_else(String::new, |pair| format!("{} / {}", pair.test, pair.control));
    let queue = at.and_then(|at| answer.queue_s.get(at)).map_or_else(String::new, |queue| {
        queue.map(|delay| time_us(Some(delay * 1e6))).join(" / ")
    });
    let means = of.means.map(|mean| match of.unit() {
        Unit::Seconds => time_us(Some(mean * 1e6)),
        unit => unit.show(mean),
    });
    Row {
        traffic: only_first(format!("{}: {names}", of.pair)),
        sizes: of.sizes.clone(),
        ratio: of.ratio(),
        word: of.effect.word(),
        class: class(of.effect),
        means: means.join(" / "),
        retransmitted: of.again(),
        queue: only_first(queue),
        split: of.split_ratio(),
        transfers: count(of.number()),
        cut_off: of.cut_off.map(count).join(" / "),
    }
}
