//! What a run in network namespaces of its own leaves on the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Entries of a folder, which may vanish meanwhile.
#[must_use]
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Network namespaces that a process (its folder in `/proc`) is in or holds
/// open, without the calling thread's.
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

/// Those that any process of the machine is in or holds open.
#[must_use]
pub fn namespaces_in_use() -> BTreeSet<PathBuf> {
    entries(Path::new("/proc")).iter().flat_map(|process| namespaces_of(process)).collect()
}

/// What would keep a run's network alive after its process, or stay of it:
/// mounts of namespaces (`ip netns add`) and devices.
#[derive(Debug, PartialEq, Eq)]
pub struct Leftovers {
    mounts: usize,
    interfaces: BTreeSet<PathBuf>,
}

impl Leftovers {
    /// Of now.
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

/// Whether something comes true within a minute. The kernel makes a namespace
/// only between two clean-ups of others, which on a busy host take seconds.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
pub fn soon(mut condition: impl FnMut() -> bool) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        condition()
    })
}
