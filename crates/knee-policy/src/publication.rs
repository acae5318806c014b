//! Publishes who is assigned what, for `knee observe` of any user.

use crate::{
    Actuator, Applied, Choice, Journal, Plan, Policy, PolicyError, PolicyGroup, Renewed, What,
};
use knee_host::since_boot;
use knee_scenario::open_file;
use knee_steer::{
    ASSIGNMENT_SCHEMA, AssignedGroup, AssignedPlace, Assignment, HELD_OUT, KEPT, TREATED,
};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The first bytes of each file that is written here.
const OURS: &[u8] = br#"{"schema":"knee-assignment/"#;

/// A file with the [`Assignment`] in force, readable by all users. It is removed before each change
/// and at the end, and written after a change, so that whoever finds it knows what has been
/// assigned until then. It is locked (flock(2)) by this process, so that a killed process leaves
/// nothing that looks valid, and has an end, so that a stopped one does neither.
#[derive(Debug)]
pub struct Publication {
    path: PathBuf,
    /// When what is published ends, since the boot.
    end: Duration,
    file: Option<Flock<File>>,
}

impl Publication {
    /// Publishes nothing yet at this path; removes what an earlier process left there.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`], and [`PolicyError::NotAssignment`] if there is anything else.
    pub fn at(path: &Path) -> Result<Publication, PolicyError> {
        let cannot = |error| failed("replace", path, error);
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(error)),
            Ok(about) if about.is_file() && is_ours(path).map_err(cannot)? => {
                fs::remove_file(path).map_err(cannot)?;
            }
            Ok(_) => return Err(PolicyError::NotAssignment { path: path.to_path_buf() }),
        }
        Ok(Publication { path: path.to_path_buf(), end: Duration::ZERO, file: None })
    }

    /// Sets the end of what is or will be published, time since the boot ([`crate::Lease::end`]).
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`].
    pub fn renew(&mut self, end: Duration) -> Result<(), PolicyError> {
        self.end = end;
        let marked = self.file.as_ref().map_or(Ok(()), |file| mark(file, end));
        marked.map_err(|source| failed("renew", &self.path, source))
    }

    /// Publishes an assignment that is in force until the end of the last [`Publication::renew`].
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`], for example if the disk is full.
    pub fn publish(
        &mut self,
        policy: &Policy,
        plan: &Plan,
        block: Option<u64>,
        groups: Vec<AssignedGroup>,
    ) -> Result<(), PolicyError> {
        let written = since_boot().and_then(|since| {
            self.replace(&Assignment {
                schema: ASSIGNMENT_SCHEMA.to_string(),
                policy: policy.name.clone(),
                since_boot_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
                block,
                groups,
                places: places(plan),
            })
        });
        written.map_err(|source| failed("write", &self.path, source))
    }

    /// Removes what is published, before a change.
    pub fn withdraw(&mut self) {
        if let Some(file) = self.file.take() {
            // If it cannot be removed, it counts as absent without its lock.
            let _ = fs::remove_file(&self.path);
            drop(file);
        }
    }

    /// Returns whether an assignment is published.
    pub fn is_published(&self) -> bool {
        self.file.is_some()
    }

    fn replace(&mut self, assignment: &Assignment) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let next = PathBuf::from(name);
        // One that a killed process left.
        let _ = fs::remove_file(&next);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o644);
        options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
        let file = options.open(&next)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))?;
        file.write_all(&serde_json::to_vec(assignment)?)?;
        mark(&file, self.end)?;
        fs::rename(&next, &self.path)?;
        self.file = Some(file);
        Ok(())
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// An actuator that withdraws the publication before each change.
pub struct Announcing<'a> {
    actuator: &'a mut dyn Actuator,
    publication: Option<&'a mut Publication>,
}

impl<'a> Announcing<'a> {
    /// Carries out changes by `actuator`. The caller publishes them afterwards.
    pub fn new(
        actuator: &'a mut dyn Actuator,
        publication: Option<&'a mut Publication>,
    ) -> Announcing<'a> {
        Announcing { actuator, publication }
    }

    fn withdraw(&mut self) {
        if let Some(publication) = &mut self.publication {
            publication.withdraw();
        }
    }
}

impl Actuator for Announcing<'_> {
    fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError> {
        self.withdraw();
        self.actuator.apply(plan, journal)
    }

    fn choose(&mut self, choices: Vec<Choice>) -> Result<(), PolicyError> {
        self.withdraw();
        self.actuator.choose(choices)
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        self.actuator.renew()
    }

    fn stop(&mut self) {
        self.withdraw();
        self.actuator.stop();
    }
}

/// Arms of a policy that is applied: each group's clients get its controller or are held out.
pub fn treated(policy: &Policy) -> Vec<AssignedGroup> {
    let group = |group: &PolicyGroup| AssignedGroup {
        name: group.name.clone(),
        arms: [TREATED.to_string(), String::new()],
        key: [0; 16],
        share: 0,
    };
    policy.groups.iter().map(group).collect()
}

/// The clients of a plan, whichever mechanism carries it out.
fn places(plan: &Plan) -> Vec<AssignedPlace> {
    let arm = |what| match what {
        What::Steered => None,
        What::HeldOut => Some(HELD_OUT.to_string()),
        What::Kept => Some(KEPT.to_string()),
    };
    let of_programs = plan.places.iter().map(|placed| AssignedPlace {
        group: placed.group,
        prefix: placed.prefix,
        port: placed.port,
        part: placed.part,
        arm: arm(placed.what),
    });
    // The places of an experiment's routes are all of them.
    let routes = plan.routes.iter().filter(|_| plan.places.is_empty());
    let of_routes = routes.filter_map(|planned| {
        let route = &planned.route;
        let prefix = route.destination();
        let rule = plan.rules.iter().find(|rule| rule.table == route.table())?;
        let what = match (route.controller(), planned.held_out) {
            (Some(_), _) => What::Steered,
            (None, true) => What::HeldOut,
            (None, false) => What::Kept,
        };
        let (port, part) = (rule.local_port, prefix.prefix_len());
        Some(AssignedPlace { group: planned.group, prefix, port, part, arm: arm(what) })
    });
    of_programs.chain(of_routes).collect()
}

/// Sets the end of an assignment, time since the boot, in place of the file's time of modification:
/// a system call replaces it as a whole, and whoever looks at the file finds it.
fn mark(file: &File, end: Duration) -> io::Result<()> {
    file.set_modified(UNIX_EPOCH + end)
}

/// Whether a file is an assignment, of any version, or empty.
fn is_ours(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    open_file(path)?.take(OURS.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == OURS)
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> PolicyError {
    PolicyError::Records { what, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_an_assignment_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assignment.json");
        let text = "name = \"edge\"\n[[group]]\nname = \"g\"\nprefixes = [\"192.0.2.0/24\"]\n\
                    controller = \"cubic\"\n";
        let policy = Policy::parse(text).unwrap();
        for other in [text, "{\"schema\":\"knee-run/1\"}", "{"] {
            fs::write(&path, other).unwrap();
            let refused = Publication::at(&path).unwrap_err();
            assert!(matches!(refused, PolicyError::NotAssignment { .. }), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        let refused = Publication::at(folder.path()).unwrap_err();
        assert!(matches!(refused, PolicyError::NotAssignment { .. }), "{refused}");
        fs::write(&path, "").unwrap();
        let mut published = Publication::at(&path).unwrap();
        published.publish(&policy, &Plan::default(), None, treated(&policy)).unwrap();
        // What a killed process leaves.
        let left = fs::read(&path).unwrap();
        drop(published);
        fs::write(&path, left).unwrap();
        Publication::at(&path).unwrap();
        assert!(!path.exists());
    }
}
