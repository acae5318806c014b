//! Privileges of this process, and how it gains more without root.

use crate::HostError;
use caps::{CapSet, Capability, CapsHashSet};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{getgid, getuid};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Bits of capability.h.
pub(crate) const NET_ADMIN: u64 = 1 << 12;
pub(crate) const SYS_ADMIN: u64 = 1 << 21;

/// Returns the effective capabilities, in the user namespace of the process.
pub(crate) fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Returns whether the process is in a user namespace other than the host's, so that its
/// capabilities are not the host's.
#[cfg(feature = "bpf")]
pub(crate) fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut words = map.split_whitespace();
    // In the host's namespace every number maps to itself (user_namespaces(7)).
    [words.next(), words.next(), words.next()] != [Some("0"), Some("0"), Some("4294967295")]
}

/// Drops all capabilities of the calling thread, and of threads that it starts later, except for
/// `CAP_DAC_OVERRIDE`, with which the process may have been started in order to write to folders of
/// others.
///
/// # Errors
///
/// If the system refuses.
pub fn give_up_capabilities() -> Result<(), HostError> {
    let give_up = || -> Result<(), caps::errors::CapsError> {
        let permitted = caps::read(None, CapSet::Permitted)?;
        let kept: CapsHashSet =
            permitted.iter().copied().filter(|one| *one == Capability::CAP_DAC_OVERRIDE).collect();
        // A service may not even be permitted to call capset.
        if kept == permitted && caps::read(None, CapSet::Inheritable)?.is_empty() {
            return Ok(());
        }
        caps::clear(None, CapSet::Ambient)?;
        caps::clear(None, CapSet::Inheritable)?;
        caps::set(None, CapSet::Effective, &kept)?;
        caps::set(None, CapSet::Permitted, &kept)
    };
    give_up().map_err(|error| {
        let advice = "permit the call capset, as with SystemCallFilter=capset in a service";
        HostError::refused("give up capabilities", io::Error::other(error), advice)
    })
}

/// Makes the process the administrator of a user namespace of its own, if it may not make network
/// namespaces otherwise. Files that it writes still belong to the user. What needs privileges on
/// the host itself, such as SCHED_FIFO, remains refused.
///
/// Must be called before any thread is started (user_namespaces(7)).
///
/// # Errors
///
/// The host does not permit it.
pub fn enter_user_namespace() -> io::Result<()> {
    let needed = NET_ADMIN | SYS_ADMIN;
    if capabilities() & needed == needed {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Otherwise only root may map groups.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Raises the limit of open files of this process to the highest that it may have without further
/// privileges.
///
/// # Errors
///
/// The system refuses.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// How to mount the control groups of version 2 on a host that has none, without hiding those of
/// version 1.
pub const MOUNT_CGROUPS: &str = "mkdir -p /run/cgroup2 && mount -t cgroup2 none /run/cgroup2";

/// Returns the root of the host's control groups (cgroups(7), version 2), if visible to this
/// process.
pub fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next() == Some("cgroup2")).then(|| PathBuf::from(place))
    })
}
