//! Compares the same evaluation on two grounds: whether both order the controllers alike.

use super::{Evaluation, EvaluationOutcome, EvaluationSeed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema name of `grounds.json`.
const SCHEMA: &str = "knee-evaluation-grounds/1";

/// `grounds.json`: one evaluation on several grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationsCompared {
    /// `knee-evaluation-grounds/1`.
    pub schema: String,
    /// Command that repeats the comparison.
    pub command: String,
    /// The first ground with each of the others.
    pub compared: Vec<EvaluationGrounds>,
}

impl EvaluationsCompared {
    /// Compares the first evaluation with each of the others.
    pub fn new(evaluations: &[(&str, Evaluation)]) -> EvaluationsCompared {
        let (first, others) = match evaluations.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, &[][..]),
        };
        let compared = others.iter().flat_map(|other| {
            first.map(|first| EvaluationGrounds::new((first.0, &first.1), (other.0, &other.1)))
        });
        EvaluationsCompared {
            schema: SCHEMA.to_string(),
            command: first.map_or_else(String::new, |(_, one)| one.plan.command.clone()),
            compared: compared.collect(),
        }
    }
}

/// Agreement of two grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationGrounds {
    /// The two grounds; the first is the reference.
    pub grounds: [String; 2],
    /// The controllers, compared in pairs.
    pub controllers: Vec<String>,
    /// Every pair of them in every line that has values on both grounds.
    pub pairs: Vec<GroundsPair>,
    /// Number of pairs that agree.
    pub agree: usize,
    /// Lines without a value of some controller on one of the grounds: section and
    /// title.
    pub without_value: Vec<String>,
}

/// Two controllers in one line, on both grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroundsPair {
    /// Section of RFC 9743.
    pub section: String,
    /// Title of the line.
    pub title: String,
    /// The two controllers.
    pub controllers: [String; 2],
    /// The first one's value over the second one's on each ground: geometric mean over
    /// the seeds.
    pub ratios: [f64; 2],
    /// Relative difference below which the two count as equal.
    pub alike: f64,
    /// Whether both grounds agree: the ratios are on the same side of 1, or both
    /// within the margin.
    pub agrees: bool,
}

impl EvaluationGrounds {
    /// Compares an evaluation on one ground with the same on another.
    pub fn new(first: (&str, &Evaluation), second: (&str, &Evaluation)) -> EvaluationGrounds {
        let controllers = controllers(first.1);
        let (mut pairs, mut without_value) = (Vec::new(), Vec::new());
        for line in &first.1.lines {
            let same = |other: &&EvaluationOutcome| {
                (&other.line.section, &other.line.claim, &other.line.cases)
                    == (&line.line.section, &line.line.claim, &line.line.cases)
            };
            let Some(other) = second.1.lines.iter().find(same) else { continue };
            let before = pairs.len();
            for (at, a) in controllers.iter().enumerate() {
                for b in &controllers[at + 1..] {
                    pairs.extend(pair([line, other], [a, b]));
                }
            }
            if pairs.len() - before < controllers.len() * (controllers.len() - 1) / 2 {
                without_value.push(format!("{} {}", line.line.section, line.line.title));
            }
        }
        EvaluationGrounds {
            grounds: [first.0.to_string(), second.0.to_string()],
            controllers: controllers.into_iter().map(|(name, _)| name).collect(),
            agree: pairs.iter().filter(|pair| pair.agrees).count(),
            pairs,
            without_value,
        }
    }

    /// Returns the fraction of pairs that agree; `None` if there are no pairs.
    pub fn share(&self) -> Option<f64> {
        (!self.pairs.is_empty()).then(|| self.agree as f64 / self.pairs.len() as f64)
    }
}

/// Returns the controllers with their places in a seed: the candidate, unless it is also a
/// standard, then the standards from 1.
fn controllers(evaluation: &Evaluation) -> Vec<(String, usize)> {
    let plan = &evaluation.plan;
    let all = std::iter::once(&plan.candidate).chain(&plan.standards).cloned().zip(0..);
    let again = plan.standards.contains(&plan.candidate);
    all.skip(usize::from(again)).collect()
}

fn pair(lines: [&EvaluationOutcome; 2], [a, b]: [&(String, usize); 2]) -> Option<GroundsPair> {
    let log = |line: &EvaluationOutcome| {
        let value = |seed: &EvaluationSeed, at: usize| match at {
            0 => seed.candidate,
            at => seed.standards[at - 1],
        };
        let logs = line.seeds.iter().filter_map(|seed| {
            Some((value(seed, a.1)? / value(seed, b.1)?).ln()).filter(|log| log.is_finite())
        });
        let logs: Vec<f64> = logs.collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let (first, second) = (log(lines[0])?, log(lines[1])?);
    let line = &lines[0].line;
    Some(GroundsPair {
        section: line.section.clone(),
        title: line.title.clone(),
        controllers: [a.0.clone(), b.0.clone()],
        ratios: [first.exp(), second.exp()],
        alike: line.alike,
        agrees: agrees(line.alike, first, second),
    })
}

/// Two differences within the margin agree; otherwise their signs must be equal.
fn agrees(alike: f64, first: f64, second: f64) -> bool {
    let margin = alike.ln_1p();
    first * second > 0.0 || (first.abs() <= margin && second.abs() <= margin)
}

#[cfg(test)]
mod tests {
    use super::agrees;

    /// With a margin of 10 %: 1.5 and 1.02 are on one side; 0.95 and 1.05 are both
    /// alike; 1.5 and 0.98 are neither.
    #[test]
    fn signs_count_beyond_the_margin() {
        let of = |first: f64, second: f64| agrees(0.1, first.ln(), second.ln());
        assert!(of(1.5, 1.02) && of(0.5, 0.9) && of(0.95, 1.05) && of(1.0, 0.95));
        assert!(!of(1.5, 0.98) && !of(0.98, 1.5) && !of(0.5, 2.0) && !of(1.0, 1.2));
    }
}
