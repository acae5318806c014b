//! Selections from a registry, by name and with parameters: controllers and schedulers.

use crate::read::{At, Value, key, refuse_kind};
use crate::source::Reading;
use crate::tree::{Entries, Kind, Node, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A kind of algorithm that is selected from a registry.
pub(crate) trait Choice: Clone + Debug + PartialEq {
    /// What it is called in messages.
    const NOUN: &'static str;
    /// Name used as an example.
    const EXAMPLE: &'static str;
    /// Name in the schema.
    const SCHEMA: &'static str;
    /// Description in the schema.
    const DESCRIPTION: &'static str;
}

/// A congestion controller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Controller;

impl Choice for Controller {
    const NOUN: &'static str = "controller";
    const EXAMPLE: &'static str = "bbr";
    const SCHEMA: &'static str = "Controller";
    const DESCRIPTION: &'static str = "A congestion controller or preset, alone or with \
                                       parameters; `knee list controllers` shows them all.";
}

/// A multipath scheduler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scheduler;

impl Choice for Scheduler {
    const NOUN: &'static str = "scheduler";
    const EXAMPLE: &'static str = "ecf";
    const SCHEMA: &'static str = "Scheduler";
    const DESCRIPTION: &'static str =
        "A scheduler of several paths or a preset, alone or with parameters.";
}

/// A congestion controller with its parameters.
pub(crate) type ControllerFile = SelectionFile<Controller>;
/// A scheduler with its parameters.
pub(crate) type SchedulerFile = SelectionFile<Scheduler>;

/// A name or preset with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SelectionFile<C> {
    pub name: At<String>,
    pub parameters: Vec<(At<String>, At<knee_units::registry::Value>)>,
    choice: PhantomData<C>,
}

impl<C> SelectionFile<C> {
    fn new(
        name: At<String>,
        parameters: Vec<(At<String>, At<knee_units::registry::Value>)>,
    ) -> Self {
        SelectionFile { name, parameters, choice: PhantomData }
    }

    /// Creates a selection with a name alone, as if it had been given.
    pub(crate) fn named(name: &str) -> Self {
        SelectionFile::new(At { value: name.to_string(), span: Span::default() }, Vec::new())
    }
}

impl<C: Choice> Value for SelectionFile<C> {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<SelectionFile<C>> {
        let entries = match &node.kind {
            Kind::String(name) => {
                let name = At { value: name.clone(), span: node.span };
                return Some(SelectionFile::new(name, Vec::new()));
            }
            Kind::Table(entries) => entries,
            _ => {
                let wanted = format!("a {}", C::NOUN);
                let example = format!("\"{0}\", or {{ name = \"{0}\", … }}", C::EXAMPLE);
                refuse_kind(node, &wanted, &example, reading);
                return None;
            }
        };
        let Some(name) = node.get("name") else {
            let help = format!("write {{ name = \"{}\", … }}", C::EXAMPLE);
            reading.problem(node.span, format!("the {} has no name", C::NOUN), help);
            return None;
        };
        let name = At::<String>::read(name, reading);
        let parameters = parameters(entries, reading);
        Some(SelectionFile::new(name?, parameters?))
    }
    fn write(&self) -> Node {
        if self.parameters.is_empty() {
            return self.name.write();
        }
        let mut entries = vec![(key("name"), self.name.write())];
        for (name, value) in &self.parameters {
            entries.push((key(&name.value), value.write()));
        }
        Node::new(Kind::Table(entries))
    }
}

/// Reads everything in the table except the name.
fn parameters(
    entries: &Entries,
    reading: &mut Reading<'_>,
) -> Option<Vec<(At<String>, At<knee_units::registry::Value>)>> {
    let given = entries.iter().filter(|(key, _)| key.name != "name");
    let read: Vec<_> = given
        .map(|(key, node)| {
            let value = At::<knee_units::registry::Value>::read(node, reading)?;
            Some((At { value: key.name.clone(), span: key.span }, value))
        })
        .collect();
    read.into_iter().collect()
}

impl Value for knee_units::registry::Value {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<knee_units::registry::Value> {
        match &node.kind {
            Kind::Bool(on) => Some(knee_units::registry::Value::Switch(*on)),
            Kind::Integer(_) | Kind::Float(_) => {
                f64::read(node, reading).map(knee_units::registry::Value::Number)
            }
            Kind::String(text) => Some(knee_units::registry::Value::Text(text.clone())),
            Kind::Array(_) => Value::read(node, reading).map(knee_units::registry::Value::Numbers),
            _ => {
                let example = "true, 1.25, \"10 ms\", or a list of numbers";
                refuse_kind(node, "a parameter", example, reading);
                None
            }
        }
    }
    fn write(&self) -> Node {
        match self {
            knee_units::registry::Value::Switch(on) => on.write(),
            knee_units::registry::Value::Number(number) => number.write(),
            knee_units::registry::Value::Text(text) => text.write(),
            knee_units::registry::Value::Numbers(numbers) => numbers.write(),
        }
    }
}

impl<C: Choice> JsonSchema for SelectionFile<C> {
    fn schema_name() -> Cow<'static, str> {
        C::SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": C::DESCRIPTION,
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                    "additionalProperties": {
                        "anyOf": [
                            { "type": ["boolean", "number", "string"] },
                            { "type": "array", "items": { "type": "number" } },
                        ],
                    },
                },
            ],
        })
    }
}
