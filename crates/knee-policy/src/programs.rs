//! Actuator that uses BPF programs (`bpf/steer.bpf.c`).

use crate::actuator::{Actuator, Applied, Renewed};
use crate::hint::number;
use crate::{Entry, Hint, Journal, LEASE, Placed, Plan, Policy, PolicyError, What};
use ipnet::IpNet;
use knee_host::bpf::{self, BpfError, GROUPS_MAX, Place, Steering};
use knee_host::{Arm, Choice, HostError, return_marked, unpin_marks};
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Maximum number of open connections changed per second, since each must find its rate anew.
const OPEN_MAX: u64 = 1000;

/// Steers with BPF programs in the network namespace of the thread that created it.
pub struct ProgramActuator {
    steering: Steering,
    /// Contents of the programs' map, by number of the hint, prefix and port.
    there: BTreeMap<(u32, IpNet, Option<u16>), Place>,
    hints: Hints,
    choices: Vec<Choice>,
    /// Whether there may be open connections to change.
    changes_open: bool,
    wants_open: bool,
    /// Whether open connections may get another mark at any time, and then another controller.
    goes_on: bool,
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
        let mut hints = Hints::of(policy, cgroup);
        hints.follow(&mut steering)?;
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
            goes_on: policy.open_connections && hints.have_marks(),
            hints,
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
            .map(|placed| {
                let hint = self.hints.of_group[placed.group];
                ((hint, placed.prefix, placed.port), place(placed, hint))
            })
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
        self.hints.follow(&mut self.steering)?;
        if self.changes_open {
            renewed.changed = self.steering.change_open(OPEN_MAX)?;
            self.changes_open = self.goes_on || renewed.changed > 0;
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

/// The hints of a policy, and what the programs know of them.
struct Hints {
    /// Folder of all control groups.
    root: PathBuf,
    /// Hints by their number, from 1 on.
    all: Vec<Hint>,
    /// Number of the hint of each group; 0: none.
    of_group: Vec<u32>,
    /// By number: what the programs know.
    known: BTreeMap<u32, bpf::Hint>,
}

impl Hints {
    fn of(policy: &Policy, root: &Path) -> Hints {
        let mut all: Vec<Hint> = Vec::new();
        let mut of_group = Vec::new();
        for group in &policy.groups {
            let number = group.hint.as_ref().map_or(0, |hint| {
                let index = all.iter().position(|other| other == hint).unwrap_or_else(|| {
                    all.push(hint.clone());
                    all.len() - 1
                });
                index as u32 + 1
            });
            of_group.push(number);
        }
        Hints { root: root.to_path_buf(), all, of_group, known: BTreeMap::new() }
    }

    fn have_marks(&self) -> bool {
        self.all.iter().any(|hint| matches!(hint, Hint::Mark(_)))
    }

    /// Tells the programs of hints. A service that begins again has a control group with another
    /// number.
    fn follow(&mut self, steering: &mut Steering) -> Result<(), BpfError> {
        for (index, hint) in (1..).zip(&self.all) {
            let now = match hint {
                Hint::Mark(mark) => Some(bpf::Hint::Mark(*mark)),
                Hint::Cgroup(name) => number(&self.root, name).map(bpf::Hint::Cgroup),
            };
            let known = self.known.get(&index).copied();
            if known == now {
                continue;
            }
            if let Some(known) = known {
                steering.forget(known)?;
                self.known.remove(&index);
            }
            if let Some(now) = now {
                steering.name(now, index)?;
                self.known.insert(index, now);
            }
        }
        Ok(())
    }
}

fn place(placed: &Placed, hint: u32) -> Place {
    Place {
        prefix: placed.prefix,
        port: placed.port,
        hint,
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
