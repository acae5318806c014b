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
mod conclusion;
mod control;
mod distribution;
mod error;
mod fidelity;
mod grid;
mod health;
mod host;
mod manifest;
mod measures;
mod numbers;
mod over_seeds;
mod part;
mod print;
mod rates;
mod recording;
mod repeat;
mod rows;
mod run;
mod schemas;
mod sections;
mod series;
mod statistics;
mod summary;
mod sweep;
mod table;
mod tables;
mod view;

pub use claims::{
    ClaimOutcome, NamedRun, Outcome, evaluate, evaluate_in_study, fill_findings, outcome_of,
};
pub use comparison::{Comparison, Difference, RunIdentity};
pub use conclusion::fill_conclusion;
pub use control::Control;
pub use distribution::Distribution;
pub use error::Error;
pub use fidelity::{
    Agreement, Fidelity, GroundRun, OverallValues, Tolerance, overall_values, read_fidelity,
    tolerances,
};
pub use grid::{FidelityGrid, GridCell, GridMedian, JUDGED};
pub use health::{HostHealth, PathCheckRecord, ProbeRecord};
pub use host::{Host, Meter, Usage};
pub use knee_cc::intern_phase;
pub use manifest::{Manifest, sha256_hex};
pub use measures::{NotMeasurable, TransferValue, jain_index, measure, transfer_ratio};
pub use over_seeds::{NamedSeeds, OverSeeds, evaluate_over_seeds};
pub use part::PART;
pub use print::Unit;
pub use rates::Rates;
pub use recording::{Recording, SampleSink, write_run};
pub use repeat::{ClaimTally, RepeatSummary};
pub use rows::{FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, TransferRecord};
pub use run::{
    FLOWS, INPUTS, LINKS, MANIFEST, OBJECTS, PATH_SAMPLES, PATHS, SAMPLES, SCENARIO, SUMMARY,
    SavedRun, TRANSFERS, holds_run_files, read_json, read_manifest, read_run, read_summary,
    write_json, write_text,
};
pub use schemas::json_schemas;
pub use sections::{
    PageSummary, PathSummary, SizeClass, TransferSummary, Typical, VideoSummary, size_classes,
};
pub use series::{Series, Timed};
pub use statistics::{
    Interval, Paired, PairedScale, RatioInterval, bootstrap_ratio, bootstrap_ratio_of_pairs,
};
pub use summary::{FlowSummary, LinkSummary, Measures, Spread, Summary, Verdict};
pub use sweep::{
    Better, GroupMeasures, LeftOut, PointGroup, PointMeasure, SweepKey, SweepMeasure, SweepPair,
    SweepPlace, SweepPoint, SweepRow, SweepRun, SweepSummary, SweepVerdict, read_sweep,
    sweep_measures, write_sweep,
};
pub use table::is_decoding;
pub use view::{FlowView, LinkView, PathView, RunView, Window};

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
    /// One row per path of each flow over several paths.
    pub paths: Vec<PathRecord>,
    /// Time series of those paths, ascending in time: the rows of a flow, of
    /// one of its paths each.
    pub path_samples: Vec<FlowSample>,
    /// One row per object of a page and segment of a video.
    pub objects: Vec<ObjectRecord>,
    /// One row per transfer of a mix, in the order of their ends.
    pub transfers: Vec<TransferRecord>,
    /// What the paths allowed over time; in no table, since the resolved
    /// scenario beside them says it.
    pub rates: Rates,
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
