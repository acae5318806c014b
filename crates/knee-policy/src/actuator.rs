//! What carries a plan out, and what is told of it.

use crate::{Choice, Journal, Plan, Policy, PolicyError, RouteActuator};
use ipnet::IpNet;
use knee_host::Marked;
use std::fs;
use std::path::PathBuf;

/// Marks the routes and rules that Knee makes (`rtm_protocol`; one that
/// linux/rtnetlink.h leaves to programs).
pub const PROTOCOL: u8 = 222;
/// Folder of the BPF file system for the ways back of this host's namespaces.
#[cfg(feature = "bpf")]
const PROGRAMS: &str = "/sys/fs/bpf/knee-steer";

/// Steers connections until it is stopped. The way back is [`crate::Host`]'s.
pub trait Actuator {
    /// Makes the host what the plan says; told again when the plan has changed.
    ///
    /// # Errors
    ///
    /// [`PolicyError::TableInUse`], and where the journal cannot be written: then
    /// nothing was done. Where the host refuses all of it. A route that is refused is
    /// told in [`Applied`].
    fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError>;

    /// Says what connections of each group get that begin from now on.
    ///
    /// # Errors
    ///
    /// What the kernel says; [`PolicyError::Programs`]: it cannot.
    fn choose(&mut self, choices: Vec<Choice>) -> Result<(), PolicyError>;

    /// Goes on with what is not done at once, and for as long as a lease; called once a
    /// second.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    fn renew(&mut self) -> Result<Renewed, PolicyError>;

    /// Does nothing more for connections that begin, before all is taken back.
    fn stop(&mut self);
}

/// By what a policy is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Routes: connections that begin, by prefix.
    Routes,
    /// BPF programs: connections that begin and those that are open, by prefix.
    Programs,
}

impl Means {
    /// What the policy says, else BPF programs where the host has what they need.
    pub fn of(policy: &Policy) -> Means {
        let possible = || if programs_lack().is_none() { Means::Programs } else { Means::Routes };
        policy.actuator.unwrap_or_else(possible)
    }

    /// Gets ready; nothing is steered before [`Actuator::apply`].
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
        advice: "mount it: mount -t cgroup2 none /sys/fs/cgroup".to_string(),
    };
    let cgroup = cgroup_root().ok_or_else(lack)?;
    Ok(Box::new(crate::ProgramActuator::attach(policy, &cgroup, journal)?))
}

#[cfg(not(feature = "bpf"))]
fn programs(_: &Policy, _: &mut Journal) -> Result<Box<dyn Actuator>, PolicyError> {
    let advice = "build it with --features bpf, or write actuator = \"route\" in the policy";
    Err(PolicyError::Programs { problem: LACKS_FEATURE.to_string(), advice: advice.to_string() })
}

#[cfg(not(feature = "bpf"))]
const LACKS_FEATURE: &str = "this knee was built without BPF programs";
#[cfg(feature = "bpf")]
const LACKS_CGROUPS: &str = "this host lacks a file system of control groups, version 2";

/// Why this process cannot steer by BPF programs on this host; none: it can, as far as
/// can be seen.
#[cfg(feature = "bpf")]
pub fn programs_lack() -> Option<String> {
    let lack = knee_host::bpf::steering_lack().map(|lack| lack.problem());
    lack.or_else(|| cgroup_root().is_none().then(|| LACKS_CGROUPS.to_string()))
}

/// Why this process cannot steer by BPF programs on this host.
#[cfg(not(feature = "bpf"))]
pub fn programs_lack() -> Option<String> {
    Some(LACKS_FEATURE.to_string())
}

/// Root of the host's control groups (cgroups(7), version 2), where this process sees
/// them.
pub fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next() == Some("cgroup2")).then(|| PathBuf::from(place))
    })
}

/// Folder for the way back of this network namespace.
///
/// # Errors
///
/// Without `/proc`.
#[cfg(feature = "bpf")]
pub(crate) fn programs_folder() -> Result<PathBuf, PolicyError> {
    let name = crate::journal::namespace()
        .map_err(|error| knee_host::HostError::call("read the network namespace", error))?;
    Ok(PathBuf::from(PROGRAMS).join(name.replace(|letter: char| !letter.is_ascii_digit(), "")))
}

/// What was done.
#[derive(Debug, Default)]
pub struct Applied {
    /// Routes made, or prefixes that programs were told.
    pub added: usize,
    /// Those that are no longer asked for.
    pub removed: usize,
    /// Routes that the kernel refused, with what it said.
    pub refused: Vec<(IpNet, String)>,
    /// Routes that stay, since somebody has changed or added them, by table.
    pub left: Vec<(u32, IpNet)>,
}

/// What was done since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Connections that began and have their controller.
    pub given: u64,
    /// Open connections that were given their controller.
    pub changed: u64,
    /// Connections for which the kernel refused it.
    pub refused: u64,
}

/// What was taken back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Routes removed.
    pub routes: usize,
    /// Rules removed.
    pub rules: usize,
    /// Routes that stay, since somebody has changed them, by table.
    pub left: Vec<(u32, IpNet)>,
    /// Connections returned to the controller that they had.
    pub connections: u64,
    /// Connections that stay, since their programs have chosen a controller.
    pub chosen: u64,
    /// Connections that stay, since the kernel refused the controller that they had.
    pub stuck: u64,
}

/// What there is of what the journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Routes with a controller that are as they were made.
    pub steering: usize,
    /// Routes to the main table that are as they were made.
    pub throwing: usize,
    /// Rules that are there.
    pub rules: usize,
    /// Routes and rules of the journal that are not there.
    pub missing: usize,
    /// Routes that somebody has changed or added, by table.
    pub foreign: Vec<(u32, IpNet)>,
    /// Connections that BPF programs have given a controller.
    pub connections: Marked,
}
