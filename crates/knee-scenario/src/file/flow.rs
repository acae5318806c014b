//! Flows, their controllers and the settings of their ends.

use crate::read::{At, Entry, Required, Value, key, refuse_kind, refuse_unknown, table, words};
use crate::source::Reading;
use crate::tree::{Entries, Kind, Node};
use knee_units::{Bytes, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

table! {
    /// A group of flows with the same settings.
    "a flow" FlowFile {
        /// Name of the group, for claims and records. Default: that of the
        /// controller.
        name: Entry<String>,
        /// How many flows. Default: 1.
        count: Entry<u64>,
        /// Name of the path. Default: the only one.
        path: Entry<String>,
        /// Congestion controller or preset, alone or with parameters:
        /// "bbr", { name = "bbr", drain_to_target = true }.
        cc: Required<ControllerFile>,
        /// What the application does. Default: "bulk".
        workload: Entry<WorkloadFile>,
        /// When the first flow of the group starts. Default: 0 s.
        start: Entry<Time>,
        /// Time from the start of one flow of the group to that of the
        /// next. Default: 0 s.
        start_interval: Entry<Time>,
        /// Each flow starts later by a random time up to this. Default: the
        /// scenario's.
        start_jitter: Entry<Time>,
        /// When the application stops sending. Default: at the end of the
        /// run.
        stop: Entry<Time>,
    }
    with transport: TransportFile
}

table! {
    /// Settings of both ends of a connection.
    "the transport" TransportFile {
        /// Payload of a full segment. Default: 1448 B.
        mss: Entry<Bytes>,
        /// IP and TCP headers of each segment and ACK. Default: 52 B.
        header: Entry<Bytes>,
        /// Initial window in segments. Default: 10 (RFC 6928).
        initial_window: Entry<u64>,
        /// Segments that one delayed ACK covers; 1 acknowledges each.
        /// Default: 2.
        ack_every: Entry<u64>,
        /// Longest time an ACK is held back. Default: 40 ms.
        ack_delay: Entry<Time>,
        /// Segments acknowledged at once at the start. Default: 16.
        quick_acks: Entry<u64>,
        /// Receive window, or "unlimited". Default: "unlimited".
        receive_window: Entry<WindowFile>,
        /// Whether segments are paced. Default: "auto".
        pacing: Entry<PacingWord>,
        /// Use ECN if the controller can. Default: false.
        ecn: Entry<bool>,
        /// How the delivery rate is sampled. Default: "linux".
        sampler: Entry<SamplerWord>,
        /// Smallest retransmission timeout. Default: 200 ms.
        min_rto: Entry<Time>,
        /// Largest burst that segmentation offload lets leave at once.
        /// Default: 64 KiB.
        max_burst: Entry<Bytes>,
    }
}

words! {
    /// Whether segments are paced.
    "pacing" PacingWord {
        /// As the controller needs it.
        Auto = "auto",
        /// Always.
        On = "on",
        /// Never, even if the controller asks for it.
        Off = "off",
    }
}

words! {
    /// How the delivery rate is sampled.
    "sampler" SamplerWord {
        /// As Linux does.
        Linux = "linux",
        /// With the defect of ns-3 up to 3.40.
        Ns3V335 = "ns3-3.35",
    }
}

words! {
    /// The word for no bound.
    "receive window" UnlimitedWord {
        /// No bound.
        Unlimited = "unlimited",
    }
}

/// A receive window.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum WindowFile {
    /// Never the limit.
    Unlimited(UnlimitedWord),
    /// So many bytes.
    Bytes(Bytes),
}

impl WindowFile {
    pub(crate) const UNLIMITED: WindowFile = WindowFile::Unlimited(UnlimitedWord::Unlimited);
}

impl Value for WindowFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<WindowFile> {
        match node.as_str() {
            Some("unlimited") => Some(WindowFile::UNLIMITED),
            _ => Bytes::read(node, reading).map(WindowFile::Bytes),
        }
    }
    fn write(&self) -> Node {
        match self {
            WindowFile::Unlimited(word) => word.write(),
            WindowFile::Bytes(bytes) => bytes.write(),
        }
    }
}

/// What the application does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WorkloadFile {
    /// Sends all the time.
    Bulk,
    /// One transfer of so many bytes.
    File(Bytes),
}

impl Value for WorkloadFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<WorkloadFile> {
        let help = "write \"bulk\", or { file = \"1 MB\" }";
        match &node.kind {
            Kind::String(word) if word == "bulk" => Some(WorkloadFile::Bulk),
            Kind::String(word) => {
                reading.problem(node.span, format!("there is no workload \"{word}\""), help);
                None
            }
            Kind::Table(entries) => {
                refuse_unknown(entries, "a workload", &["file"], reading);
                match node.get("file") {
                    Some(size) => Bytes::read(size, reading).map(WorkloadFile::File),
                    None => {
                        reading.problem(node.span, "the workload says nothing", help);
                        None
                    }
                }
            }
            _ => {
                refuse_kind(node, "a workload", "\"bulk\", or { file = \"1 MB\" }", reading);
                None
            }
        }
    }
    fn write(&self) -> Node {
        match self {
            WorkloadFile::Bulk => Node::text("bulk"),
            WorkloadFile::File(size) => Node::new(Kind::Table(vec![(key("file"), size.write())])),
        }
    }
}

impl JsonSchema for WorkloadFile {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What the application does.",
            "anyOf": [
                { "const": "bulk", "description": "Sends all the time." },
                {
                    "type": "object",
                    "description": "One transfer of so many bytes.",
                    "properties": { "file": generator.subschema_for::<Bytes>() },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// A congestion controller with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ControllerFile {
    pub name: At<String>,
    pub parameters: Vec<(At<String>, At<knee_cc::Value>)>,
}

impl Value for ControllerFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<ControllerFile> {
        let entries = match &node.kind {
            Kind::String(name) => {
                let name = At { value: name.clone(), span: node.span };
                return Some(ControllerFile { name, parameters: Vec::new() });
            }
            Kind::Table(entries) => entries,
            _ => {
                let example = "\"cubic\", or { name = \"bbr\", … }";
                refuse_kind(node, "a controller", example, reading);
                return None;
            }
        };
        let Some(name) = node.get("name") else {
            reading.problem(node.span, "the controller has no name", "write { name = \"bbr\", … }");
            return None;
        };
        let name = At::<String>::read(name, reading);
        let parameters = parameters(entries, reading);
        Some(ControllerFile { name: name?, parameters: parameters? })
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

/// Everything in a controller's table but its name.
fn parameters(
    entries: &Entries,
    reading: &mut Reading<'_>,
) -> Option<Vec<(At<String>, At<knee_cc::Value>)>> {
    let given = entries.iter().filter(|(key, _)| key.name != "name");
    let read: Vec<_> = given
        .map(|(key, node)| {
            let value = At::<knee_cc::Value>::read(node, reading)?;
            Some((At { value: key.name.clone(), span: key.span }, value))
        })
        .collect();
    read.into_iter().collect()
}

impl Value for knee_cc::Value {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<knee_cc::Value> {
        match &node.kind {
            Kind::Bool(on) => Some(knee_cc::Value::Switch(*on)),
            Kind::Integer(_) | Kind::Float(_) => {
                f64::read(node, reading).map(knee_cc::Value::Number)
            }
            Kind::String(text) => Some(knee_cc::Value::Text(text.clone())),
            Kind::Array(_) => Value::read(node, reading).map(knee_cc::Value::Numbers),
            _ => {
                let example = "true, 1.25, \"10 ms\", or a list of numbers";
                refuse_kind(node, "a parameter", example, reading);
                None
            }
        }
    }
    fn write(&self) -> Node {
        match self {
            knee_cc::Value::Switch(on) => on.write(),
            knee_cc::Value::Number(number) => number.write(),
            knee_cc::Value::Text(text) => text.write(),
            knee_cc::Value::Numbers(numbers) => numbers.write(),
        }
    }
}

impl JsonSchema for ControllerFile {
    fn schema_name() -> Cow<'static, str> {
        "Controller".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A congestion controller or preset, alone or with parameters; \
                            `knee list controllers` shows them all.",
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
