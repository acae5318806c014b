//! Two runs, number by number.

use crate::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of a comparison.
pub const SCHEMA: &str = "knee-comparison/1";

/// What differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `knee-comparison/1`.
    pub schema: String,
    /// The run compared against.
    pub before: RunIdentity,
    /// The other run.
    pub after: RunIdentity,
    /// Numbers that both have, in the order of the summary.
    pub differences: Vec<Difference>,
    /// Names of the numbers that only the first has.
    pub only_before: Vec<String>,
    /// Names of the numbers that only the other has.
    pub only_after: Vec<String>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunIdentity {
    /// Title of the scenario.
    pub name: String,
    /// Ground of the run.
    pub ground: String,
    /// Seed of the run.
    pub seed: u64,
}

/// One number in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its name: `flow.bbr[1].rtt_us.p50`.
    pub measure: String,
    /// In the first run.
    pub before: f64,
    /// In the other run.
    pub after: f64,
    /// `after - before`.
    pub absolute: f64,
    /// `(after - before) / |before|`; null when that is zero.
    pub relative: Option<f64>,
}

impl Comparison {
    /// Compares two summaries. Flows and links are matched by name.
    pub fn new(before: &Summary, after: &Summary) -> Comparison {
        let first = before.numbers();
        let second = after.numbers();
        let known: BTreeMap<&str, f64> = by_name(&second);
        let differences = first.iter().filter_map(|(name, before)| {
            let after = known.get(name.as_str())?;
            Some(Difference::new(name, *before, *after))
        });
        Comparison {
            schema: SCHEMA.to_string(),
            before: RunIdentity::of(before),
            after: RunIdentity::of(after),
            differences: differences.collect(),
            only_before: missing(&first, &known),
            only_after: missing(&second, &by_name(&first)),
        }
    }
}

fn by_name(numbers: &[(String, f64)]) -> BTreeMap<&str, f64> {
    let numbers = numbers.iter();
    numbers.map(|(name, value)| (name.as_str(), *value)).collect()
}

fn missing(numbers: &[(String, f64)], other: &BTreeMap<&str, f64>) -> Vec<String> {
    let names = numbers.iter().map(|(name, _)| name);
    names.filter(|name| !other.contains_key(name.as_str())).cloned().collect()
}

impl RunIdentity {
    fn of(summary: &Summary) -> RunIdentity {
        RunIdentity {
            name: summary.name.clone(),
            ground: summary.ground.clone(),
            seed: summary.seed,
        }
    }
}

impl Difference {
    fn new(measure: &str, before: f64, after: f64) -> Difference {
        let absolute = after - before;
        Difference {
            measure: measure.to_string(),
            before,
            after,
            absolute,
            relative: (before != 0.0).then(|| absolute / before.abs()),
        }
    }
}
