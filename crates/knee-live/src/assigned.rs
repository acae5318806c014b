//! Which arm of a policy or experiment a connection belongs to, from the file that the steering
//! process publishes.

use crate::LiveError;
use knee_host::{HostError, is_locked};
use knee_steer::{ASSIGNMENT_SCHEMA, Arms, Assigned, Assignment};
use nix::fcntl::OFlag;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Maximum size of the file; 100,000 prefixes have some 10 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Number of assignments that are remembered: connections may be reported late.
const EPOCHS_MAX: usize = 8;

/// The assignments of the last changes.
#[derive(Debug)]
pub(crate) struct Assignments {
    path: PathBuf,
    /// The file that was found last.
    found: Option<Found>,
    epochs: Vec<Epoch>,
    /// When the last one was last found in force, nanoseconds since the boot.
    alive_ns: u64,
}

/// A file at the path. It stays open, so that no later one has the same inode.
#[derive(Debug)]
struct Found {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
    is_in_force: bool,
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
        Assignments { path: path.to_path_buf(), found: None, epochs: Vec::new(), alive_ns: 0 }
    }

    /// Looks for a change at `now_ns`, and returns whether there is one.
    pub fn look(&mut self, now_ns: u64) -> Result<bool, LiveError> {
        let about = match fs::metadata(&self.path) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.wrong(&error.to_string())),
        };
        let known = self.found.as_ref().map(|found| found.identity);
        let same = about.filter(|about| Some(identity(about)) == known);
        let is_same = same.is_some();
        let mut has_ended = false;
        if let Some(found) = self.found.as_mut().filter(|found| found.is_in_force) {
            if let Some(about) = same
                && is_held(&found.file)?
            {
                self.alive_ns = now_ns.min(end_ns(&about));
                if self.alive_ns == now_ns {
                    return Ok(false);
                }
            }
            (found.is_in_force, has_ended) = (false, true);
            if let Some(last) = self.epochs.last_mut() {
                last.until_ns = Some(self.alive_ns);
            }
        }
        if is_same {
            return Ok(has_ended);
        }
        let Some((found, assignment)) = self.read(now_ns)? else {
            self.found = None;
            return Ok(has_ended);
        };
        let is_in_force = found.is_in_force;
        self.found = Some(found);
        if is_in_force {
            let arms = Arms::new(&assignment)
                .ok_or_else(|| self.wrong("a place names a group that it does not have"))?;
            self.epochs.push(Epoch { from_ns: assignment.since_boot_ns, until_ns: None, arms });
            if self.epochs.len() > EPOCHS_MAX {
                self.epochs.remove(0);
            }
            self.alive_ns = now_ns;
        }
        Ok(has_ended || is_in_force)
    }

    /// Reads the file, if there is one. It is in force as long as a process holds it, until its end.
    fn read(&self, now_ns: u64) -> Result<Option<(Found, Assignment)>, LiveError> {
        // Opening a pipe would wait for its other end.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
        let mut file = match options.open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(&error.to_string())),
        };
        let wrong = |error: io::Error| self.wrong(&error.to_string());
        let about = file.metadata().map_err(wrong)?;
        if !about.is_file() {
            return Err(self.wrong("it is not a regular file"));
        }
        let identity = identity(&about);
        let mut text = Vec::new();
        (&mut file).take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(wrong)?;
        let assignment: Assignment =
            serde_json::from_slice(&text).map_err(|error| self.wrong(&error.to_string()))?;
        if assignment.schema != ASSIGNMENT_SCHEMA {
            let problem = format!("it is of the schema {:?}", assignment.schema);
            return Err(self.wrong(&problem));
        }
        let is_in_force = is_held(&file)? && now_ns <= end_ns(&about);
        Ok(Some((Found { file, identity, is_in_force }, assignment)))
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

fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// When an assignment ends, nanoseconds since the boot.
fn end_ns(about: &Metadata) -> u64 {
    let end = about.modified().ok().and_then(|end| end.duration_since(UNIX_EPOCH).ok());
    end.map_or(0, |end| u64::try_from(end.as_nanos()).unwrap_or(u64::MAX))
}

fn is_held(file: &File) -> Result<bool, LiveError> {
    Ok(is_locked(file).map_err(|error| HostError::call("look at a lock", error))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_steer::{AssignedGroup, AssignedPlace};
    use nix::fcntl::{Flock, FlockArg};
    use std::io::Write;
    use std::time::Duration;

    /// Writes an assignment of one group with this end, and holds its file.
    fn publish(path: &Path, from_ns: u64, end_ns: u64) -> Flock<File> {
        let group = AssignedGroup {
            name: "web".into(),
            arms: ["A".into(), "B".into()],
            key: [0; 16],
            share: 0,
        };
        let assignment = Assignment {
            schema: ASSIGNMENT_SCHEMA.into(),
            policy: "test".into(),
            since_boot_ns: from_ns,
            block: Some(from_ns),
            groups: vec![group],
            places: vec![AssignedPlace {
                group: 0,
                prefix: "192.0.2.0/24".parse().unwrap(),
                port: None,
                part: 32,
                arm: None,
            }],
        };
        let mut file = File::create_new(path).unwrap();
        file.write_all(&serde_json::to_vec(&assignment).unwrap()).unwrap();
        put_off(&file, end_ns);
        Flock::lock(file, FlockArg::LockExclusive).unwrap()
    }

    fn put_off(file: &File, end_ns: u64) {
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(end_ns)).unwrap();
    }

    fn block_at(assignments: &Assignments, ns: u64) -> Option<u64> {
        let established = Established { not_before_ns: ns, not_after_ns: ns };
        assignments.of(443, "192.0.2.1".parse().unwrap(), established)?.block
    }

    /// A file is no longer valid once its lock is gone. The next one is taken, though its inode may
    /// be the one that the first had, since the first is removed before the next is written.
    #[test]
    fn the_next_file_may_have_the_inode_of_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assignment");
        let mut assignments = Assignments::new(&path);
        assert!(!assignments.look(1).unwrap());
        let first = publish(&path, 2, 99);
        assert!(assignments.look(3).unwrap() && !assignments.look(4).unwrap());
        let first = first.unlock().unwrap();
        // A change once, not twice.
        assert!(assignments.look(5).unwrap() && !assignments.look(6).unwrap());
        fs::remove_file(&path).unwrap();
        drop(first);
        let _next = publish(&path, 7, 99);
        assert!(assignments.look(8).unwrap(), "the next file is not taken");
        let blocks = [2, 4, 5, 6, 7, 8].map(|ns| block_at(&assignments, ns));
        assert_eq!(blocks, [Some(2), Some(2), None, None, Some(7), Some(7)]);
    }

    /// An assignment ends although its file is still held, exactly when it says, and does not begin
    /// again: only a new file does.
    #[test]
    fn what_is_not_put_off_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assignment");
        let mut assignments = Assignments::new(&path);
        let first = publish(&path, 10, 20);
        assert!(assignments.look(12).unwrap() && !assignments.look(20).unwrap());
        put_off(&first, 30);
        assert!(!assignments.look(25).unwrap());
        assert!(assignments.look(40).unwrap() && !assignments.look(41).unwrap());
        let blocks = [10, 25, 30, 31, 40].map(|ns| block_at(&assignments, ns));
        assert_eq!(blocks, [Some(10), Some(10), Some(10), None, None]);
        put_off(&first, 60);
        assert!(!assignments.look(45).unwrap() && block_at(&assignments, 44).is_none());
        fs::remove_file(&path).unwrap();
        // Of a process that was stopped when it was about to publish.
        let late = publish(&path, 46, 30);
        assert!(!assignments.look(47).unwrap() && block_at(&assignments, 47).is_none());
        fs::remove_file(&path).unwrap();
        drop(late);
        let _next = publish(&path, 50, 60);
        assert!(assignments.look(51).unwrap());
        assert_eq!(block_at(&assignments, 51), Some(50));
    }
}
