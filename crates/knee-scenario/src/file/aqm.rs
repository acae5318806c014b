//! AQMs, by name alone or with parameters, as registered in `knee-link`.

use crate::read::{At, Value, key, refuse_unknown, word};
use crate::source::Reading;
use crate::tree::{Key, Kind as NodeKind, Node, Span};
use knee_link::AqmEntry;
use knee_units::registry::{Kind, Parameter};
use knee_units::{Bytes, Fraction, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};
use std::borrow::Cow;

/// The AQM of a queue with the given parameters, each of its declared kind.
#[derive(Clone, Debug)]
pub(crate) struct AqmFile {
    pub entry: &'static AqmEntry,
    pub parameters: Vec<(&'static Parameter, At<knee_units::registry::Value>)>,
}

impl PartialEq for AqmFile {
    fn eq(&self, other: &AqmFile) -> bool {
        let parameters = |file: &AqmFile| -> Vec<_> {
            file.parameters.iter().map(|(known, at)| (known.name, at.clone())).collect()
        };
        self.entry.name == other.entry.name && parameters(self) == parameters(other)
    }
}

impl AqmFile {
    /// An AQM without parameters.
    pub(crate) fn plain(entry: &'static AqmEntry) -> AqmFile {
        AqmFile { entry, parameters: Vec::new() }
    }

    /// Returns the place where a parameter is given.
    pub(crate) fn span_of(&self, name: &str) -> Option<Span> {
        self.parameters.iter().find(|(known, _)| known.name == name).map(|(_, at)| at.span)
    }
}

impl Value for AqmFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<AqmFile> {
        let NodeKind::Table(entries) = &node.kind else {
            return read_name(node, reading).map(AqmFile::plain);
        };
        refuse_unknown(entries, "an AQM", &keys(), reading);
        let entry = match node.get("name") {
            Some(name) => read_name(name, reading),
            None => {
                reading.problem(node.span, "an AQM needs \"name\"", "add name = …");
                None
            }
        };
        let mut parameters = Vec::new();
        for (key, node) in entries.iter().filter(|(key, _)| key.name != "name") {
            let own = entry.and_then(|entry| declared(entry, &key.name));
            // Another AQM's parameter is read too, to report an invalid value.
            let known = own
                .or_else(|| knee_link::aqms().iter().find_map(|entry| declared(entry, &key.name)));
            let Some(known) = known else { continue };
            let value = read_parameter(known, node, reading);
            match (entry, own) {
                (Some(entry), None) => refuse_foreign(entry, key, node, reading),
                _ => parameters.extend(value.map(|value| (known, value))),
            }
        }
        Some(AqmFile { entry: entry?, parameters })
    }

    fn write(&self) -> Node {
        let name = Node::text(self.entry.name);
        if self.entry.parameters.is_empty() {
            return name;
        }
        let parameters =
            self.parameters.iter().map(|(known, at)| (key(known.name), write(known, &at.value)));
        Node::new(NodeKind::Table(std::iter::once((key("name"), name)).chain(parameters).collect()))
    }
}

/// Returns the keys of the tables of all AQMs, each once.
fn keys() -> Vec<&'static str> {
    let mut keys = vec!["name"];
    for parameter in knee_link::aqms().iter().flat_map(|entry| entry.parameters) {
        if !keys.contains(&parameter.name) {
            keys.push(parameter.name);
        }
    }
    keys
}

fn read_name(node: &Node, reading: &mut Reading<'_>) -> Option<&'static AqmEntry> {
    let words: Vec<(&str, &AqmEntry)> =
        knee_link::aqms().iter().map(|entry| (entry.name, entry)).collect();
    word(node, "AQM", &words, reading)
}

fn declared(entry: &'static AqmEntry, name: &str) -> Option<&'static Parameter> {
    entry.parameters.iter().find(|parameter| parameter.name == name)
}

/// Reports a parameter that belongs to another AQM.
fn refuse_foreign(entry: &AqmEntry, key: &Key, node: &Node, reading: &mut Reading<'_>) {
    let own: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
    let help = match own.as_slice() {
        [] => "remove it".to_string(),
        own => format!("its parameters are {}", own.join(", ")),
    };
    reading.problem(node.span, format!("{} has no parameter {}", entry.name, key.name), help);
}

/// Reads a value of the parameter's kind in its usual notation.
fn read_parameter(
    parameter: &Parameter,
    node: &Node,
    reading: &mut Reading<'_>,
) -> Option<At<knee_units::registry::Value>> {
    let value = match parameter.kind {
        Kind::Time { .. } => {
            knee_units::registry::Value::Text(Time::read(node, reading)?.to_string())
        }
        Kind::Size { .. } => {
            knee_units::registry::Value::Text(Bytes::read(node, reading)?.to_string())
        }
        Kind::Rate { .. } => {
            knee_units::registry::Value::Text(Rate::read(node, reading)?.to_string())
        }
        Kind::Part => knee_units::registry::Value::Text(Fraction::read(node, reading)?.to_string()),
        Kind::Count { .. } => knee_units::registry::Value::Number(u64::read(node, reading)? as f64),
        Kind::Number { .. } => knee_units::registry::Value::Number(f64::read(node, reading)?),
        Kind::Switch => knee_units::registry::Value::Switch(bool::read(node, reading)?),
        Kind::SwitchOrWord(_)
        | Kind::Word(_)
        | Kind::DurationOrOff
        | Kind::Window
        | Kind::Numbers { .. }
        | Kind::File => Value::read(node, reading)?,
    };
    Some(At { value, span: node.span })
}

fn write(parameter: &Parameter, value: &knee_units::registry::Value) -> Node {
    match (parameter.kind, value) {
        (Kind::Count { .. }, knee_units::registry::Value::Number(number)) => {
            (*number as u64).write()
        }
        _ => value.write(),
    }
}

impl JsonSchema for AqmFile {
    fn schema_name() -> Cow<'static, str> {
        "AqmFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, table) =
            (generator.subschema_for::<AqmName>(), generator.subschema_for::<AqmTable>());
        json_schema!({
            "description": "The AQM that drops and marks packets.",
            "anyOf": [
                { "description": "With its defaults.", "allOf": [name] },
                { "description": "With parameters.", "allOf": [table] },
            ],
        })
    }
}

/// Schema of the names.
struct AqmName;

impl JsonSchema for AqmName {
    fn schema_name() -> Cow<'static, str> {
        "AqmName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |entry: &AqmEntry| json!({ "description": entry.summary, "const": entry.name });
        let words: Vec<_> = knee_link::aqms().iter().map(word).collect();
        json_schema!({ "description": "Active queue management by name.", "oneOf": words })
    }
}

/// Schema of a table with parameters.
struct AqmTable;

impl JsonSchema for AqmTable {
    fn schema_name() -> Cow<'static, str> {
        "AqmTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        properties.insert("name".to_string(), generator.subschema_for::<AqmName>().to_value());
        for key in keys().into_iter().skip(1) {
            let all = knee_link::aqms().iter();
            let all = all.filter_map(|entry| Some((entry.name, declared(entry, key)?)));
            let all: Vec<(&str, &Parameter)> = all.collect();
            properties.insert(key.to_string(), property(&all, generator));
        }
        json_schema!({
            "description": "Active queue management with parameters; each takes only its own.",
            "type": "object",
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    }
}

/// Returns the schema of a parameter that one or more AQMs have.
fn property(declared: &[(&str, &Parameter)], generator: &mut SchemaGenerator) -> serde_json::Value {
    let mut meanings: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, parameter) in declared {
        let default = match parameter.default {
            "" => String::new(),
            default => format!(", default {default}"),
        };
        let meaning = format!("{}{default}.", parameter.summary);
        match meanings.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, names)) => names.push(name),
            None => meanings.push((meaning, vec![name])),
        }
    }
    let lines: Vec<String> = meanings
        .into_iter()
        .map(|(meaning, names)| format!("{}: {meaning}", names.join(", ")))
        .collect();
    let mut schema = match declared.first().map(|(_, parameter)| parameter.kind) {
        Some(Kind::Time { .. }) => generator.subschema_for::<Time>(),
        Some(Kind::Size { .. }) => generator.subschema_for::<Bytes>(),
        Some(Kind::Rate { .. }) => generator.subschema_for::<Rate>(),
        Some(Kind::Part) => generator.subschema_for::<Fraction>(),
        Some(Kind::Count { .. }) => generator.subschema_for::<u64>(),
        Some(Kind::Number { .. }) => generator.subschema_for::<f64>(),
        Some(Kind::Switch) => generator.subschema_for::<bool>(),
        _ => Schema::default(),
    }
    .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".to_string(), lines.join("\n").into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key has the same kind of value in every AQM, so that its schema holds for all of them.
    #[test]
    fn a_key_has_one_kind() {
        for key in keys() {
            let all = knee_link::aqms().iter().flat_map(|entry| entry.parameters);
            let mut kinds = all.filter(|p| p.name == key).map(|p| std::mem::discriminant(&p.kind));
            let first = kinds.next();
            assert!(kinds.all(|kind| Some(kind) == first), "{key}");
        }
    }
}
