//! Ground 1: runs the scenario with an event queue and a virtual clock.
//!
//! The same binary, scenario and seed give byte-identical records. What this
//! crate never does: read a clock, use threads inside a run, print.

mod ahead;
mod applications;
mod closing;
mod connections;
mod departures;
mod heap;
mod link_state;
mod log;
mod news;
mod packet;
mod queue;
mod recorder;
mod simulation;
mod subflows;
mod topology;
mod wheel;

pub use knee_record::Control;
pub use log::{CsvLog, PacketLog};

use knee_record::{Records, SampleSink};
use knee_scenario::{Algorithms, Scenario};
use knee_units::Time;
use recorder::Recorder;
use simulation::Simulation;
use std::io::{self, Write};

/// Why a run could not begin, or its output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// There are more links and timers than the event queue can number.
    #[error(
        "the scenario needs {sources} event sources, the simulator has {limit}: \
         use fewer flows (each needs four)"
    )]
    TooLarge {
        /// Number of links and timers.
        sources: usize,
        /// Largest possible number.
        limit: usize,
    },
    /// A flow is a program, which needs real hosts.
    #[error("flow \"{flow}\" is a program, which has no virtual time")]
    Program {
        /// Name of the flow, or the group of flows, in the scenario.
        flow: String,
    },
    /// A controller or scheduler, or one of its parameters, does not exist, or
    /// the program that provides it refuses to create it.
    #[error(transparent)]
    Controller(#[from] knee_cc::SelectionError),
    /// A controller reported that it cannot continue.
    #[error("the controller \"{controller}\" of flow \"{flow}\" failed at {at}: {reason}")]
    ControllerFailed {
        /// Name of the controller in the scenario.
        controller: String,
        /// Name of the flow, or the group of flows, in the scenario.
        flow: String,
        /// Simulated time of the failure.
        at: Time,
        /// The controller's reason.
        reason: String,
    },
    /// The packet log could not be written.
    #[error("the packet log cannot be written: {0}")]
    Log(#[from] io::Error),
    /// The samples could not be written.
    #[error(transparent)]
    Samples(#[from] knee_record::Error),
}

/// Checks whether the simulator supports a scenario, except for its size. Runs nothing.
///
/// # Errors
///
/// [`SimulationError::Program`].
pub fn check_scenario(scenario: &Scenario) -> Result<(), SimulationError> {
    match scenario.flows.iter().find(|flow| flow.program.is_some()) {
        Some(flow) => Err(SimulationError::Program { flow: flow.name.clone() }),
        None => Ok(()),
    }
}

/// Runs a scenario to its end, or until `control` stops it.
pub fn run(scenario: &Scenario, control: &Control) -> Result<Records, SimulationError> {
    run_to(scenario, Algorithms::built_in(), control, &mut (), None)
}

/// Runs a scenario and writes every packet's events to `log`, for a checker
/// that shares no code with the simulator.
pub fn run_logged(
    scenario: &Scenario,
    control: &Control,
    mut log: impl Write,
) -> Result<Records, SimulationError> {
    run_to(scenario, Algorithms::built_in(), control, &mut (), Some(&mut log))
}

/// Runs a scenario that was read with `algorithms`. Every sample goes to
/// `samples`, because the records of a long run hold only some of them; every
/// packet's events go to `log`, if there is one.
pub fn run_to(
    scenario: &Scenario,
    algorithms: &Algorithms,
    control: &Control,
    samples: &mut dyn SampleSink,
    log: Option<&mut dyn Write>,
) -> Result<Records, SimulationError> {
    check_scenario(scenario)?;
    let recorder = Recorder::new(samples);
    let Some(log) = log else {
        return complete(Simulation::new(scenario, algorithms, ())?, recorder, control)
            .map(|done| done.0);
    };
    let simulation = Simulation::new(scenario, algorithms, CsvLog::new(log, scenario)?)?;
    let (records, log) = complete(simulation, recorder, control)?;
    log.finish()?;
    Ok(records)
}

fn complete<L: PacketLog>(
    mut simulation: Simulation<'_, L>,
    mut recorder: Recorder<'_>,
    control: &Control,
) -> Result<(Records, L), SimulationError> {
    let end = simulation.run(&mut recorder, control)?;
    Ok((recorder.into_records(&simulation, end), simulation.into_log()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Embedded, Source, parse};

    /// Loading state in advance affects no result, with slots that come and go.
    #[test]
    fn looking_ahead_changes_nothing() {
        let text = "duration = \"20 s\"\n\
             [link.a]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"0.5 %\"\n\
             [link.b]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             [path.a]\nforward = [\"a\"]\nreverse_delay = \"5 ms\"\n\
             [path.b]\nforward = [\"b\"]\nreverse_delay = \"10 ms\"\n\
             [[flow]]\npath = \"a\"\ncc = \"bbr\"\ncount = 3\nworkload = \"bulk\"\n\
             [[flow]]\npaths = [\"a\", \"b\"]\ncc = \"cubic\"\nworkload = { mix = { \
             arrival_interval = \"50 ms\", sizes = \"50 kB\" } }\n";
        let source = Source { name: "test.toml", loader: &Embedded(&[]) };
        let scenario = parse(text, &source, &[]).expect("the scenario is right");
        let rows = |looks_ahead: bool| {
            let mut run = Simulation::new(&scenario, Algorithms::built_in(), ()).expect("it fits");
            if looks_ahead {
                run.begin_to_look_ahead();
            }
            let mut nowhere = ();
            let mut recorder = Recorder::new(&mut nowhere);
            let end = run.run(&mut recorder, &Control::default()).expect("it runs");
            let records = recorder.into_records(&run, end);
            format!("{:?} {:?} {:?}", records.flows, records.links, records.transfers)
        };
        assert_eq!(rows(true), rows(false));
    }

    /// Finished transfers take no space: there are as many slots and
    /// connections as were ever open at once, or have packets in the network.
    #[test]
    fn finished_transfers_leave_nothing_behind() {
        for paths in ["path = \"a\"", "paths = [\"a\", \"b\"]"] {
            let text = format!(
                "duration = \"300 s\"\n\
                 [link.a]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"0.1 %\"\n\
                 [link.b]\nrate = \"50 Mbit/s\"\ndelay = \"10 ms\"\n\
                 [path.a]\nforward = [\"a\"]\nreverse_delay = \"5 ms\"\n\
                 [path.b]\nforward = [\"b\"]\nreverse_delay = \"10 ms\"\n\
                 [[flow]]\n{paths}\ncc = \"cubic\"\nworkload = {{ mix = {{ \
                 arrival_interval = \"20 ms\", sizes = \"50 kB\" }} }}\n"
            );
            let source = Source { name: "test.toml", loader: &Embedded(&[]) };
            let scenario = parse(&text, &source, &[]).expect("the scenario is right");
            let mut run = Simulation::new(&scenario, Algorithms::built_in(), ()).expect("it fits");
            let mut nowhere = ();
            let mut recorder = Recorder::new(&mut nowhere);
            let end = run.run(&mut recorder, &Control::default()).expect("it runs");
            let transfers = recorder.into_records(&run, end).transfers.len();
            assert!(transfers > 14_000, "{transfers} transfers");
            assert!(run.connections.len() < 100, "{} connections", run.connections.len());
            assert!(run.slots.len() < 400, "{} slots", run.slots.len());
            assert!(run.flows[0].live.len() < 20, "{} live", run.flows[0].live.len());
        }
    }
}
