//! The JSON Schema agrees with the reader.
use crate::common::{FULL, read};
use knee_scenario::{json_schema, study_json_schema, template};
use serde_json::Value;
use std::collections::BTreeSet;

fn document(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

fn accepts(schema: &Value, text: &str) -> bool {
    jsonschema::validator_for(schema).unwrap().is_valid(&document(text))
}

#[test]
fn right_scenarios_fit_the_schema() {
    let schema = json_schema();
    for text in [FULL, template(), &read(FULL).resolved, &read(template()).resolved] {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let document = document(text);
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{} {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn wrong_scenarios_do_not() {
    let schema = json_schema();
    let cases = [
        ("duration = \"60 s\"", "duration = 60"),
        ("duration = \"60 s\"", "duration = \"60\""),
        ("duration = \"60 s\"", "duration = \"60 Mbit/s\""),
        ("duration = \"60 s\"", ""),
        ("seed = 7", "sead = 7"),
        ("seed = 7", "seed = \"7\""),
        ("\"8 BDP\"", "8"),
        ("\"0.25 %\"", "0.0025"),
        ("reorder = true", "reorder = 1"),
        ("ack_every = 1", "ack_evry = 1"),
        ("mss = \"500 B\"", "mss = 500"),
        ("mss = \"500 B\"", "msss = \"500 B\""),
        ("cc = \"reno\"", ""),
        ("name = \"pie\"", "name = \"pi\""),
        ("outcome = \"fails\"", "outcome = \"failed\""),
        ("{ file = \"1.5 MB\" }", "\"video\""),
        ("{ file = \"1.5 MB\" }", "{ file = \"1.5 MB\", page = {} }"),
        ("paths = [\"two\", \"one\"]", "paths = \"two\""),
        ("reinjection = false", "reinjection = \"no\""),
        ("{ name = \"ecf\", beta = 0.5 }", "{ beta = 0.5 }"),
        ("{ from = \"30 s\" }", "{ until = \"30 s\" }"),
        ("\"1.3 Mbit/s\"]", "\"1.3 MB\"]"),
        ("http = \"1.1\"", "http = \"2\""),
        ("shape = 1.2", "shape = \"1.2\""),
        ("arrivals = \"log\", ", "arrivals = 3, "),
        ("ready = \"line: ready\"", "ready = \"soon\""),
        ("client = [\"qc\"", "clients = [\"qc\""),
    ];
    for (part, replacement) in cases {
        assert!(FULL.contains(part), "{part}");
        assert!(!accepts(&schema, &FULL.replacen(part, replacement, 1)), "{part} -> {replacement}");
    }
}

/// Collects the names of all properties in a schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                names.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| properties(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        _ => {}
    }
}

/// Collects the names of all keys in a document, including names that a user chooses.
fn keys(document: &Value, names: &mut BTreeSet<String>) {
    match document {
        Value::Object(object) => {
            names.extend(object.keys().cloned());
            object.values().for_each(|value| keys(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, names)),
        _ => {}
    }
}

/// The reader accepts the full scenario, so each key of the schema is known to the reader;
/// `right_scenarios_fit_the_schema` tests the other direction.
#[test]
fn the_schema_has_no_key_that_the_full_scenario_lacks() {
    let (mut known, mut used) = (BTreeSet::new(), BTreeSet::new());
    properties(&json_schema(), &mut known);
    keys(&document(FULL), &mut used);
    let missing: Vec<&String> = known.difference(&used).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_study_schema_knows_a_study() {
    let study = r#"
name = "n"
source = "s"
[[run]]
name = "a"
file = "a.toml"
set = { "link.b.rate" = "1 Mbit/s" }
seed = 3
on = ["sim"]
[[model]]
name = "m"
model = "alternate-probing"
gain = 1.25
start = [0.9, 0.1]
rounds = 40
[[claim]]
says = "x"
measure = "model.filter"
of = "m"
equals = 0.5556
within = 0.001
"#;
    let schema = study_json_schema();
    assert!(accepts(&schema, study));
    assert!(accepts(&schema, &study.replace("start = [0.9, 0.1]", "starts = 100\nflows = 3")));
    assert!(!accepts(&schema, &study.replace("on =", "no =")));
    assert!(!accepts(&schema, &study.replace("file = \"a.toml\"\n", "")));
}
