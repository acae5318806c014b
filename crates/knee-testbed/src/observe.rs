//! What is asked of an observer in the emulator, and what a run returns with it.

use crate::Health;
use knee_emulator::Observed;
use knee_record::Records;
use std::fs::File;

/// What an observer of a run does beside listing the flows.
#[derive(Debug, Default)]
pub struct Observing {
    /// Where it writes each packet (pcapng), if anywhere.
    pub capture: Option<File>,
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
