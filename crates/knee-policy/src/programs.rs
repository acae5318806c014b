//! Actuator that uses BPF programs (`bpf/steer.bpf.c`).

use crate::actuator::{Actuator, Applied, Renewed};
use crate::{Entry, Journal, LEASE, Placed, Plan, Policy, PolicyError, What};
use ipnet::IpNet;
use knee_host::bpf::{BpfError, GROUPS_MAX, Place, Steering};
use knee_host::{Arm, Choice, HostError, return_marked, unpin_marks};
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Maximum number of open connections changed per second, since each must find its rate anew.
const OPEN_MAX: u64 = 1000;

/// Steers with BPF programs in the network namespace of the thread that created it.
pub struct ProgramActuator {
    steering: Steering,
    /// Contents of the programs' map, by prefix and port.
    there: BTreeMap<(IpNet, Option<u16>), Place>,
    choices: Vec<Choice>,
    /// Whether there may be open connections to change.
    changes_open: bool,
    wants_open: bool,
    /// Total given and refused at the previous call.
    told: (u64, u64),
    /// Nobody else steers here, whatever the journal.
    _lock: Flock<File>,
}

impl ProgramActuator {
    /// Loads the programs and attaches them to the host's root control group; they do nothing
    /// before [`Actuator::apply`].
    ///
    /// # Errors
    ///
    /// What the host lacks or refuses; [`PolicyError::Journal`], in which case nothing remains.
    pub fn attach(
        policy: &Policy,
        cgroup: &Path,
        journal: &mut Journal,
    ) -> Result<ProgramActuator, PolicyError> {
        let groups = policy.groups.len();
        if groups > GROUPS_MAX {
            return Err(PolicyError::Programs {
                problem: format!(
                    "the policy has {groups} groups, and BPF programs have room for {GROUPS_MAX}"
                ),
                advice: "write fewer groups, or actuator = \"route\" in the policy".to_string(),
            });
        }
        let folder = crate::programs_folder()?;
        let mut steering = Steering::attach(cgroup, LEASE)?;
        // Whoever holds the folder finds in it what a killed process left.
        let former = held(&folder)?;
        return_marked(&folder)?;
        unpin_marks(&folder)?;
        drop(former);
        let lock = held(&folder)?;
        if let Err(error) = journal.write(&[Entry::Programs { folder: folder.clone() }]) {
            unpin_marks(&folder)?;
            return Err(error);
        }
        steering.pin(&folder)?;
        Ok(ProgramActuator {
            steering,
            there: BTreeMap::new(),
            choices: Vec::new(),
            changes_open: false,
            wants_open: policy.open_connections,
            told: (0, 0),
            _lock: lock,
        })
    }
}

/// Makes the folder of this network namespace, and locks it until the process ends: with a journal of
/// its own, a second process would take the connections of the first for those of one that was killed.
fn held(folder: &Path) -> Result<Flock<File>, PolicyError> {
    let cannot = |error| HostError::call("create a folder in /sys/fs/bpf", error);
    // Others must not be able to lock it.
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
    let open = File::open(folder).map_err(cannot)?;
    Flock::lock(open, FlockArg::LockExclusiveNonblock).map_err(|_| PolicyError::Programs {
        problem: "another process steers this host's connections, with another journal".to_string(),
        advice: "stop that one first: knee steer rollback, with its --journal".to_string(),
    })
}

impl Actuator for ProgramActuator {
    fn apply(&mut self, plan: &Plan, _: &mut Journal) -> Result<Applied, PolicyError> {
        let choices = plan
            .arms
            .iter()
            .map(|arm| Choice { arms: [arm.clone(), Arm::default()], ..Choice::default() });
        // Those of an experiment's current block remain.
        if self.choices.is_empty() {
            self.choose(choices.collect())?;
        }
        let wanted: BTreeMap<_, _> = plan
            .places
            .iter()
            .map(|placed| ((placed.prefix, placed.port), place(placed)))
            .collect();
        let mut applied = Applied::default();
        let gone: Vec<_> = self.there.iter().filter(|(at, _)| !wanted.contains_key(*at)).collect();
        for (_, place) in &gone {
            self.steering.remove(place)?;
        }
        applied.removed = gone.len();
        for (at, place) in &wanted {
            if self.there.get(at) != Some(place) {
                self.steering.add(place)?;
                applied.added += 1;
            }
        }
        self.there = wanted;
        self.changes_open = self.wants_open;
        self.steering.renew()?;
        Ok(applied)
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        let mut renewed = Renewed::default();
        if self.changes_open {
            renewed.changed = self.steering.change_open(OPEN_MAX)?;
            self.changes_open = renewed.changed > 0;
        } else {
            self.steering.renew()?;
        }
        let (mut given, mut refused) = (0, 0);
        for group in 0..self.choices.len() as u32 {
            let done = self.steering.done(group)?;
            given += done.given + done.had;
            refused += done.refused;
        }
        (renewed.given, renewed.refused) = (given - self.told.0, refused - self.told.1);
        self.told = (given, refused);
        Ok(renewed)
    }

    fn choose(&mut self, choices: Vec<Choice>) -> Result<(), PolicyError> {
        for (group, choice) in (0..).zip(&choices) {
            if self.choices.get(group as usize) != Some(choice) {
                self.steering.choose(group, choice)?;
            }
        }
        self.choices = choices;
        Ok(())
    }

    fn stop(&mut self) {
        self.steering.detach();
    }
}

fn place(placed: &Placed) -> Place {
    Place {
        prefix: placed.prefix,
        port: placed.port,
        group: placed.group as u32,
        kept: placed.what != What::Steered,
        part: placed.part,
    }
}

impl From<BpfError> for PolicyError {
    fn from(error: BpfError) -> PolicyError {
        PolicyError::Programs { problem: error.problem(), advice: error.advice() }
    }
}
