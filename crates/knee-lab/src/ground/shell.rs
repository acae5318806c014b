//! The links of a scenario with any program over them: `knee-programs`.
//!
//! It is no ground of [`Grounds`](super::Grounds), because the flows of the scenario do not run.

use super::{Ended, Ground, GroundError, Output, PROGRAMS, Pace, testbed};
use crate::directory::{TRAFFIC, write_page};
use crate::{Error, Job, Lab, ScenarioText};
pub use knee_programs::{End, Shell, Traffic, TrafficFlow, first, join};
use knee_record::{Control, Summary, write_json};
use knee_scenario::{Override, Scenario};
use knee_testbed::link_names;
use knee_units::Time;
use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

/// Maximum duration.
const DURATION_MAX: Time = Time::from_secs(30 * 24 * 3600);

/// A shell that has ended.
#[derive(Debug)]
pub struct ShellRun {
    /// Summary of the run, with the verdict.
    pub summary: Summary,
    /// What the programs sent.
    pub traffic: Traffic,
    /// How the command ended, or why it could not start.
    pub status: io::Result<ExitStatus>,
}

impl Lab {
    /// Runs a command over the links of a scenario, and stores the run in the shell's folder, which
    /// must have been [claimed](Lab::claim). `typed` is the command line that repeats it.
    ///
    /// # Errors
    /// All errors in the scenario, what the host lacks, or a file that cannot be written.
    pub fn shell(
        &self,
        text: &ScenarioText,
        set: &[Override],
        shell: &Shell,
        capture: bool,
        typed: &str,
    ) -> Result<ShellRun, Error> {
        let scenario = Scenario {
            flows: Vec::new(),
            claims: Vec::new(),
            warmup: Time::ZERO,
            duration: DURATION_MAX,
            ..text.scenario(set)?
        };
        let ground = ShellGround { shell: shell.clone(), ended: Mutex::default() };
        let folder = shell.folder.as_path();
        let mut run = self.run(&Job { capture, ..Job::kept(&scenario, &ground, folder) })?;
        let ended = ground.ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lost = || Error::Defect("a shell left no traffic".to_owned());
        let (traffic, status) = ended.ok_or_else(lost)?;
        self.keep(folder, &scenario, &mut run, &text.inputs(&scenario))?;
        write_json(&folder.join(TRAFFIC), &traffic)?;
        write_page(folder, &scenario, &run.records, &run.summary, None, typed)?;
        Ok(ShellRun { summary: run.summary, traffic, status })
    }
}

/// The ground on which one shell runs.
#[derive(Debug)]
struct ShellGround {
    shell: Shell,
    ended: Mutex<Option<(Traffic, io::Result<ExitStatus>)>>,
}

impl Ground for ShellGround {
    fn name(&self) -> &str {
        PROGRAMS
    }

    fn summary(&self) -> &str {
        "any program over an emulator"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn captures(&self) -> bool {
        true
    }

    fn check(&self, _: &Scenario) -> Result<(), GroundError> {
        Ok(())
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let Output { samples, capture, .. } = output;
        let ended = knee_programs::run(scenario, &self.shell, control, samples, capture)?;
        let links = link_names(scenario);
        let traffic = ended.played.observed.as_ref().map(|seen| Traffic::of(seen, &links));
        let mut kept = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = traffic.map(|traffic| (traffic, ended.status));
        testbed::ended(scenario, ended.played)
    }
}
