//! The ground "sim": `knee-sim`.

use super::{Ended, Ground, GroundError, Output, Pace, Refusal, SIMULATOR};
use knee_record::Control;
use knee_scenario::{Algorithms, Scenario};
use knee_sim::SimulationError;
use std::sync::Arc;

/// The simulator.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    /// Algorithms that scenarios may name, if not Knee's own.
    algorithms: Option<Arc<Algorithms>>,
}

impl Simulator {
    /// Creates a simulator for scenarios that were read with a program's own controllers and
    /// schedulers.
    pub fn with_algorithms(algorithms: Arc<Algorithms>) -> Simulator {
        Simulator { algorithms: Some(algorithms) }
    }
}

impl Ground for Simulator {
    fn name(&self) -> &str {
        SIMULATOR
    }

    fn summary(&self) -> &str {
        "The simulator"
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn writes_packet_log(&self) -> bool {
        true
    }

    /// Reading a scenario already reports what the simulator does not support, except for millions
    /// of flows, and programs.
    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_sim::check_scenario(scenario)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let algorithms = self.algorithms.as_deref().unwrap_or(Algorithms::built_in());
        let Output { samples, packet_log, .. } = output;
        let records = knee_sim::run_to(scenario, algorithms, control, samples, packet_log)?;
        Ok(Ended { records, judged: None })
    }
}

impl From<SimulationError> for GroundError {
    fn from(error: SimulationError) -> GroundError {
        let what = error.to_string();
        match error {
            SimulationError::Samples(error) => GroundError::Samples(error),
            SimulationError::Log(source) => GroundError::PacketLog(source),
            SimulationError::TooLarge { .. } | SimulationError::Controller(_) => {
                GroundError::Scenario(Refusal::new(what, "change the scenario"))
            }
            SimulationError::Program { .. } => GroundError::Scenario(Refusal::new(
                what,
                "add --on programs, or write workload in place of program",
            )),
            SimulationError::ControllerFailed { .. } => {
                GroundError::Scenario(Refusal::new(what, "correct the controller"))
            }
        }
    }
}
