//! Record schemas, Parquet in and out, all measures.
//!
//! What this crate never does: depend on a ground, print.

mod rows;

pub use rows::{FlowRecord, FlowSample, LinkSample};

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
