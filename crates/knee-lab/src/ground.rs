//! Where a scenario can run. A new ground is a crate with its own [`Ground`], and a line in
//! [`Grounds::built_in`] or a call of [`Grounds::with`].

#[cfg(feature = "hosts")]
mod hosts;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "kernel")]
mod programs;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "kernel")]
pub mod shell;
mod simulator;
#[cfg(any(feature = "kernel", feature = "quic"))]
mod testbed;

#[cfg(feature = "hosts")]
pub use hosts::Hosts;
#[cfg(feature = "kernel")]
pub use kernel::Kernel;
#[cfg(feature = "kernel")]
use programs::Programs;
#[cfg(feature = "quic")]
pub use quic::Quic;
pub use simulator::Simulator;

use knee_record::{Control, HostHealth, Records, SampleSink, Verdict};
use knee_scenario::Scenario;
use knee_units::registry::did_you_mean;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Name of the ground to which recorded outcomes refer.
pub const SIMULATOR: &str = "sim";
/// Name of the ground with which the simulator is compared.
pub const KERNEL: &str = "kernel";
/// Name of the QUIC ground, if this build has it.
pub const QUIC: &str = "quic";
/// Name of the ground whose flows are programs, if this build has it.
pub const PROGRAMS: &str = "programs";
/// Name of the ground between two machines, if this build has it.
pub const HOSTS: &str = "hosts";
/// The real-time grounds with which the simulator is compared.
pub const REAL: [&str; 2] = [KERNEL, QUIC];

/// Something that can run scenarios.
pub trait Ground: fmt::Debug + Send + Sync {
    /// Its name in arguments, studies, directories and records: lower-case
    /// letters, digits and hyphens.
    fn name(&self) -> &str;

    /// Short description.
    fn summary(&self) -> &str;

    /// Returns whether its time is virtual or real.
    fn pace(&self) -> Pace;

    /// Worst verdict with which a run counts where runs are compared.
    fn counts_up_to(&self) -> Verdict {
        Verdict::Degraded
    }

    /// Approximate real time of the setup before a scenario, seconds.
    fn setup_s(&self) -> f64 {
        0.0
    }

    /// Whether it can write a packet log.
    fn writes_packet_log(&self) -> bool {
        false
    }

    /// Whether it can capture packets.
    fn captures(&self) -> bool {
        false
    }

    /// Arguments of `knee run` that it needs beside its name.
    fn arguments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Performs setup that must precede the process's second thread. If it fails,
    /// [`Ground::check_host`] reports that.
    fn prepare_process(&self) {}

    /// Checks that this host can run anything on it. Leaves nothing behind.
    ///
    /// # Errors
    /// What the host lacks, and the remedy.
    fn check_host(&self) -> Result<(), GroundError> {
        Ok(())
    }

    /// Checks that it supports a scenario. Runs nothing.
    ///
    /// # Errors
    /// The reason, and what to write instead.
    fn check(&self, scenario: &Scenario) -> Result<(), GroundError>;

    /// Runs a scenario to its end or until `control` requests a stop, and reports the current time
    /// to `control`.
    ///
    /// # Errors
    /// What prevented the run from starting or continuing.
    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError>;
}

/// How the time of a ground passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Time is computed: runs can proceed in parallel.
    Virtual,
    /// Wall-clock time: runs would disturb each other, so they proceed one by one.
    Real,
}

/// Destinations for the output of a run that is not kept in memory.
pub struct Output<'o> {
    /// Receives every row of the time series.
    pub samples: &'o mut dyn SampleSink,
    /// Receives the packet log; only on a ground that [`Ground::writes_packet_log`].
    pub packet_log: Option<&'o mut dyn Write>,
    /// Receives each packet (pcapng); only on a ground that [`Ground::captures`].
    pub capture: Option<File>,
    /// Folder for what a ground writes itself: that of the run, or of the command that compares it.
    pub directory: Option<&'o Path>,
}

/// Result of a run, as returned by a ground.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// The rows.
    pub records: Records,
    /// How the host kept up, and the resulting verdict; on a real-time ground.
    pub judged: Option<Judged>,
}

/// A ground's judgement of a run in real time.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// How the host kept up, where that is measured.
    pub health: Option<HostHealth>,
    /// Verdict on the run.
    pub verdict: Verdict,
    /// Reason for the verdict; may be empty.
    pub reason: String,
}

/// Why a ground could not run a scenario or complete it.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// It does not support something in the scenario.
    #[error(transparent)]
    Scenario(Refusal),
    /// The host lacks or denies something.
    #[error(transparent)]
    Host(Refusal),
    /// The samples could not be stored.
    #[error(transparent)]
    Samples(knee_record::Error),
    /// The packet log could not be written.
    #[error("the packet log cannot be written: {0}")]
    PacketLog(io::Error),
    /// The capture could not be written.
    #[error("the capture cannot be written: {0}")]
    Capture(io::Error),
    /// A defect in the ground.
    #[error("{0}")]
    Defect(String),
}

impl GroundError {
    /// The reason, phrased as part of a sentence that names the run.
    pub fn reason(&self) -> String {
        match self {
            GroundError::Scenario(refusal) | GroundError::Host(refusal) => {
                refusal.reason.clone().unwrap_or_else(|| refusal.to_string())
            }
            other => other.to_string(),
        }
    }
}

/// A refusal, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {advice}")]
pub struct Refusal {
    /// What is wrong, with its place: one sentence without a full stop.
    pub what: String,
    /// What to write or do instead.
    pub advice: String,
    /// The reason alone, for contexts that make the place clear.
    pub reason: Option<String>,
}

impl Refusal {
    /// Creates a refusal from the problem and the advice.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Refusal {
        Refusal { what: what.into(), advice: advice.into(), reason: None }
    }

    /// Adds the reason alone.
    pub fn because(self, reason: impl Into<String>) -> Refusal {
        Refusal { reason: Some(reason.into()), ..self }
    }
}

/// Grounds by name, in the order of listing and running.
#[derive(Debug, Default)]
pub struct Grounds {
    all: Vec<Box<dyn Ground>>,
}

/// No ground has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no ground \"{name}\": {advice}")]
pub struct UnknownGround {
    /// The requested name.
    pub name: String,
    /// What to write instead.
    pub advice: String,
}

impl Grounds {
    /// Creates an empty set.
    pub fn new() -> Grounds {
        Grounds::default()
    }

    /// The grounds of this build of Knee.
    pub fn built_in() -> Grounds {
        let grounds = Grounds::new().with(Simulator::default());
        #[cfg(feature = "kernel")]
        let grounds = grounds.with(Kernel);
        #[cfg(feature = "quic")]
        let grounds = grounds.with(Quic);
        #[cfg(feature = "kernel")]
        let grounds = grounds.with(Programs);
        #[cfg(feature = "hosts")]
        let grounds = grounds.with(Hosts::default());
        grounds
    }

    /// Adds a ground, replacing one with the same name.
    pub fn with(mut self, ground: impl Ground + 'static) -> Grounds {
        match self.all.iter_mut().find(|known| known.name() == ground.name()) {
            Some(known) => *known = Box::new(ground),
            None => self.all.push(Box::new(ground)),
        }
        self
    }

    /// Iterates over all grounds.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Ground> {
        self.all.iter().map(|ground| &**ground)
    }

    /// Names of all grounds.
    pub fn names(&self) -> Vec<&str> {
        self.iter().map(|ground| ground.name()).collect()
    }

    /// Returns the ground with this name.
    ///
    /// # Errors
    /// No ground has this name.
    pub fn get(&self, name: &str) -> Result<&dyn Ground, UnknownGround> {
        self.iter().find(|ground| ground.name() == name).ok_or_else(|| UnknownGround {
            name: name.to_string(),
            advice: did_you_mean(name, self.names()),
        })
    }

    /// Returns the grounds with these names, each once, in the order of this set.
    ///
    /// # Errors
    /// No ground has one of these names.
    pub fn choose(&self, names: &[impl AsRef<str>]) -> Result<Vec<&dyn Ground>, UnknownGround> {
        names.iter().try_for_each(|name| self.get(name.as_ref()).map(drop))?;
        let named = |ground: &&dyn Ground| names.iter().any(|name| name.as_ref() == ground.name());
        Ok(self.iter().filter(named).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grounds_are_chosen_once_and_in_their_order() {
        let grounds = Grounds::built_in();
        let names = |chosen: &[&dyn Ground]| -> Vec<String> {
            chosen.iter().map(|ground| ground.name().to_string()).collect()
        };
        let all: Vec<&dyn Ground> = grounds.iter().collect();
        assert_eq!(names(&all)[0], SIMULATOR);
        let mut backwards = names(&all);
        backwards.reverse();
        backwards.extend(names(&all));
        assert_eq!(names(&grounds.choose(&backwards).unwrap()), names(&all));
        let unknown = grounds.choose(&["sim", "moon"]).unwrap_err();
        assert!(unknown.name == "moon" && unknown.advice.contains("\"sim\""), "{unknown}");
        assert_eq!(grounds.get("Sin").unwrap_err().advice, "did you mean \"sim\"?");
    }

    #[test]
    fn a_ground_takes_the_place_of_its_namesake() {
        let grounds = Grounds::new().with(Simulator::default()).with(Simulator::default());
        assert_eq!(grounds.iter().count(), 1);
    }
}
