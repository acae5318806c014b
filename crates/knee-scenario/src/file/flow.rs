//! Flows.

use super::{ControllerFile, ProgramFile, SchedulerFile, TransportFile};
use crate::read::{At, Optional, Required, Value, Whole, table};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use crate::workload::WorkloadFile;
use knee_units::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// Largest number of flows of all groups together.
pub(crate) const FLOWS_MAX: u64 = 100_000;

table! {
    /// A group of flows with the same settings.
    "a flow" FlowFile {
        /// Name of the group, for claims and records. Default: that of the
        /// controller.
        name: Optional<String>,
        /// Number of flows. Default: 1.
        count: Optional<Whole<1, FLOWS_MAX>>,
        /// Name of the path. Default: the only one.
        path: Optional<PathName>,
        /// Instead of `path`: names of the paths of a multipath connection,
        /// at most 32.
        paths: Optional<Vec<At<String>>>,
        /// With `paths`: scheduler or preset, alone or with parameters:
        /// "sctc", { name = "ecf", beta = 0.25 }. Default: "minrtt".
        scheduler: Optional<SchedulerFile>,
        /// With `paths`: if no new data may be sent, data outstanding on a
        /// slower or failed path is repeated on a better one. Default: true.
        reinjection: Optional<bool>,
        /// With `paths`: backup paths, used only if no other path is available.
        /// Default: none.
        backup: Optional<Vec<At<String>>>,
        /// Congestion controller or preset, alone or with parameters:
        /// "bbr", { name = "bbr", drain_to_target = true }.
        cc: Required<ControllerFile>,
        /// Workload of the application: "bulk", { file = "1 MB" }, "page",
        /// "dash", { bursts = { … } }, { mix = { … } }. Default: "bulk".
        workload: Optional<WorkloadFile>,
        /// Instead of `workload`: two programs, which the ground `programs` runs. `cc` is then
        /// what they are said to use.
        program: Optional<ProgramFile>,
        /// Name of a group of flows: a transfer is sent once that flow's is acknowledged
        /// to its end. A mix waits for a mix, transfer by transfer, and has its arrivals; a
        /// file waits for a file. Default: waits for none.
        after: Optional<String>,
        /// When the first flow of the group starts. Default: 0 s.
        start: Optional<Time>,
        /// Time from the start of one flow of the group to that of the
        /// next. Default: 0 s.
        start_interval: Optional<Time>,
        /// Each flow starts later by a random time up to this. Default: the
        /// scenario's.
        start_jitter: Optional<Time>,
        /// When the application stops sending. Default: at the end of the
        /// run.
        stop: Optional<Time>,
    }
    with transport: TransportFile
}

/// Name of the path of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathName(pub String);

impl Value for PathName {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<PathName> {
        let Kind::Array(items) = &node.kind else {
            return String::read(node, reading).map(PathName);
        };
        let names: Vec<String> =
            items.iter().filter_map(Node::as_str).map(|name| format!("{name:?}")).collect();
        let help = match &names[..] {
            [] => "write path = \"name\", or paths = [\"a\", \"b\"] for several".to_string(),
            [only] => format!("write path = {only}, or paths = [{only}, \"b\"] for several"),
            several => format!("write paths = [{}]", several.join(", ")),
        };
        reading.problem(node.span, "expected the name of one path, found a list", help);
        None
    }
    fn write(&self) -> Node {
        self.0.write()
    }
}

impl JsonSchema for PathName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
