//! Keys of a scenario file and workloads, from the JSON Schema: the reader's own
//! declarations.

use crate::table::Table;
use serde_json::Value;

/// Tables of a scenario file, and the name of each in the schema.
const SECTIONS: [(&str, &str); 10] = [
    ("at the top", ""),
    ("[link.NAME]", "LinkFile"),
    ("[path.NAME]", "PathFile"),
    ("[[flow]]", "FlowFile"),
    ("workload = { page = { … } }", "PageFile"),
    ("workload = { dash = { … } }", "DashFile"),
    ("workload = { mix = { … } }", "MixFile"),
    ("sizes = { … } of a mix", "SizesTable"),
    ("[transport], also in [[flow]]", "TransportFile"),
    ("[[claim]]", "ClaimFile"),
];

/// Headings of the tables.
pub fn section_names() -> Vec<String> {
    SECTIONS.iter().map(|(heading, _)| heading.to_string()).collect()
}

/// All keys, table by table.
pub fn text() -> String {
    let schema = knee_scenario::json_schema();
    let all = SECTIONS.map(|(heading, name)| section(heading, table_of(&schema, name)));
    all.join("\n")
}

fn section(heading: &str, described: &Value) -> String {
    let mut table = Table::new(&["key", "meaning"]);
    keys(described).for_each(|(name, meaning)| table.row([name, meaning]));
    format!("{heading}\n{}", table.text())
}

/// Names of the workloads.
pub fn workload_names() -> Vec<String> {
    let schema = knee_scenario::json_schema();
    let Some(forms) = table_of(&schema, "Workload")["anyOf"].as_array() else { return Vec::new() };
    let words = forms.iter().filter_map(|form| form["enum"].as_array()).flatten();
    let tables = forms.iter().filter_map(|form| form["properties"].as_object());
    let mut names: Vec<String> = words.filter_map(Value::as_str).map(str::to_string).collect();
    for name in tables.flat_map(serde_json::Map::keys) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Workloads, each with its parameters.
pub fn workloads() -> String {
    let schema = knee_scenario::json_schema();
    let forms = table_of(&schema, "Workload")["anyOf"].as_array().cloned().unwrap_or_default();
    let mut text = String::from("bulk: Sends all the time.\n");
    for form in &forms {
        for (name, inner) in form["properties"].as_object().into_iter().flatten() {
            text += &format!("\n{name}: {}\n", line(&form["description"]));
            let reference = inner["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
            let described = reference.map_or(inner, |name| table_of(&schema, name));
            let mut table = Table::new(&["parameter", "meaning"]);
            keys(described).for_each(|(name, meaning)| table.row([name, meaning]));
            if keys(described).next().is_some() {
                text += &table.text();
            }
        }
    }
    text
}

/// A definition of the schema; the schema itself without a name.
fn table_of<'s>(schema: &'s Value, name: &str) -> &'s Value {
    if name.is_empty() { schema } else { &schema["$defs"][name] }
}

fn keys(described: &Value) -> impl Iterator<Item = (String, String)> {
    let keys = described["properties"].as_object().into_iter().flatten();
    keys.map(|(name, key)| (name.clone(), line(&key["description"])))
}

/// A description without its line ends.
fn line(description: &Value) -> String {
    let words = description.as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table is found in the schema, and every key has a meaning.
    #[test]
    fn every_key_is_described() {
        let schema = knee_scenario::json_schema();
        for (heading, name) in SECTIONS {
            let keys: Vec<_> = keys(table_of(&schema, name)).collect();
            assert!(!keys.is_empty(), "{heading}");
            assert!(keys.iter().all(|(_, meaning)| !meaning.is_empty()), "{heading} {keys:?}");
        }
    }

    /// Those of the format, with the parameters of one of them.
    #[test]
    fn workloads_are_listed() {
        assert_eq!(workload_names(), ["bulk", "page", "dash", "file", "mix"]);
        let text = workloads();
        assert!(text.contains("mix: ") && text.contains("arrival_interval"), "{text}");
    }
}
