//! Record schemas, Parquet in and out, all measures.
//!
//! A ground fills [`Records`]; [`Summary::new`] measures them and
//! [`write_run`] keeps them. Everything that is said about a run afterwards,
//! by tables, reports and comparisons, comes from what [`read_run`] gives
//! back.
//!
//! What this crate never does: depend on a ground, print, put anything of
//! the host or the clock into a summary or a table.

mod claims;
mod comparison;
mod distribution;
mod error;
mod host;
mod manifest;
mod measures;
mod numbers;
mod phase;
mod print;
mod repeat;
mod rows;
mod run;
mod schemas;
mod summary;
mod table;
mod tables;
mod view;

pub use claims::{ClaimOutcome, NamedRun, Outcome, evaluate, evaluate_in_study, outcome_of};
pub use comparison::{Comparison, Difference, RunIdentity};
pub use distribution::Distribution;
pub use error::Error;
pub use host::{Host, Meter, Usage};
pub use manifest::{Manifest, sha256_hex};
pub use measures::{NotMeasurable, jain_index, measure};
pub use phase::intern as intern_phase;
pub use print::Unit;
pub use repeat::{ClaimTally, Interval, RepeatSummary};
pub use rows::{FlowRecord, FlowSample, LinkSample};
pub use run::{
    FLOWS, LINKS, MANIFEST, SAMPLES, SCENARIO, SUMMARY, SavedRun, holds_run_files, read_manifest,
    read_run, read_summary, write_json, write_run, write_text,
};
pub use schemas::json_schemas;
pub use summary::{FlowSummary, LinkSummary, Measures, Spread, Summary, Verdict};
pub use view::{FlowView, LinkView, RunView, Window};

/// Everything a ground hands over when a run ends or is interrupted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One row per flow.
    pub flows: Vec<FlowRecord>,
    /// Time series of flows, ascending in time.
    pub samples: Vec<FlowSample>,
    /// Time series of links, ascending in time.
    pub links: Vec<LinkSample>,
    /// Names of the links, by index.
    pub link_names: Vec<String>,
    /// When the run ended, nanoseconds; earlier than the scenario's duration
    /// if it was interrupted.
    pub end_ns: u64,
    /// The run was cut short.
    pub interrupted: bool,
    /// What the run cost, for the manifest.
    pub cost: Cost,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Events processed.
    pub events: u64,
    /// Data packets delivered in order.
    pub data_packets: u64,
}
