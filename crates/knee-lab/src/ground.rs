//! Where a scenario can run. A new ground is a crate with a [`Ground`] of its
//! own, and a line in [`Grounds::built_in`] or a call of [`Grounds::with`].

#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "quic")]
mod quic;
mod simulator;
#[cfg(any(feature = "kernel", feature = "quic"))]
mod testbed;

#[cfg(feature = "kernel")]
pub use kernel::Kernel;
#[cfg(feature = "quic")]
pub use quic::Quic;
pub use simulator::Simulator;

use knee_record::{Control, HostHealth, Records, SampleSink, Verdict};
use knee_registry::did_you_mean;
use knee_scenario::Scenario;
use std::fmt;
use std::io::{self, Write};

/// Name of the ground that outcomes on record are those of.
pub const SIMULATOR: &str = "sim";
/// Name of the ground that the simulator is compared with.
pub const KERNEL: &str = "kernel";
/// Name of the ground of QUIC, where this build has it.
pub const QUIC: &str = "quic";
/// Those in real time, which the simulator is compared with.
pub const REAL: [&str; 2] = [KERNEL, QUIC];

/// Something that can run scenarios.
pub trait Ground: fmt::Debug + Send + Sync {
    /// Its name in arguments, studies, directories and records: lower-case
    /// letters, digits and hyphens.
    fn name(&self) -> &str;

    /// What it is, in a few words.
    fn summary(&self) -> &str;

    /// How its time passes.
    fn pace(&self) -> Pace;

    /// Real time that it needs before a scenario begins, seconds, about.
    fn setup_s(&self) -> f64 {
        0.0
    }

    /// Whether it can write every event of every packet.
    fn writes_packet_log(&self) -> bool {
        false
    }

    /// Does what must be done before the process has a second thread. Where
    /// that fails, [`Ground::check_host`] says so.
    fn prepare_process(&self) {}

    /// Whether this host can run anything on it. Makes nothing that stays.
    ///
    /// # Errors
    /// What the host lacks, and what to do about it.
    fn check_host(&self) -> Result<(), GroundError> {
        Ok(())
    }

    /// Whether it can run a scenario. Runs nothing.
    ///
    /// # Errors
    /// Why not, and what to write instead.
    fn check(&self, scenario: &Scenario) -> Result<(), GroundError>;

    /// Runs a scenario to its end, or until `control` says to stop, and keeps
    /// `control` told of the time reached.
    ///
    /// # Errors
    /// What kept it from beginning or from going on.
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
    /// As fast as it can be computed: runs go side by side.
    Virtual,
    /// As it does: runs would disturb each other, and go one by one.
    Real,
}

/// Where a run puts what it does not keep in memory.
pub struct Output<'o> {
    /// Takes every row of the time series.
    pub samples: &'o mut dyn SampleSink,
    /// Takes every event of every packet; only of a ground that
    /// [`Ground::writes_packet_log`].
    pub packet_log: Option<&'o mut dyn Write>,
}

/// What a ground hands over at the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// The rows.
    pub records: Records,
    /// How the host kept up, and what that makes of the run; of a ground in
    /// real time.
    pub judged: Option<Judged>,
}

/// A run in real time as its ground judges it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// How the host kept up.
    pub health: HostHealth,
    /// Whether the run is sound.
    pub verdict: Verdict,
    /// Why it is not; can be empty.
    pub reason: String,
}

/// Why a ground does not run a scenario, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// It cannot do what the scenario asks for.
    #[error(transparent)]
    Scenario(Refusal),
    /// The host lacks or refuses something.
    #[error(transparent)]
    Host(Refusal),
    /// The samples could not be kept.
    #[error(transparent)]
    Samples(knee_record::Error),
    /// The packet log could not be written.
    #[error("the packet log cannot be written: {0}")]
    PacketLog(io::Error),
    /// A mistake in the ground.
    #[error("{0}")]
    Defect(String),
}

impl GroundError {
    /// The reason as a part of a sentence that names the run.
    pub fn reason(&self) -> String {
        match self {
            GroundError::Scenario(refusal) | GroundError::Host(refusal) => {
                refusal.reason.clone().unwrap_or_else(|| refusal.to_string())
            }
            other => other.to_string(),
        }
    }
}

/// What cannot be, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {advice}")]
pub struct Refusal {
    /// What is wrong, with its place: one sentence without a full stop.
    pub what: String,
    /// What to write or do instead.
    pub advice: String,
    /// The reason alone, where the place goes without saying.
    pub reason: Option<String>,
}

impl Refusal {
    /// What is wrong, and what to do.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Refusal {
        Refusal { what: what.into(), advice: advice.into(), reason: None }
    }

    /// The same with the reason alone.
    pub fn because(self, reason: impl Into<String>) -> Refusal {
        Refusal { reason: Some(reason.into()), ..self }
    }
}

/// Grounds by name, in the order in which they are listed and run.
#[derive(Debug, Default)]
pub struct Grounds {
    all: Vec<Box<dyn Ground>>,
}

/// No ground has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no ground \"{name}\": {advice}")]
pub struct UnknownGround {
    /// What was asked for.
    pub name: String,
    /// What to write instead.
    pub advice: String,
}

impl Grounds {
    /// None.
    pub fn new() -> Grounds {
        Grounds::default()
    }

    /// Those of this version of Knee.
    pub fn built_in() -> Grounds {
        let grounds = Grounds::new().with(Simulator::default());
        #[cfg(feature = "kernel")]
        let grounds = grounds.with(Kernel);
        #[cfg(feature = "quic")]
        let grounds = grounds.with(Quic);
        grounds
    }

    /// These and another one; it takes the place of one with its name.
    pub fn with(mut self, ground: impl Ground + 'static) -> Grounds {
        match self.all.iter_mut().find(|known| known.name() == ground.name()) {
            Some(known) => *known = Box::new(ground),
            None => self.all.push(Box::new(ground)),
        }
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Ground> {
        self.all.iter().map(|ground| &**ground)
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.iter().map(|ground| ground.name()).collect()
    }

    /// The ground with a name.
    ///
    /// # Errors
    /// That there is none.
    pub fn get(&self, name: &str) -> Result<&dyn Ground, UnknownGround> {
        self.iter().find(|ground| ground.name() == name).ok_or_else(|| UnknownGround {
            name: name.to_string(),
            advice: did_you_mean(name, self.names()),
        })
    }

    /// The grounds with these names, each once, in their own order.
    ///
    /// # Errors
    /// That one of them is not there.
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
