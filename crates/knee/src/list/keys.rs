//! Keys and workloads of a scenario file, from its JSON Schema, which is generated from the
//! parser's declarations.

use knee_present::{Document, Table, text};
use serde_json::Value;

/// Tables of a scenario file with their names in the schema, before and after those of workloads.
const BEFORE: [(&str, &str); 4] = [
    ("at the top", ""),
    ("[link.NAME]", "LinkFile"),
    ("[path.NAME]", "PathFile"),
    ("[[flow]]", "FlowFile"),
];
const BEHIND: [(&str, &str); 3] = [
    ("sizes = { … } of a mix", "SizesTable"),
    ("[transport], also in [[flow]]", "TransportFile"),
    ("[[claim]]", "ClaimFile"),
];

/// All tables with their headings and names in the schema.
fn sections(schema: &Value) -> Vec<(String, String)> {
    let fixed = |(heading, name): (&str, &str)| (heading.to_string(), name.to_string());
    let workloads = forms(schema).flat_map(settings).filter_map(|(name, described)| {
        Some((format!("workload = {{ {name} = {{ … }} }}"), referred(described)?.to_string()))
    });
    // A size is a definition too, but has no keys.
    let tables = workloads.filter(|(_, name)| keys(table_of(schema, name)).next().is_some());
    BEFORE.map(fixed).into_iter().chain(tables).chain(BEHIND.map(fixed)).collect()
}

/// Headings of the tables.
pub fn section_names() -> Vec<String> {
    let schema = knee_scenario::json_schema();
    sections(&schema).into_iter().map(|(heading, _)| heading).collect()
}

/// All keys, table by table.
pub fn document() -> Document {
    let schema = knee_scenario::json_schema();
    let all = sections(&schema);
    let all = all.iter().map(|(heading, name)| section(heading, table_of(&schema, name)));
    all.reduce(|all, next| all.words("\n").then(next)).unwrap_or_default()
}

/// The forms of a workload: a name, or a table with one key.
fn forms(schema: &Value) -> impl Iterator<Item = &Value> {
    table_of(schema, "Workload")["anyOf"].as_array().into_iter().flatten()
}

/// The key of a form, with the schema of its settings.
fn settings(form: &Value) -> impl Iterator<Item = (&String, &Value)> {
    form["properties"].as_object().into_iter().flatten()
}

/// The definition that a schema refers to.
fn referred(described: &Value) -> Option<&str> {
    described["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn section(heading: &str, described: &Value) -> Document {
    let mut table = Table::new([text("key"), text("meaning")]).called(heading);
    keys(described).for_each(|(name, meaning)| table.row([name, meaning]));
    Document::default().words(format!("{heading}\n")).table(table)
}

/// Names of the workloads.
pub fn workload_names() -> Vec<String> {
    let schema = knee_scenario::json_schema();
    let words = forms(&schema).filter_map(|form| form["enum"].as_array()).flatten();
    let mut names: Vec<String> = words.filter_map(Value::as_str).map(str::to_string).collect();
    for (name, _) in forms(&schema).flat_map(settings) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Workloads with their parameters.
pub fn workloads() -> Document {
    let schema = knee_scenario::json_schema();
    let mut document = Document::default().words("bulk: Sends without pause.\n");
    for form in forms(&schema) {
        for (name, inner) in settings(form) {
            document = document.words(format!("\n{name}: {}\n", line(&form["description"])));
            let described = referred(inner).map_or(inner, |name| table_of(&schema, name));
            let mut table = Table::new([text("parameter"), text("meaning")]).called(name);
            keys(described).for_each(|(name, meaning)| table.row([name, meaning]));
            if keys(described).next().is_some() {
                document = document.table(table);
            }
        }
    }
    document
}

/// A definition of the schema, or the schema itself for an empty name.
fn table_of<'s>(schema: &'s Value, name: &str) -> &'s Value {
    if name.is_empty() { schema } else { &schema["$defs"][name] }
}

fn keys(described: &Value) -> impl Iterator<Item = (String, String)> {
    let keys = described["properties"].as_object().into_iter().flatten();
    keys.map(|(name, key)| (name.clone(), line(&key["description"])))
}

/// A description on one line.
fn line(description: &Value) -> String {
    let words = description.as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table exists in the schema, and every key has a description.
    #[test]
    fn every_key_is_described() {
        let schema = knee_scenario::json_schema();
        for (heading, name) in sections(&schema) {
            let keys: Vec<_> = keys(table_of(&schema, &name)).collect();
            assert!(!keys.is_empty(), "{heading}");
            assert!(keys.iter().all(|(_, meaning)| !meaning.is_empty()), "{heading} {keys:?}");
        }
    }

    /// All workloads are listed, with the parameters of one of them.
    #[test]
    fn workloads_are_listed() {
        let names = workload_names();
        for name in ["bulk", "bursts", "page", "dash", "file", "mix"] {
            assert!(names.iter().any(|known| known == name), "{name} {names:?}");
        }
        let headings = section_names();
        assert!(headings.contains(&"workload = { dash = { … } }".to_string()), "{headings:?}");
        let text = workloads().text(crate::screen::layout());
        assert!(text.contains("mix: ") && text.contains("arrival_interval"), "{text}");
    }
}
