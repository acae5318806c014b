//! The ground "programs": `knee-programs`.

use super::{Ended, Ground, GroundError, Output, PROGRAMS, Pace, Refusal, testbed};
use crate::directory::TRAFFIC;
use knee_programs::{Finding, ProgramsError, Traffic};
use knee_record::{Control, Verdict, write_json};
use knee_scenario::Scenario;
use knee_testbed::link_names;

/// Programs of the user's own over an emulator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Programs;

impl Ground for Programs {
    fn name(&self) -> &str {
        PROGRAMS
    }

    fn summary(&self) -> &str {
        "programs in place of Knee's own flows, over an emulator"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn captures(&self) -> bool {
        true
    }

    /// A program that lacked the processor was limited by this host.
    fn counts_up_to(&self) -> Verdict {
        Verdict::Valid
    }

    fn setup_s(&self) -> f64 {
        testbed::SETUP_S
    }

    fn prepare_process(&self) {
        let _ = knee_testbed::enter_user_namespace();
    }

    fn check_host(&self) -> Result<(), GroundError> {
        Ok(knee_testbed::check_host()?)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_programs::check_scenario(scenario)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let Output { samples, capture, directory, .. } = output;
        let ended = knee_programs::run_flows(scenario, control, samples, capture, directory)?;
        if let (Some(directory), Some(observed)) = (directory, &ended.played.observed) {
            let traffic = Traffic::of(observed, &link_names(scenario));
            write_json(&directory.join(TRAFFIC), &traffic).map_err(GroundError::Samples)?;
        }
        let mut run = testbed::ended(scenario, ended.played)?;
        if let Some(judged) = &mut run.judged {
            judged.verdict = judged.verdict.max(worst(&ended.findings));
            let found = ended.findings.into_iter().map(|finding| finding.what);
            let reasons = Some(std::mem::take(&mut judged.reason)).filter(|it| !it.is_empty());
            judged.reason = reasons.into_iter().chain(found).collect::<Vec<_>>().join("; ");
        }
        Ok(run)
    }
}

fn worst(findings: &[Finding]) -> Verdict {
    Verdict::worst(findings.iter().map(|finding| finding.verdict))
}

impl From<ProgramsError> for GroundError {
    fn from(error: ProgramsError) -> GroundError {
        match error {
            ProgramsError::Testbed(error) => error.into(),
            ProgramsError::Kernel(error) => error.into(),
            ProgramsError::Unsupported { place, problem, advice } => {
                let what = format!("{place}: {problem}");
                GroundError::Scenario(Refusal::new(what.clone(), advice).because(what))
            }
        }
    }
}
