//! What is asked of an observer in the emulator, and what a run returns with it.

use crate::Health;
use knee_emulator::{FlowTable, Observed};
use knee_record::{Records, RowSender};
use knee_units::Time;
use std::fs::File;

/// Makes rows from the table of flows as it is at a time.
pub type SampleFlows = Box<dyn FnMut(Time, &FlowTable, &RowSender) + Send>;

/// What an observer of a run does beside listing the flows.
#[derive(Default)]
pub struct Observing {
    /// Where it writes each packet (pcapng), if anywhere.
    pub capture: Option<File>,
    /// Called at each sampling interval of the scenario, and after the last event.
    pub sample: Option<SampleFlows>,
}

/// A run that ended.
#[derive(Debug)]
pub struct Played {
    /// The rows.
    pub records: Records,
    /// How the host kept up.
    pub health: Health,
    /// What the observer saw; `None` without one.
    pub observed: Option<Observed>,
}
