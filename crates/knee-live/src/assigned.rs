//! Which arm of a policy or experiment a connection belongs to, from the file that the steering
//! process publishes.

use crate::LiveError;
use knee_host::{HostError, is_locked};
use knee_steer::{ASSIGNMENT_SCHEMA, Arms, Assigned, Assignment};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum size of the file; 100,000 prefixes have some 10 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Number of assignments that are remembered: connections may be reported late.
const EPOCHS_MAX: usize = 8;

/// The assignments of the last changes.
#[derive(Debug)]
pub(crate) struct Assignments {
    path: PathBuf,
    /// The file of the last one, and its device and inode.
    current: Option<(File, (u64, u64))>,
    /// One that no process holds any more.
    stale: Option<(u64, u64)>,
    epochs: Vec<Epoch>,
    /// When the last one was last found in force, nanoseconds since the boot.
    alive_ns: u64,
}

/// A time during which an assignment was in force, nanoseconds since the boot.
#[derive(Debug)]
struct Epoch {
    from_ns: u64,
    /// `None`: still in force.
    until_ns: Option<u64>,
    arms: Arms,
}

/// Bounds of the time at which a connection was established, nanoseconds since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Established {
    pub not_before_ns: u64,
    pub not_after_ns: u64,
}

impl Assignments {
    pub fn new(path: &Path) -> Assignments {
        Assignments {
            path: path.to_path_buf(),
            current: None,
            stale: None,
            epochs: Vec::new(),
            alive_ns: 0,
        }
    }

    /// Looks for a change at `now_ns`, and returns whether there is one.
    pub fn look(&mut self, now_ns: u64) -> Result<bool, LiveError> {
        let about = match fs::metadata(&self.path) {
            Ok(about) => Some((about.dev(), about.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.wrong(&error.to_string())),
        };
        let known = self.current.as_ref().map(|(_, identity)| *identity);
        if about == known
            && let Some((file, _)) = &self.current
            && is_held(file)?
        {
            self.alive_ns = now_ns;
            return Ok(false);
        }
        let was_known = self.current.take().is_some();
        if was_known && let Some(last) = self.epochs.last_mut() {
            last.until_ns = Some(self.alive_ns);
        }
        let Some(identity) = about.filter(|about| Some(*about) != self.stale) else {
            return Ok(was_known);
        };
        let Some((file, assignment)) = self.read()? else {
            self.stale = Some(identity);
            return Ok(was_known);
        };
        let arms = Arms::new(&assignment)
            .ok_or_else(|| self.wrong("a place names a group that it does not have"))?;
        self.epochs.push(Epoch { from_ns: assignment.since_boot_ns, until_ns: None, arms });
        if self.epochs.len() > EPOCHS_MAX {
            self.epochs.remove(0);
        }
        (self.current, self.alive_ns) = (Some((file, identity)), now_ns);
        Ok(true)
    }

    /// Reads the file; `None` if no process holds it any more.
    fn read(&self) -> Result<Option<(File, Assignment)>, LiveError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(&error.to_string())),
        };
        let mut text = Vec::new();
        let read = (&mut file).take(FILE_BYTES_MAX).read_to_end(&mut text);
        read.map_err(|error| self.wrong(&error.to_string()))?;
        let assignment: Assignment =
            serde_json::from_slice(&text).map_err(|error| self.wrong(&error.to_string()))?;
        if assignment.schema != ASSIGNMENT_SCHEMA {
            let problem = format!("it is of the schema {:?}", assignment.schema);
            return Err(self.wrong(&problem));
        }
        Ok(is_held(&file)?.then_some((file, assignment)))
    }

    /// Returns group, arm and block of a connection; `None` if no single assignment was in force
    /// whenever it may have been established, or if it is in no group.
    pub fn of(&self, local_port: u16, peer: IpAddr, established: Established) -> Option<Assigned> {
        let Established { not_before_ns, not_after_ns } = established;
        let epoch = self.epochs.iter().rev().find(|epoch| epoch.from_ns <= not_before_ns)?;
        let is_within = epoch.until_ns.is_none_or(|until| not_after_ns <= until);
        is_within.then(|| epoch.arms.of(local_port, peer)).flatten()
    }

    fn wrong(&self, problem: &str) -> LiveError {
        LiveError::Assignment { path: self.path.clone(), problem: problem.to_string() }
    }
}

fn is_held(file: &File) -> Result<bool, LiveError> {
    Ok(is_locked(file).map_err(|error| HostError::call("look at a lock", error))?)
}
