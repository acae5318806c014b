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

use crate::{Error, Unit, read_json};
use knee_statistics::{Interval, Paired, PairedScale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema name of answers.
pub const SCHEMA: &str = "knee-answers/1";

/// Relative difference below which two alternatives count as equal.
const NEGLIGIBLE: f64 = 0.01;
/// An interval that extends further than this from equality leaves the question open.
const OPEN: f64 = 0.05;

/// Results of the alternatives of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// `knee-answers/1`.
    pub schema: String,
    /// Seeds with which each alternative ran.
    pub seeds: Vec<u64>,
    /// For each group of flows over several paths: all paths together compared
    /// with one path alone.
    pub paths: Vec<PathsAnswer>,
    /// Comparison of controllers by transfer size; null if no two mixes share a
    /// process.
    pub mix: Option<MixAnswer>,
}

impl Answers {
    /// Combines answers, or returns `None` if there is no answer of either kind.
    pub fn new(
        seeds: Vec<u64>,
        paths: Vec<PathsAnswer>,
        mix: Option<MixAnswer>,
    ) -> Option<Answers> {
        let asked = !paths.is_empty() || mix.is_some();
        asked.then(|| Answers { schema: SCHEMA.to_string(), seeds, paths, mix })
    }
}

/// Reads an answers file.
///
/// # Errors
/// If the file cannot be read or is not an answers document.
pub fn read_answers(path: &Path) -> Result<Answers, Error> {
    read_json(path, SCHEMA)
}

/// How one alternative compares with another, with chance taken into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// Neither, or a difference of less than 1 %.
    NoDifference,
}

impl Effect {
    /// Returns the effect of the first side of `compared`, whose probability is already corrected.
    fn of(compared: &Paired, less_is_better: bool) -> Effect {
        let small = compared.scale == PairedScale::Ratio
            && compared.estimate.is_some_and(|ratio| (ratio - 1.0).abs() < NEGLIGIBLE);
        match compared.differs() && !small {
            false => Effect::NoDifference,
            true if compared.first_is_more() == less_is_better => Effect::Worse,
            true => Effect::Better,
        }
    }

    /// Returns the word used in tables.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Better => "better",
            Effect::Worse => "worse",
            Effect::NoDifference => "no difference",
        }
    }
}

/// Formats a mean with its interval, `1.73 s (1.7 s to 1.77 s)`; without the interval if all values
/// are equal.
fn with_interval(unit: Unit, values: &[f64]) -> String {
    let Some(interval) = Interval::new(values) else { return "–".to_string() };
    let mean = unit.show(interval.mean);
    match interval.low.zip(interval.high) {
        Some((low, high)) if high - low > 1e-9 * interval.mean.abs() => {
            format!("{mean} ({} to {})", unit.show(low), unit.show(high))
        }
        _ => mean,
    }
}

/// Formats a ratio as a change in per cent, with its interval: `25 % less`, `22 to 27 %`. There is
/// no interval if all pairs have the same ratio.
fn change(compared: &Paired, [less, more]: [&str; 2]) -> Option<(String, Option<String>)> {
    let ratio = compared.estimate.filter(|_| compared.scale == PairedScale::Ratio)?;
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

/// Returns whether the interval still allows a difference large enough to act on.
fn is_open(compared: &Paired) -> bool {
    compared.low.zip(compared.high).is_some_and(|(low, high)| {
        compared.scale == PairedScale::Ratio && (low < 1.0 - OPEN || high > 1.0 + OPEN)
    })
}

/// Formats per cent: whole numbers from ten on, tenths below.
fn per_cent(value: f64) -> String {
    let text = if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    let text = text.strip_suffix(".0").map(str::to_string).unwrap_or(text);
    if text == "-0" { "0".to_string() } else { text }
}
