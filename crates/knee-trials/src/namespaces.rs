//! Detects what a run in its own network namespaces leaves on the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Entries of a folder; ignores those that vanish.
#[must_use]
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Network namespaces that a process (given by its folder in `/proc`) uses or holds open, except
/// the calling thread's.
///
/// # Panics
///
/// Without `/proc`.
#[must_use]
pub fn namespaces_of(process: &Path) -> BTreeSet<PathBuf> {
    let ours = fs::read_link("/proc/thread-self/ns/net").expect("/proc is mounted");
    let threads = entries(&process.join("task")).into_iter().map(|task| task.join("ns/net"));
    let held = entries(&process.join("fd"));
    let targets = threads.chain(held).filter_map(|link| fs::read_link(link).ok());
    let others = targets.filter(|name| *name != ours);
    others.filter(|name| name.to_string_lossy().starts_with("net:[")).collect()
}

/// Network namespaces that any process uses or holds open.
#[must_use]
pub fn namespaces_in_use() -> BTreeSet<PathBuf> {
    entries(Path::new("/proc")).iter().flat_map(|process| namespaces_of(process)).collect()
}

/// Possible remains of a run, or what would keep its network alive: mounts of namespaces
/// (`ip netns add`) and devices.
#[derive(Debug, PartialEq, Eq)]
pub struct Leftovers {
    mounts: usize,
    interfaces: BTreeSet<PathBuf>,
}

impl Leftovers {
    /// Reads the current state.
    ///
    /// # Panics
    ///
    /// Without `/proc`.
    #[must_use]
    pub fn now() -> Leftovers {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
        Leftovers {
            mounts: mounts.lines().filter(|line| line.contains(" nsfs ")).count(),
            interfaces: entries(Path::new("/sys/class/net")).into_iter().collect(),
        }
    }
}

/// Whether a condition becomes true within a minute. The kernel creates namespaces only between
/// clean-ups of others, which take seconds on a busy host.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
pub fn soon(mut condition: impl FnMut() -> bool) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        condition()
    })
}
