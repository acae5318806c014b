//! Programs in place of Knee's own flows.

use crate::read::{At, Optional, Required, Value, refuse_kind, table};
use crate::source::Reading;
use crate::tree::Node;
use knee_units::{Bytes, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

table! {
    /// Two commands, one on each host of the path, without a shell. `{here}` is the address
    /// of the host, `{peer}` that of the other one, `{port}` the flow's port, `{cc}` the name
    /// under `cc`, `{bytes}` the number of `bytes`, `{seconds}` that of the run after the start;
    /// `{cert}`, `{key}` and `{ca}` are files with a certificate for the server, its key and
    /// the authority that signed it.
    "a program" ProgramFile {
        /// Command at the sending end, which listens: the program and its arguments.
        server: Required<Vec<At<String>>>,
        /// Command at the receiving end, which connects. The flow ends when it does.
        client: Required<Vec<At<String>>>,
        /// Payload of the whole transfer, if it is known: measures then have a completion
        /// time. Default: not known.
        bytes: Optional<Bytes>,
        /// When the client may start: once the server listens on the flow's port ("tcp",
        /// "udp"), has written a line that contains a text ("line: ready"), or after a time
        /// ("after 1 s"). Default: "tcp".
        ready: Optional<ReadyFile>,
        /// Maximum time of the client, and of the server until it is ready, which has 10 s at
        /// most. If one takes longer, the flow has failed. Default: the whole run.
        timeout: Optional<Time>,
    }
}

/// When a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadyFile {
    Tcp,
    Udp,
    Line(String),
    After(Time),
}

const EXAMPLES: &str = "\"tcp\", \"udp\", \"line: ready\", or \"after 1 s\"";

impl Value for ReadyFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<ReadyFile> {
        let Some(text) = node.as_str() else {
            refuse_kind(node, "when the server is ready", EXAMPLES, reading);
            return None;
        };
        let (word, rest) = text.split_at(text.find([':', ' ']).unwrap_or(text.len()));
        match (word, rest) {
            ("tcp", "") => return Some(ReadyFile::Tcp),
            ("udp", "") => return Some(ReadyFile::Udp),
            ("line", rest) => {
                let line = rest.strip_prefix(':').unwrap_or("").trim();
                if !line.is_empty() {
                    return Some(ReadyFile::Line(line.to_string()));
                }
            }
            ("after", rest) => match rest.trim().parse::<Time>() {
                Ok(time) => return Some(ReadyFile::After(time)),
                Err(error) => {
                    reading.problem(node.span, error.message(), "write \"after 1 s\"");
                    return None;
                }
            },
            _ => {}
        }
        let message = format!("\"{text}\" does not say when the server is ready");
        reading.problem(node.span, message, format!("write {EXAMPLES}"));
        None
    }

    fn write(&self) -> Node {
        match self {
            ReadyFile::Tcp => Node::text("tcp"),
            ReadyFile::Udp => Node::text("udp"),
            ReadyFile::Line(line) => Node::text(format!("line: {line}")),
            ReadyFile::After(time) => Node::text(format!("after {time}")),
        }
    }
}

impl JsonSchema for ReadyFile {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Ready".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(tcp|udp|line: ?.*[^ ].*|after .+)$",
            "examples": ["tcp", "udp", "line: ready", "after 1 s"]
        })
    }
}
