//! Answers to questions that a scenario raises without a key for them: whether its paths help
//! together, and which controller suits which traffic. Each answer compares runs of the
//! alternatives in pairs that share a seed.

mod mix;
mod paths;
mod stalls;
mod transfers;

pub use mix::{MixAnswer, MixClass, MixPair, MixSeed};
pub use paths::{PathUse, PathsAnswer, PathsOutcome, PathsQuestion, PathsRun};
pub use stalls::Stalls;
pub use transfers::{TransferTime, TransferTimes};

use crate::{Error, OfferedLoad, read_json};
use knee_units::statistics::{Better, Judgement, Paired, PairedScale, WORTH_NAMING};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema name of answers.
pub const SCHEMA: &str = "knee-answers/2";

/// Results of the alternatives of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// `knee-answers/2`.
    pub schema: String,
    /// Seeds with which each alternative ran.
    pub seeds: Vec<u64>,
    /// Load that the scenario offers to its links; empty if it has neither mixes
    /// nor requests.
    #[serde(default)]
    pub load: Vec<OfferedLoad>,
    /// For each group of flows over several paths: all paths together compared
    /// with one path alone.
    pub paths: Vec<PathsAnswer>,
    /// Comparison of controllers by transfer size; null if no two mixes share a
    /// process.
    pub mix: Option<MixAnswer>,
    /// Groups of flows over several paths that have no answer, since only the first
    /// few of a scenario have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

impl Answers {
    /// Combines answers, or returns `None` if there is no answer of either kind.
    pub fn new(
        seeds: Vec<u64>,
        load: Vec<OfferedLoad>,
        paths: Vec<PathsAnswer>,
        mix: Option<MixAnswer>,
    ) -> Option<Answers> {
        let asked = !paths.is_empty() || mix.is_some();
        let (schema, unanswered) = (SCHEMA.to_string(), Vec::new());
        asked.then_some(Answers { schema, seeds, load, paths, mix, unanswered })
    }

    /// Returns the sentences of the answers about paths, each with the name of its group of flows if
    /// there are several.
    pub fn paths_say(&self) -> Vec<String> {
        let name = |answer: &PathsAnswer| match self.paths.len() + self.unanswered.len() {
            0 | 1 => String::new(),
            _ => format!("{}: ", answer.flow),
        };
        self.paths.iter().map(|answer| name(answer) + &answer.sentence).collect()
    }

    /// Says which groups of flows over several paths have no answer, if any.
    pub fn unanswered_words(&self) -> Option<String> {
        (!self.unanswered.is_empty()).then(|| {
            let (answered, names) = (self.paths.len(), self.unanswered.join(", "));
            format!(
                "Only the first {answered} groups of flows over several paths are compared with \
                 one path alone; not compared: {names}."
            )
        })
    }

    /// Says that answers rest on more seeds than the `runs` whose figures stand beside them, if so.
    pub fn beside(&self, runs: usize) -> Option<String> {
        let seeds = self.seeds.len();
        (seeds > runs).then(|| {
            format!(
                "The answer is based on {seeds} seeds, which is the minimum; the figures of the \
                 runs are those of the {runs} seeds of --repeat."
            )
        })
    }
}

/// Reads an answers file.
///
/// # Errors
/// If the file cannot be read or is not an answers document.
pub fn read_answers(path: &Path) -> Result<Answers, Error> {
    read_json(path, SCHEMA)
}

/// Judges the first side of `compared`, whose probability is already corrected. What happened on
/// neither side, or in too few seeds to tell, is too short.
fn judged(compared: &Paired, better: Better) -> Judgement {
    match compared.judge(better, WORTH_NAMING) {
        judgement if judgement.differs() => judgement,
        _ if compared.scale == PairedScale::Order => Judgement::TooShort,
        judgement => judgement,
    }
}

/// Says how many repeats would decide what is undecided.
fn repeats_in_words(repeats: impl IntoIterator<Item = Option<u64>>) -> String {
    match repeats.into_iter().collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max()) {
        Some(most) => format!("--repeat {most} would decide a difference of this size"),
        None => "more seeds may decide (--repeat)".to_string(),
    }
}

/// Formats a ratio as a change in per cent, with its interval: `25 % less`, `22 to 27 %`; times of at
/// least twice as long as `2.6 times as long`. There is no interval if all pairs have the same
/// ratio.
fn change(compared: &Paired, [less, more]: [&str; 2]) -> Option<(String, Option<String>)> {
    let ratio = compared.estimate.filter(|_| compared.scale == PairedScale::Ratio)?;
    if more == "longer" && ratio >= 2.0 {
        let range = compared.low.zip(compared.high).filter(|(low, high)| high - low > 1e-9);
        let range = range.map(|(low, high)| format!("{low:.1} to {high:.1} times"));
        return Some((format!("{ratio:.1} times as long"), range));
    }
    let (sign, word) = if ratio < 1.0 { (-1.0, less) } else { (1.0, more) };
    let part = |ratio: f64| per_cent(sign * (ratio - 1.0) * 100.0);
    let (low, high) = compared.low.zip(compared.high)?;
    let (from, to) = if sign < 0.0 { (part(high), part(low)) } else { (part(low), part(high)) };
    let range = (from != to).then(|| format!("{from} to {to} %"));
    Some((format!("{} % {word}", part(ratio)), range))
}

/// Formats the interval of a ratio that does not differ significantly from one:
/// `between 2 % less and 3 % more`.
fn range(compared: &Paired, [less, more]: [&str; 2]) -> Option<String> {
    let (low, high) = compared.low.zip(compared.high)?;
    if compared.scale != PairedScale::Ratio {
        return None;
    }
    let side = |ratio: f64| {
        let word = if ratio < 1.0 { less } else { more };
        format!("{} % {word}", per_cent((ratio - 1.0).abs() * 100.0))
    };
    Some(format!("between {} and {}", side(low), side(high)))
}

/// Formats per cent: whole numbers from ten on, tenths below.
fn per_cent(value: f64) -> String {
    let text = if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    let text = text.strip_suffix(".0").map(str::to_string).unwrap_or(text);
    if text == "-0" { "0".to_string() } else { text }
}
