//! Tests docs/scenario.md: its tables come from the schema and from the reader's defaults, and its
//! examples use every key.

use knee_scenario::{Embedded, Source, json_schema, parse};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const BEGIN: &str = "<!-- keys of ";
const END: &str = "<!-- end -->";
const ROOT: &str = "a scenario";

/// Values of a key, by the table that declares it and the key.
type Uses = BTreeMap<(String, String), BTreeSet<String>>;

/// Returns the blocks of the page: the text after the fence, and the contents.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// Returns the keys of a table, each with its schema.
fn keys(schema: &Value) -> Map<String, Value> {
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array());
    let mut found = schema["properties"].as_object().cloned().unwrap_or_default();
    for branch in branches.flatten() {
        for (key, declared) in branch["properties"].as_object().into_iter().flatten() {
            let mut declared = declared.clone();
            if let (None, Some(text)) = (declared.get("description"), branch.get("description")) {
                declared["description"] = text.clone();
            }
            found.insert(key.clone(), declared);
        }
    }
    found
}

struct Reference {
    schema: Value,
    /// Defaults that the reader fills in where an example leaves a key out.
    filled: Uses,
    /// Anchors of the tables' headings on the page.
    anchors: BTreeMap<String, String>,
}

impl Reference {
    fn definition(&self, name: &str) -> &Value {
        if name == ROOT { &self.schema } else { &self.schema["$defs"][name] }
    }

    /// Returns the names of all tables of the file.
    fn tables(&self) -> BTreeSet<String> {
        let named = self.schema["$defs"].as_object().unwrap().keys().map(String::as_str);
        named
            .chain([ROOT])
            .filter(|name| !keys(self.definition(name)).is_empty())
            .map(str::to_string)
            .collect()
    }

    /// Returns the keys of a table. Keys that a flow shares with the transport, and a delay over
    /// time with other tables, are listed there.
    fn own_keys(&self, table: &str) -> Map<String, Value> {
        let mut own = keys(self.definition(table));
        let shared = match table {
            "FlowFile" => "TransportFile",
            "DelaySeriesFile" => "SeriesFile",
            _ => return own,
        };
        let shared = keys(self.definition(shared));
        own.retain(|key, declared| shared.get(key) != Some(declared));
        own
    }

    /// Collects the keys that a value uses, recursively.
    fn visit(&self, name: &str, schema: &Value, value: &Value, uses: &mut Uses) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            return self.visit(name, self.definition(name), value, uses);
        }
        for key in ["anyOf", "allOf", "oneOf"] {
            for branch in schema[key].as_array().into_iter().flatten() {
                self.visit(name, branch, value, uses);
            }
        }
        for entry in value.as_array().into_iter().flatten() {
            self.visit(name, &schema["items"], entry, uses);
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            if let Some(declared) = schema["properties"].get(key) {
                let written = value.as_str().map_or(value.to_string(), str::to_string);
                uses.entry((name.to_string(), key.clone())).or_default().insert(written);
                self.visit(name, declared, value, uses);
            } else if schema["additionalProperties"].get("$ref").is_some() {
                self.visit(name, &schema["additionalProperties"], value, uses);
            }
        }
    }

    fn uses(&self, text: &str) -> Uses {
        let mut uses = Uses::new();
        self.visit(ROOT, &self.schema, &toml::from_str(text).unwrap(), &mut uses);
        uses
    }

    /// Describes the values of a key.
    fn kind(&self, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            let definition = self.definition(name);
            return match self.anchors.get(name) {
                Some(anchor) if definition.get("anyOf").is_none() => format!("[table](#{anchor})"),
                Some(anchor) => format!("name or [table](#{anchor})"),
                None => self.kind(definition),
            };
        }
        let branches =
            ["anyOf", "oneOf", "allOf"].into_iter().find_map(|key| schema[key].as_array());
        if let Some(branches) = branches {
            let mut kinds: Vec<String> = Vec::new();
            for kind in branches.iter().map(|branch| self.kind(branch)) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return kinds.join(" or ");
        }
        if let Some(examples) = schema["examples"].as_array() {
            return examples.iter().map(|e| format!("`{e}`")).collect::<Vec<_>>().join(", ");
        }
        if let Some(word) = schema.get("const") {
            return format!("`{word}`");
        }
        if schema["enum"].as_array().is_some() {
            return "[measure](measures.md)".to_string();
        }
        match schema["type"].as_str() {
            Some("array") => format!("list of {}", self.kind(&schema["items"])),
            Some("object") => {
                format!("{} for each name", self.kind(&schema["additionalProperties"]))
            }
            Some("boolean") => "`true`, `false`".to_string(),
            Some("string") => "text".to_string(),
            Some(number) => number.to_string(),
            None => panic!("no words for {schema}"),
        }
    }

    /// Returns the default of a key and the description without it. The default is the reader's
    /// value if it is always the same, otherwise that of the declaration.
    fn default_of(&self, table: &str, key: &str, declared: &Value) -> (String, String) {
        let text = declared["description"].as_str();
        let text = text.or(self.definition(table)["description"].as_str()).unwrap_or_default();
        let text = text.replace('\n', " ");
        let (meaning, words) = match text.split_once("Default: ") {
            Some((meaning, words)) => (meaning.trim().to_string(), Some(words.to_string())),
            None => (text, None),
        };
        let required = |schema: &Value| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|name| name == key))
        };
        let filled = self.filled.get(&(table.to_string(), key.to_string()));
        let default = match (filled, words) {
            _ if required(self.definition(table)) => "required".to_string(),
            (Some(values), Some(words)) if values.len() == 1 => {
                let value = values.first().unwrap();
                if words.contains(value) && words.len() <= value.len() + 3 {
                    format!("`{value}`")
                } else {
                    words.trim_end_matches('.').to_string()
                }
            }
            (_, Some(words)) => words.trim_end_matches('.').to_string(),
            _ => String::new(),
        };
        (default, meaning)
    }

    /// Returns the page's table for a table of the file.
    fn rows(&self, table: &str) -> String {
        let mut text =
            "| key | value | default | meaning |\n| --- | --- | --- | --- |\n".to_string();
        let mut words: BTreeMap<String, String> = BTreeMap::new();
        let escaped = |text: &str| text.replace('|', "\\|");
        for (key, declared) in self.own_keys(table) {
            let (default, meaning) = self.default_of(table, &key, &declared);
            let kind = self.kind(&declared);
            text +=
                &format!("| `{key}` | {kind} | {} | {} |\n", escaped(&default), escaped(&meaning));
            self.words(&declared, &key, &mut words);
        }
        if !words.is_empty() {
            text += "\n| word | meaning |\n| --- | --- |\n";
            text.extend(words.into_values());
        }
        text
    }

    /// Returns rows for the words that a key takes, each with its meaning.
    fn words(&self, schema: &Value, key: &str, words: &mut BTreeMap<String, String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            if self.anchors.contains_key(name) {
                return;
            }
            return self.words(self.definition(name), key, words);
        }
        for list in ["anyOf", "oneOf", "allOf"] {
            for branch in schema[list].as_array().into_iter().flatten() {
                self.words(branch, key, words);
            }
        }
        if let (Some(word), Some(text)) = (schema.get("const"), schema["description"].as_str()) {
            let text = text.replace('\n', " ");
            words.insert(format!("{key}{word}"), format!("| `{key} = {word}` | {text} |\n"));
        }
    }
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

fn reference(page: &str) -> (Reference, Uses) {
    let mut anchors = BTreeMap::new();
    let mut heading = "";
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        } else if let Some(name) = line.strip_prefix(BEGIN) {
            anchors.insert(name.split(':').next().unwrap().to_string(), anchor(heading));
        }
    }
    let mut reference = Reference { schema: json_schema(), filled: Uses::new(), anchors };
    let blocks = blocks(page);
    let files: Vec<(&str, &[u8])> = blocks
        .iter()
        .filter_map(|(fence, text)| Some((fence.strip_prefix("text ")?, text.as_bytes())))
        .collect();
    let mut used = Uses::new();
    for (_, text) in blocks.iter().filter(|(fence, _)| *fence == "toml") {
        let source = Source { name: "example.toml", loader: &Embedded(&files) };
        let scenario = parse(text, &source, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let written = reference.uses(text);
        let is_like = written.contains_key(&("PathFile".to_string(), "like".to_string()));
        for (key, values) in reference.uses(&scenario.resolved) {
            // A key that the example gives elsewhere may be written in other words. What comes from
            // a ready-made path is no default.
            if !written.contains_key(&key) && !is_like {
                reference.filled.entry(key).or_default().extend(values);
            }
        }
        for (key, values) in written {
            used.entry(key).or_default().extend(values);
        }
    }
    (reference, used)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md")
}

/// `KNEE_WRITE_SCHEMAS=1 cargo test -p knee-scenario --test it reference::` rewrites the tables.
#[test]
fn the_reference_is_current() {
    let kept = std::fs::read_to_string(path()).unwrap();
    let (reference, _) = reference(&kept);
    let mut shown = BTreeSet::new();
    let mut parts = kept.split(BEGIN);
    let mut page = parts.next().unwrap().to_string();
    for part in parts {
        let (name, rest) = part.split_once(": begin -->\n").unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        page += &format!("{BEGIN}{name}: begin -->\n{}{END}{after}", reference.rows(name));
        assert!(shown.insert(name.to_string()), "{name} is on the page twice");
    }
    assert_eq!(shown, reference.tables(), "each table of the file has one on the page");
    if std::env::var_os("KNEE_WRITE_SCHEMAS").is_some() {
        std::fs::write(path(), &page).unwrap();
    }
    let kept = std::fs::read_to_string(path()).unwrap();
    assert!(kept == page, "docs/scenario.md is out of date: set KNEE_WRITE_SCHEMAS=1, run again");
}

/// Every key has an example.
#[test]
fn every_key_has_an_example() {
    let (reference, used) = reference(&std::fs::read_to_string(path()).unwrap());
    let mut missing = Vec::new();
    for table in reference.tables() {
        for key in keys(reference.definition(&table)).keys() {
            if !used.contains_key(&(table.clone(), key.clone())) {
                missing.push(format!("{table}.{key}"));
            }
        }
    }
    assert!(missing.is_empty(), "without an example in docs/scenario.md: {missing:?}");
}

/// A default that a declaration gives as a value is the reader's.
#[test]
fn declared_defaults_are_the_readers() {
    let (reference, _) = reference(&std::fs::read_to_string(path()).unwrap());
    let mut compared = 0;
    for ((table, key), values) in &reference.filled {
        let declared = keys(reference.definition(table));
        let text = declared[key]["description"].as_str().unwrap_or_default().replace('\n', " ");
        let Some((_, words)) = text.split_once("Default: ") else { continue };
        // Skips words such as "the scenario's", and values that depend on others.
        let is_value = words.starts_with(|c: char| c.is_ascii_digit() || c == '"')
            || ["true", "false"].iter().any(|word| words.starts_with(word));
        if !is_value || key == "buffer" && table == "LinkFile" || key == "ladder" {
            continue;
        }
        for value in values {
            assert!(words.contains(value.as_str()), "{table}.{key}: {words} but {value} is read");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}
