//! Actuators, which carry out a plan, and their reports.

use crate::{Arm, Choice, Journal, Plan, Policy, PolicyError, RouteActuator};
use ipnet::IpNet;
use knee_host::Marked;
#[cfg(feature = "bpf")]
use knee_host::cgroup_root;
#[cfg(feature = "bpf")]
use std::path::PathBuf;

/// Protocol number that marks Knee's routes and rules (`rtm_protocol`; linux/rtnetlink.h leaves
/// this one to programs).
pub const PROTOCOL: u8 = 222;
/// Folder of the BPF file system for the pins that undo steering, per network namespace.
#[cfg(feature = "bpf")]
const PROGRAMS: &str = "/sys/fs/bpf/knee-steer";

/// Steers connections until it is stopped. [`crate::Host`] reverts the changes.
pub trait Actuator {
    /// Brings the host to the state of the plan; called again when the plan changes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::TableInUse`], or a journal that cannot be written: nothing was changed then.
    /// A host that refuses everything. Single refused routes are listed in [`Applied`].
    fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError>;

    /// Chooses the controllers of new connections of each group.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    fn choose(&mut self, choices: Vec<Choice>) -> Result<(), PolicyError>;

    /// Continues gradual changes and renews the lease; called once a second.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    fn renew(&mut self) -> Result<Renewed, PolicyError>;

    /// Stops steering new connections, before everything is reverted.
    fn stop(&mut self);
}

/// Changes nothing: for experiments that only observe.
#[derive(Debug, Default)]
pub struct Unchanged;

impl Actuator for Unchanged {
    fn apply(&mut self, _: &Plan, _: &mut Journal) -> Result<Applied, PolicyError> {
        Ok(Applied::default())
    }

    fn choose(&mut self, _: Vec<Choice>) -> Result<(), PolicyError> {
        Ok(())
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        Ok(Renewed::default())
    }

    fn stop(&mut self) {}
}

/// Mechanism that carries out a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Routes: new connections, by prefix.
    Routes,
    /// BPF programs: new and open connections, by prefix.
    Programs,
}

impl Means {
    /// The mechanism in the policy; by default BPF programs if the host supports them, or if only
    /// they can do what the policy says.
    pub fn of(policy: &Policy) -> Means {
        let needs_programs = || {
            let mut groups = policy.groups.iter();
            groups.any(|one| one.hint.is_some() || one.arm() != Arm::of(&one.controller))
        };
        let possible = || match programs_lack().is_none() || needs_programs() {
            true => Means::Programs,
            false => Means::Routes,
        };
        policy.actuator.unwrap_or_else(possible)
    }

    /// Prepares the mechanism; nothing is steered before [`Actuator::apply`].
    ///
    /// # Errors
    ///
    /// [`PolicyError::Programs`], [`PolicyError::Journal`], [`PolicyError::Host`].
    pub fn prepare(
        self,
        policy: &Policy,
        journal: &mut Journal,
    ) -> Result<Box<dyn Actuator>, PolicyError> {
        match self {
            Means::Routes => Ok(Box::new(RouteActuator::open()?)),
            Means::Programs => programs(policy, journal),
        }
    }
}

#[cfg(feature = "bpf")]
fn programs(policy: &Policy, journal: &mut Journal) -> Result<Box<dyn Actuator>, PolicyError> {
    let lack = || PolicyError::Programs {
        problem: LACKS_CGROUPS.to_string(),
        advice: knee_host::MOUNT_CGROUPS.to_string(),
    };
    let cgroup = cgroup_root().ok_or_else(lack)?;
    Ok(Box::new(crate::ProgramActuator::attach(policy, &cgroup, journal)?))
}

#[cfg(not(feature = "bpf"))]
fn programs(_: &Policy, _: &mut Journal) -> Result<Box<dyn Actuator>, PolicyError> {
    let advice = "install one with cargo install --path crates/knee --features bpf, or write \
                  actuator = \"route\" in the policy";
    Err(PolicyError::Programs { problem: LACKS_FEATURE.to_string(), advice: advice.to_string() })
}

#[cfg(not(feature = "bpf"))]
const LACKS_FEATURE: &str = "this build of Knee has no BPF programs";
#[cfg(feature = "bpf")]
const LACKS_CGROUPS: &str = "this host lacks a file system of control groups, version 2";

/// Why this process cannot steer with BPF programs on this host; `None` if no obstacle is visible.
#[cfg(feature = "bpf")]
pub fn programs_lack() -> Option<String> {
    let lack = knee_host::bpf::steering_lack().map(|lack| lack.problem());
    lack.or_else(|| cgroup_root().is_none().then(|| LACKS_CGROUPS.to_string()))
}

/// Why this process cannot steer with BPF programs on this host.
#[cfg(not(feature = "bpf"))]
pub fn programs_lack() -> Option<String> {
    Some(LACKS_FEATURE.to_string())
}

/// Folder for the pins of this network namespace.
///
/// # Errors
///
/// Missing `/proc`.
#[cfg(feature = "bpf")]
pub(crate) fn programs_folder() -> Result<PathBuf, PolicyError> {
    let name = crate::journal::namespace()
        .map_err(|error| knee_host::HostError::call("read the network namespace", error))?;
    Ok(PathBuf::from(PROGRAMS).join(name.replace(|letter: char| !letter.is_ascii_digit(), "")))
}

/// Changes made when a plan was applied.
#[derive(Debug, Default)]
pub struct Applied {
    /// Routes created, or prefixes given to programs.
    pub added: usize,
    /// Those removed because the plan no longer has them.
    pub removed: usize,
    /// Routes that the kernel refused, with its error.
    pub refused: Vec<(IpNet, String)>,
    /// Routes left alone because somebody changed or added them, by table.
    pub left: Vec<(u32, IpNet)>,
}

/// Changes since the previous call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// New connections with their controller.
    pub given: u64,
    /// Open connections that got their controller.
    pub changed: u64,
    /// Connections whose controller the kernel refused.
    pub refused: u64,
}

/// What was reverted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Routes removed.
    pub routes: usize,
    /// Rules removed.
    pub rules: usize,
    /// Routes left alone because somebody changed them, by table.
    pub left: Vec<(u32, IpNet)>,
    /// Routes left alone because the journal does not list them, though they have Knee's mark.
    pub unlisted: Vec<(u32, IpNet)>,
    /// Connections returned to their previous controller.
    pub connections: u64,
    /// Connections left alone because their programs have chosen a controller.
    pub chosen: u64,
    /// Connections left alone because the kernel refused their previous controller.
    pub stuck: u64,
}

/// Current state of the journal's entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Unchanged routes with a controller.
    pub steering: usize,
    /// Unchanged routes to the main table.
    pub throwing: usize,
    /// Existing rules.
    pub rules: usize,
    /// Routes and rules of the journal that no longer exist.
    pub missing: usize,
    /// Routes that somebody changed or added, by table.
    pub foreign: Vec<(u32, IpNet)>,
    /// Routes with Knee's mark that the journal does not list: it was cut off, or damaged.
    pub unlisted: Vec<(u32, IpNet)>,
    /// Connections that got a controller from BPF programs.
    pub connections: Marked,
}
