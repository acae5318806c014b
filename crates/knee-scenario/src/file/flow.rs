//! Flows.

use super::{ControllerFile, SchedulerFile, TransportFile, WorkloadFile};
use crate::read::{At, Entry, Required, table};
use knee_units::Time;

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
        /// Instead of `path`: names of the paths of a multipath connection,
        /// at most eight.
        paths: Entry<Vec<At<String>>>,
        /// With `paths`: scheduler or preset, alone or with parameters:
        /// "sctc", { name = "ecf", beta = 0.25 }. Default: "minrtt".
        scheduler: Entry<SchedulerFile>,
        /// With `paths`: when nothing new may be sent, what a slower or
        /// failed path holds is repeated on a better one. Default: true.
        reinjection: Entry<bool>,
        /// With `paths`: those that are used only when no other can be.
        /// Default: none.
        backup: Entry<Vec<At<String>>>,
        /// Congestion controller or preset, alone or with parameters:
        /// "bbr", { name = "bbr", drain_to_target = true }.
        cc: Required<ControllerFile>,
        /// What the application does: "bulk", { file = "1 MB" }, "page",
        /// "dash", { mix = { … } }. Default: "bulk".
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
