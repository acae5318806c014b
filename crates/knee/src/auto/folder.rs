//! The folder of `knee steer auto`: a file for the result of each stage, written once.

use super::decide::{Class, Decision};
use crate::arguments::AutoStage;
use crate::failure::Failure;
use ipnet::IpNet;
use knee_policy::{Journal, PolicyError, Timeline, since_1970};
use knee_record::{Error as RecordError, read_json, write_json};
use knee_steer::Guarded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Schema of all results.
pub const SCHEMA: &str = "knee-steer-auto/1";
/// The lock of the folder, also what it is recognised by.
const LOCK: &str = "auto.lock";

/// Result of the stage advise: all groups, those that go on first, by what they are worth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command.
    pub command: String,
    /// Seed of all draws.
    pub seed: u64,
    /// The schedule of the experiment.
    pub schedule: Planned,
    /// Harms that it accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepts: Vec<Guarded>,
    /// Groups with fewer bytes, which were not examined.
    pub left_out: usize,
    /// The others.
    pub groups: Vec<Group>,
}

/// Schedule of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Length of a block, nanoseconds.
    pub block_ns: u64,
    /// Initial part in which new connections do not count, nanoseconds.
    pub burn_in_ns: u64,
    /// Pairs of blocks before the first triple.
    pub calibration: u64,
    /// Triples.
    pub triples: u64,
}

impl Planned {
    /// Takes it from a timeline.
    pub fn of(timeline: &Timeline) -> Planned {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let Timeline { block, burn_in, calibration, triples } = *timeline;
        Planned { block_ns: ns(block), burn_in_ns: ns(burn_in), calibration, triples }
    }

    /// Returns it with at most so many triples.
    pub fn timeline(&self, triples_max: u64) -> Timeline {
        Timeline {
            block: Duration::from_nanos(self.block_ns),
            burn_in: Duration::from_nanos(self.burn_in_ns),
            calibration: self.calibration,
            triples: self.triples.min(triples_max),
        }
    }
}

/// A group of connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Prefixes of its clients.
    pub prefixes: Vec<IpNet>,
    /// The host's port.
    pub port: Option<u16>,
    /// Connections under the controller in use.
    pub connections: usize,
    /// Mean time between their arrivals, seconds.
    pub interval_s: f64,
    /// The controller in use, and the same as the kernel names it.
    pub in_use: [String; 2],
    /// The candidate that goes on, the same way.
    pub candidate: Option<[String; 2]>,
    /// What is expected, by candidate and sizes.
    pub expected: Vec<Expected>,
    /// The path that explains the connections best.
    pub path: Option<PathFound>,
    /// Payload of some of its connections, bytes.
    pub sizes: Vec<u64>,
    /// Connections that an experiment needs to show an effect of interest.
    pub needed: Option<u64>,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// What is expected of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Range of sizes.
    pub objects: String,
    /// The candidate.
    pub candidate: String,
    /// The advice in a few words.
    pub advice: String,
    /// Gain and its 80 % interval, differences of logarithms.
    pub gain: Option<[f64; 3]>,
    /// Part of the group's bytes.
    pub bytes_share: f64,
}

/// A fitted path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathFound {
    /// Rate of the bottleneck, bit/s.
    pub rate_bps: f64,
    /// RTT without a queue, seconds.
    pub rtt_s: f64,
    /// Share of packets lost at random.
    pub loss: f64,
    /// Buffer, in BDP.
    pub buffer_bdp: f64,
    /// Share of the rate that cross traffic offers.
    pub cross: f64,
}

/// Result of a later stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it ended, seconds since 1970 (Unix time).
    pub ended_unix: u64,
    /// What was done, a sentence.
    pub done: String,
    /// Results of the groups that were in it.
    pub groups: Vec<Outcome>,
}

/// Result of a stage for a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the group.
    pub name: String,
    /// By class of sizes.
    pub classes: Vec<Class>,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// A folder that this process holds.
pub struct Folder {
    path: PathBuf,
    lock: Journal,
}

impl Folder {
    /// Takes the folder; creates it if there is none.
    pub fn open(path: &Path) -> Result<Folder, Failure> {
        let another = || "name an empty folder, or one of knee steer auto, with --out".to_string();
        if path.exists() && !path.is_dir() {
            return Err(Failure::Usage(format!("{} is not a folder", path.display()), another()));
        }
        let failed = |error| crate::advice::cannot_write(path, &error);
        DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed)?;
        let lock = path.join(LOCK);
        let is_empty = fs::read_dir(path).map_err(failed)?.next().is_none();
        if !is_empty && !lock.exists() {
            return Err(Failure::Usage(format!("{} has other files", path.display()), another()));
        }
        let (mut lock, _) = Journal::hold(&lock).map_err(|error| match error {
            PolicyError::Held { process, .. } => Failure::Host(
                format!("process {process} works on {}", path.display()),
                "wait for its end, or stop it with Ctrl-C: what is decided is kept".to_string(),
            ),
            other => of_lock(other),
        })?;
        lock.clear().map_err(of_lock)?;
        lock.write(&[Journal::begin("auto", since_1970().as_secs())?]).map_err(of_lock)?;
        Ok(Folder { path: path.to_path_buf(), lock })
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file of a stage, of a kind.
    pub fn of(&self, stage: AutoStage, kind: &str) -> PathBuf {
        self.file(&format!("{}.{kind}", stage.name()))
    }

    /// Reads the result of a stage; `None` if it is not decided.
    pub fn read<T: DeserializeOwned>(&self, stage: AutoStage) -> Result<Option<T>, Failure> {
        match read_json(&self.of(stage, "json"), SCHEMA) {
            Ok(found) => Ok(Some(found)),
            Err(RecordError::Missing { .. }) => Ok(None),
            Err(error @ (RecordError::Malformed { .. } | RecordError::Schema { .. })) => {
                let help = "restore it, or begin again with another --out DIR";
                Err(Failure::Usage(error.to_string(), help.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the result of a stage.
    pub fn write(&self, stage: AutoStage, result: &impl Serialize) -> Result<(), Failure> {
        Ok(write_json(&self.of(stage, "json"), result)?)
    }
}

/// The lock is written like a journal, and nobody asked for one here.
fn of_lock(error: PolicyError) -> Failure {
    match error {
        PolicyError::Journal { path, source, .. } => crate::advice::cannot_write(&path, &source),
        other => other.into(),
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whoever comes next does not need it: the lock ends with the process.
        let _ = self.lock.clear();
    }
}
