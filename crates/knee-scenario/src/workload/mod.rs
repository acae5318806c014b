//! Workloads of applications. Each workload has a file with its keys and their check; to add one,
//! add a file and a line in [`workloads!`] below.

mod bursts;
mod dash;
mod mix;
mod page;
mod sizes;

use crate::check::{Inputs, in_range};
use crate::read::{At, Optional, Value, key, refuse_kind, refuse_unknown};
use crate::source::Reading;
use crate::tree::{self, Node, Span};
use bursts::BurstsFile;
use dash::DashFile;
use knee_units::registry::nearest;
use knee_units::{Bytes, Time};
use knee_workload::Workload;
use mix::MixFile;
use page::PageFile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

const SIZE_MIN: Bytes = Bytes::new(1);
const SIZE_MAX: Bytes = Bytes::new(1_000_000_000_000_000);

/// Limits that a workload must fit into.
pub(crate) struct Room {
    /// Place at which a problem of the whole workload is shown.
    pub span: Span,
    /// Time from the start of the group's first flow until its last must stop.
    pub life: Time,
    /// Flows with this workload.
    pub flows: u64,
    /// Whether they wait for the transfers of another.
    pub is_after: bool,
}

/// A workload with settings: a table of the file, or one value.
trait Kind: Value + JsonSchema {
    /// Returns the settings implied by its name alone; `None` if some have no default.
    fn alone() -> Option<Self> {
        None
    }

    /// Checks the settings; returns `None` if something is invalid.
    fn check(
        &mut self,
        room: &Room,
        inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload>;
}

/// Declares the workloads that have settings: `"key" Variant(declaration): "what it is", "example"`.
macro_rules! workloads {
    ($($key:literal $variant:ident($file:ty): $what:literal, $example:literal;)*) => {
        /// Workload of the application.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum WorkloadFile {
            #[doc = "Sends without pause."]
            Bulk,
            $(#[doc = $what] $variant(Box<$file>),)*
        }

        const KEYS: &[&str] = &[$($key),*];

        /// How to write each.
        const EXAMPLES: &[&str] = &[$($example),*];

        impl WorkloadFile {
            /// Returns the workload with this name, without settings.
            fn alone(name: &str) -> Option<WorkloadFile> {
                match name {
                    "bulk" => Some(WorkloadFile::Bulk),
                    $($key => <$file>::alone().map(Box::new).map(WorkloadFile::$variant),)*
                    _ => None,
                }
            }

            /// Reads the workload with this key and its settings.
            fn with(
                key: &str,
                settings: &Node,
                reading: &mut Reading<'_>,
            ) -> Option<WorkloadFile> {
                match key {
                    $($key => {
                        <$file>::read(settings, reading).map(Box::new).map(WorkloadFile::$variant)
                    })*
                    _ => None,
                }
            }

            /// Returns its key and its settings; `None` if it has none.
            fn settings(&self) -> Option<(&'static str, Node)> {
                match self {
                    WorkloadFile::Bulk => None,
                    $(WorkloadFile::$variant(file) => Some(($key, file.as_ref().write())),)*
                }
            }

            /// Checks the workload; returns `None` if something is invalid.
            fn check(
                &mut self,
                room: &Room,
                inputs: &mut Inputs<'_>,
                reading: &mut Reading<'_>,
            ) -> Option<Workload> {
                match self {
                    WorkloadFile::Bulk => Some(Workload::Bulk),
                    $(WorkloadFile::$variant(file) => file.check(room, inputs, reading),)*
                }
            }

            /// Returns the schemas of the settings, by key, with a description of each.
            fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, &'static str, Schema)> {
                vec![$(($key, $what, generator.subschema_for::<$file>())),*]
            }
        }
    };
}

workloads! {
    "file" File(Bytes): "One transfer of a given size.", "{ file = \"1 MB\" }";
    "bursts" Bursts(BurstsFile): "Requests with pauses in between, over one connection.",
        "{ bursts = { size = \"10 kB\", pause = \"50 ms\" } }";
    "page" Page(PageFile): "A web page.", "\"page\"";
    "dash" Dash(DashFile): "Segmented video.", "\"dash\"";
    "mix" Mix(MixFile): "Transfers that arrive at random.",
        "{ mix = { arrival_interval = \"50 ms\", sizes = \"100 kB\" } }";
}

/// Lists how to write each workload.
fn examples() -> String {
    match EXAMPLES {
        [others @ .., last] => format!("\"bulk\", {}, or {last}", others.join(", ")),
        [] => "\"bulk\"".to_string(),
    }
}

/// Checks the workload; returns `None` if something is invalid.
pub(crate) fn check(
    entry: &mut Optional<WorkloadFile>,
    room: &Room,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Workload> {
    entry.fill(WorkloadFile::Bulk);
    let Optional::Given(at) = entry else { return None };
    at.value.check(room, inputs, reading)
}

impl Kind for Bytes {
    fn check(
        &mut self,
        room: &Room,
        _inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        let size = Optional::Given(At { value: *self, span: room.span });
        in_range(&size, "the file", SIZE_MIN, SIZE_MAX, reading);
        Some(Workload::File(self.get()))
    }
}

impl Value for WorkloadFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<WorkloadFile> {
        let Some(entries) = node.entries() else { return word(node, reading) };
        refuse_unknown(entries, "a workload", KEYS, reading);
        let given: Vec<_> = entries.iter().filter(|(key, _)| KEYS.contains(&&*key.name)).collect();
        let [(kind, settings)] = given[..] else {
            // If the only key is unknown, the problem is already reported.
            if entries.is_empty() || given.len() > 1 {
                let message = match given.len() {
                    0 => "the workload is empty",
                    _ => "a flow has one workload",
                };
                reading.problem(node.span, message, format!("write {}", examples()));
            }
            return None;
        };
        WorkloadFile::with(&kind.name, settings, reading)
    }
    fn write(&self) -> Node {
        match self.settings() {
            None => Node::text("bulk"),
            Some((kind, settings)) => Node::new(tree::Kind::Table(vec![(key(kind), settings)])),
        }
    }
}

/// Reads a workload given by its name alone.
fn word(node: &Node, reading: &mut Reading<'_>) -> Option<WorkloadFile> {
    let Some(name) = node.as_str() else {
        refuse_kind(node, "a workload", &examples(), reading);
        return None;
    };
    let workload = WorkloadFile::alone(name);
    if workload.is_none() {
        let (message, help) = match KEYS.iter().zip(EXAMPLES).find(|(key, _)| **key == name) {
            Some((_, example)) => {
                (format!("the workload \"{name}\" needs settings"), format!("write {example}"))
            }
            None => (format!("there is no workload \"{name}\""), instead_of(name)),
        };
        reading.problem(node.span, message, help);
    }
    workload
}

/// Says what to write instead of an unknown name.
fn instead_of(name: &str) -> String {
    match nearest(name, names()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write {}", examples()),
    }
}

/// Returns the workloads that can be given by name alone.
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("bulk")
        .chain(KEYS.iter().copied())
        .filter(|name| WorkloadFile::alone(name).is_some())
}

impl JsonSchema for WorkloadFile {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut any = vec![json_schema!({
            "description": "Sends all the time; or the workload of this name by its defaults.",
            "enum": names().collect::<Vec<_>>(),
        })];
        any.extend(WorkloadFile::schemas(generator).into_iter().map(|(key, what, inner)| {
            json_schema!({
                "type": "object",
                "description": what,
                "properties": { key: inner },
                "required": [key],
                "additionalProperties": false,
            })
        }));
        json_schema!({ "description": "Workload of the application.", "anyOf": any })
    }
}
