//! Ground 1: the scenario under an event queue and a virtual clock.
//!
//! The same binary, scenario and seed give the same records to the byte.
//! What this crate never does: read a clock, use threads inside a run, print.

mod log;
mod packet;
mod queue;
mod recorder;
mod simulation;
mod topology;

pub use log::{CsvLog, PacketLog};

use knee_record::Records;
use knee_scenario::Scenario;
use recorder::Recorder;
use simulation::Simulation;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A hand on a run from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set: the run ends early and keeps its records.
    pub stop: AtomicBool,
    /// Simulated time reached, nanoseconds.
    pub now_ns: AtomicU64,
}

/// Why a run could not begin, or its log not be written.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The event queue cannot name so many links and timers.
    #[error(
        "the scenario needs {sources} event sources, the simulator has {limit}: \
         use fewer flows (each needs four)"
    )]
    TooLarge {
        /// Links and timers.
        sources: usize,
        /// The most there can be.
        limit: usize,
    },
    /// A controller or a parameter of it does not exist.
    #[error(transparent)]
    Controller(#[from] knee_cc::SelectionError),
    /// The packet log could not be written.
    #[error("the packet log cannot be written: {0}")]
    Log(#[from] io::Error),
}

/// Runs a scenario to its end, or until `control` says to stop.
pub fn run(scenario: &Scenario, control: &Control) -> Result<Records, SimulationError> {
    let mut simulation = Simulation::new(scenario, ())?;
    let mut recorder = Recorder::new(scenario);
    let end = simulation.run(&mut recorder, control);
    Ok(recorder.into_records(&simulation, end))
}

/// Runs a scenario and writes every packet's events to `out`, for a checker
/// that shares no code with the simulator.
pub fn run_logged(
    scenario: &Scenario,
    control: &Control,
    out: impl Write,
) -> Result<Records, SimulationError> {
    let mut simulation = Simulation::new(scenario, CsvLog::new(out, scenario)?)?;
    let mut recorder = Recorder::new(scenario);
    let end = simulation.run(&mut recorder, control);
    let records = recorder.into_records(&simulation, end);
    simulation.into_log().finish()?;
    Ok(records)
}
