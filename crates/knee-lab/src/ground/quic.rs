//! The ground "quic": `knee-quic`.

use super::{Ended, Ground, GroundError, Output, Pace, QUIC, Refusal, testbed};
use knee_quic::QuicError;
use knee_record::Control;
use knee_scenario::Scenario;

/// QUIC connections and bundles of them over an emulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quic;

impl Ground for Quic {
    fn name(&self) -> &str {
        QUIC
    }

    fn summary(&self) -> &str {
        "QUIC, over several paths too, over an emulator"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn setup_s(&self) -> f64 {
        testbed::SETUP_S
    }

    fn captures(&self) -> bool {
        true
    }

    fn prepare_process(&self) {
        let _ = knee_testbed::enter_user_namespace();
    }

    fn check_host(&self) -> Result<(), GroundError> {
        Ok(knee_testbed::check_host()?)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_quic::check_scenario(scenario)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let observing = testbed::observing(&output)?;
        let played = knee_quic::run_to(scenario, control, output.samples, observing)?;
        testbed::ended(scenario, played)
    }
}

impl From<QuicError> for GroundError {
    fn from(error: QuicError) -> GroundError {
        let whole = error.to_string();
        match error {
            QuicError::Testbed(error) => error.into(),
            QuicError::Unsupported { place, problem, advice } => {
                let what = format!("{place}: {problem}");
                GroundError::Scenario(Refusal::new(what.clone(), advice).because(what))
            }
            QuicError::Flow { .. } => GroundError::Host(Refusal::new(whole, "run it again")),
        }
    }
}
