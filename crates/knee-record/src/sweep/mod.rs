//! Sweeps: the same scenario at every combination of some settings, several times each. Defines the
//! values kept of each run, the table of all runs, and the result at each point.

mod measures;
mod summary;
mod table;
mod verdict;
mod words;

pub use measures::{SweepMeasure, group_measures, sweep_measures};
pub use summary::{
    LeftOut, PointGroup, PointMeasure, SweepKey, SweepPoint, SweepSummary, read_sweep,
};
pub use table::{SweepRow, SweepRunAt, read_sweep_runs, sweep_columns, write_sweep};
pub use verdict::{SweepPair, SweepPlace, SweepVerdict};

use crate::{Records, Summary};
use knee_scenario::Scenario;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of the values kept of one run.
const RUN_SCHEMA: &str = "knee-sweep-run/2";

/// Stored values of one run of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRun {
    /// `knee-sweep-run/2`.
    pub schema: String,
    /// Hash of its scenario and of the scenario's files; also the name of this
    /// file. Since version 2.
    pub id: String,
    /// SHA-256 of the program that ran it.
    pub program: String,
    /// The settings of its point, as given: `flow.main.cc=bbr`.
    pub point: String,
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Data packets delivered in order.
    pub data_packets: u64,
    /// CPU time in user mode, seconds.
    pub user_cpu_s: f64,
    /// One entry per group of flows; with several groups, also one for all
    /// flows together, `*`.
    pub groups: Vec<GroupMeasures>,
}

/// The main measures of a group of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupMeasures {
    /// Its name.
    pub group: String,
    /// Values by the name of the table's column; absent if the run has none.
    pub measures: BTreeMap<String, f64>,
    /// Measures whose event did not occur during the run.
    pub never: Vec<String>,
}

impl SweepRun {
    /// Measures a run.
    pub fn new(
        program: &str,
        (id, point, repeat): (&str, &str, u64),
        scenario: &Scenario,
        (records, summary): (&Records, &Summary),
        user_cpu_s: f64,
    ) -> SweepRun {
        SweepRun {
            schema: RUN_SCHEMA.to_string(),
            id: id.to_string(),
            program: program.to_string(),
            point: point.to_string(),
            repeat,
            seed: scenario.seed,
            data_packets: records.cost.data_packets,
            user_cpu_s,
            groups: group_measures(records, summary, scenario.warmup),
        }
    }

    /// Reads the values kept of a run; `None` if they are damaged or of another version, so that
    /// the run has to be repeated.
    pub fn read(text: &[u8]) -> Option<SweepRun> {
        let run: SweepRun = serde_json::from_slice(text).ok()?;
        (run.schema == RUN_SCHEMA).then_some(run)
    }
}
