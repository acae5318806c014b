//! `sweep.json`: the results of a sweep, point by point.

use super::verdict::{SweepVerdict, verdicts};
use super::words::too_many;
use super::{GroupMeasures, SweepMeasure, SweepRun, sweep_measures};
use crate::{Error, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Schema name of `sweep.json`.
pub(crate) const SCHEMA: &str = "knee-sweep/1";

/// A key that varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepKey {
    /// Key as in `--set`: `flow.main.cc`.
    pub name: String,
    /// Its values as given, in that order.
    pub values: Vec<String>,
}

impl SweepKey {
    /// Returns whether its values are names, such as those of controllers, rather than numbers.
    pub fn is_of_names(&self) -> bool {
        let number = |value: &String| value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        !self.values.iter().all(number)
    }
}

/// Result of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepSummary {
    /// `knee-sweep/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// The command that repeats or resumes it.
    pub command: String,
    /// The command that repeats one run of it, without the settings of a point.
    pub command_of_a_run: String,
    /// The keys that vary.
    pub keys: Vec<SweepKey>,
    /// Index of the key whose values the headline compares, from zero; null if none
    /// was named.
    #[serde(default)]
    pub about: Option<usize>,
    /// Whether mixes under several controllers share a path in a run: the groups
    /// then show who takes from whom, not which is better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_and_half: bool,
    /// Number of runs at each point.
    pub repeats: u64,
    /// Runs planned.
    pub runs_planned: usize,
    /// Runs included in `points`.
    pub runs_finished: usize,
    /// Measures; only those that some run has.
    pub measures: Vec<SweepMeasure>,
    /// Names of the groups of flows; with several groups, `*` stands for all
    /// flows.
    pub groups: Vec<String>,
    /// Points in the order of the values, the last key varying fastest.
    pub points: Vec<SweepPoint>,
    /// Which values of a key are better, all else being equal: for each key
    /// with two to ten values, by each measure of each group.
    #[serde(default)]
    pub verdicts: Vec<SweepVerdict>,
    /// Invalid combinations.
    pub left_out: Vec<LeftOut>,
}

/// Result of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// For each key, the index of its value, from zero.
    pub at: Vec<usize>,
    /// Seeds of its finished runs.
    pub seeds: Vec<u64>,
    /// One entry per group of flows.
    pub groups: Vec<PointGroup>,
}

/// A group of flows at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointGroup {
    /// Its name.
    pub group: String,
    /// Values by the name of the table's column.
    pub measures: BTreeMap<String, PointMeasure>,
}

/// A measure over the runs of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointMeasure {
    /// Statistics over the runs that have a value; null if none has.
    pub interval: Option<Interval>,
    /// Runs in which the event did not occur.
    pub never: usize,
}

/// An invalid combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// For each key, the index of its value, from zero.
    pub at: Vec<usize>,
    /// The error.
    pub reason: String,
}

impl SweepPoint {
    /// Summarises the runs of a point.
    fn new(at: &[usize], runs: &[SweepRun]) -> SweepPoint {
        let groups: Vec<&GroupMeasures> = runs.iter().flat_map(|run| &run.groups).collect();
        let mut names: Vec<&str> = Vec::new();
        for group in &groups {
            if !names.contains(&group.group.as_str()) {
                names.push(&group.group);
            }
        }
        let gather = |name: &str| {
            let members = groups.iter().copied().filter(|group| group.group == name);
            PointGroup {
                group: name.to_string(),
                measures: over_runs(&members.collect::<Vec<_>>()),
            }
        };
        SweepPoint {
            at: at.to_vec(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            groups: names.into_iter().map(gather).collect(),
        }
    }
}

fn over_runs(runs: &[&GroupMeasures]) -> BTreeMap<String, PointMeasure> {
    let mut measures = BTreeMap::new();
    for measure in sweep_measures() {
        let name = measure.name.clone();
        let values: Vec<f64> =
            runs.iter().filter_map(|run| run.measures.get(&name)).copied().collect();
        let never = runs.iter().filter(|run| run.never.contains(&name)).count();
        let interval = measure.interval(&values);
        if interval.is_some() || never > 0 {
            measures.insert(name, PointMeasure { interval, never });
        }
    }
    measures
}

impl SweepSummary {
    /// Says which keys have too many values for a comparison, one sentence each: of the key that
    /// the headline is about, or of all keys if the values of none are compared.
    pub fn not_compared(&self) -> Vec<String> {
        let about = self.about.and_then(|key| self.keys.get(key));
        let keys = match (about, self.verdicts.is_empty()) {
            (Some(key), _) => std::slice::from_ref(key),
            (None, true) => &self.keys[..],
            (None, false) => &[],
        };
        keys.iter().filter_map(too_many).collect()
    }

    /// Returns the group of flows that the settings are about: the one of which the headline key, or
    /// else another key with several values, is a setting.
    pub fn varied_group(&self) -> Option<&str> {
        let about = self.about.and_then(|key| self.keys.get(key));
        let several = self.keys.iter().filter(|key| key.values.len() > 1);
        let of = |key: &SweepKey| {
            let named =
                self.groups.iter().find(|group| key.name.starts_with(&format!("flow.{group}.")));
            named.map(String::as_str)
        };
        about.into_iter().chain(several).find_map(of)
    }

    /// Summarises the finished runs of all points.
    pub fn new(
        name: &str,
        (command, command_of_a_run): (String, String),
        keys: Vec<SweepKey>,
        (repeats, runs_planned): (u64, usize),
        runs: &[(Vec<usize>, Vec<SweepRun>)],
        left_out: Vec<LeftOut>,
    ) -> SweepSummary {
        let points: Vec<SweepPoint> =
            runs.iter().map(|(at, runs)| SweepPoint::new(at, runs)).collect();
        let mut groups: Vec<String> = Vec::new();
        for group in points.iter().flat_map(|point| &point.groups) {
            if !groups.contains(&group.group) {
                groups.push(group.group.clone());
            }
        }
        let has = |measure: &SweepMeasure| {
            let mut all = points.iter().flat_map(|point| &point.groups);
            all.any(|group| group.measures.contains_key(&measure.name))
        };
        SweepSummary {
            schema: SCHEMA.to_string(),
            name: name.to_string(),
            command,
            command_of_a_run,
            verdicts: verdicts(&keys, runs),
            keys,
            about: None,
            half_and_half: false,
            repeats,
            runs_planned,
            runs_finished: points.iter().map(|point| point.seeds.len()).sum(),
            measures: sweep_measures().into_iter().filter(has).collect(),
            groups,
            points,
            left_out,
        }
    }
}

/// Reads `sweep.json`.
///
/// # Errors
/// If the file is missing, damaged, or of another version.
pub fn read_sweep(path: &Path) -> Result<SweepSummary, Error> {
    crate::run::read_json(path, SCHEMA)
}
