//! Inputs that differ between runs: scenario keys, version, ground.

use crate::compare::{PointOf, Source};
use crate::directory::repeat;
use crate::error::Error;
use crate::text::ScenarioText;
use knee_record::{read_manifest, read_summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An input that differs between runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferingInput {
    /// A key as in `--set`, `version`, or `ground`.
    pub what: String,
    /// Its value in each run; null if the run has no such key.
    pub values: Vec<Option<String>>,
}

/// Inputs that differ between the sources, in order of their names.
pub(crate) fn differing(sources: &[Source]) -> Result<Vec<DifferingInput>, Error> {
    // For points alone, the settings as typed are the clearest.
    let points = sources.iter().all(|source| matches!(source, Source::Point(_)));
    let given = |source: &Source| match source {
        Source::Run(run) => given(run),
        Source::Repeats(directory) => given(&directory.join(repeat(1))),
        Source::Point(point) if points => point.settings(),
        Source::Point(point) => of_point(point),
    };
    let mut all: Vec<BTreeMap<String, String>> =
        sources.iter().map(given).collect::<Result<_, _>>()?;
    if let Some((first, others)) = all.split_first_mut() {
        others.iter_mut().for_each(|other| call_alike(first, other));
    }
    let mut names: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let values = |name: &String| -> Vec<Option<String>> {
        all.iter().map(|one| one.get(name).cloned()).collect()
    };
    let told =
        names.into_iter().map(|name| DifferingInput { what: name.clone(), values: values(name) });
    Ok(told.filter(|given| given.values.iter().any(|value| *value != given.values[0])).collect())
}

/// Renames the only flow name unique to `other` to the only one unique to `first`: a flow without a
/// name in the scenario is named after its controller.
fn call_alike(first: &BTreeMap<String, String>, other: &mut BTreeMap<String, String>) {
    let (known, names) = (flows(first), flows(other));
    let mut only_first = known.difference(&names);
    let mut only_other = names.difference(&known);
    let alone = (only_first.next(), only_first.next(), only_other.next(), only_other.next());
    let (Some(name), None, Some(own), None) = alone else { return };
    let (prefix, of_first) = (format!("flow.{own}."), format!("flow.{name}."));
    *other = std::mem::take(other)
        .into_iter()
        .map(|(key, value)| match key.strip_prefix(&prefix) {
            Some(rest) => (format!("{of_first}{rest}"), value),
            None => (key, value),
        })
        .collect();
}

/// Names of the flows.
fn flows(found: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = found.iter().filter(|(key, _)| key.starts_with("flow.") && key.ends_with(".name"));
    names.map(|(_, name)| name.clone()).collect()
}

/// Inputs of a run, or of the first repeat, since repeats differ only in their seeds.
fn given(run: &Path) -> Result<BTreeMap<String, String>, Error> {
    let (manifest, summary) = (read_manifest(run)?, read_summary(run)?);
    let text = ScenarioText::of_run(run)?;
    let text = String::from_utf8_lossy(text.bytes());
    let mut found = flattened(&text);
    found.insert("version".to_string(), manifest.version);
    found.insert("ground".to_string(), summary.ground);
    Ok(found)
}

/// Inputs of a point: its resolved scenario, as runs store theirs.
fn of_point(point: &PointOf) -> Result<BTreeMap<String, String>, Error> {
    let mut found = flattened(&point.scenario()?.resolved);
    let settings = point.settings()?;
    let of_the_sweep = |key: &&String| ["version", "ground"].contains(&key.as_str());
    let made = settings.iter().filter(|(key, _)| of_the_sweep(key));
    found.extend(made.map(|(key, value)| (key.clone(), value.clone())));
    Ok(found)
}

/// The keys of a resolved scenario, as written for `--set`.
fn flattened(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(document) = text.parse::<toml::Table>() {
        flatten("", &toml::Value::Table(document), &mut found);
    }
    found
}

fn flatten(prefix: &str, value: &toml::Value, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| match prefix {
        "" => name.to_string(),
        prefix => format!("{prefix}.{name}"),
    };
    match value {
        toml::Value::Table(entries) => {
            entries.iter().for_each(|(key, value)| flatten(&below(key), value, found));
        }
        // Identifies flows by name and claims by id; other lists are values.
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (item, number) in items.iter().zip(0..) {
                let name = item.get("name").or(item.get("id")).and_then(toml::Value::as_str);
                let name = name.map_or_else(|| number.to_string(), str::to_string);
                flatten(&below(&name), item, found);
            }
        }
        toml::Value::String(text) => {
            found.insert(prefix.to_string(), text.clone());
        }
        other => {
            found.insert(prefix.to_string(), other.to_string());
        }
    }
}
