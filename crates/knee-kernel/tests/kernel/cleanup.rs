//! Nothing is left behind, whatever ends a run.

use crate::host::scenario;
use knee_kernel::{Control, run};
use knee_trials::{Skipped, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

const SCENARIO: &str = "name = \"test\"\nduration = \"60 s\"\n\
    [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
    [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"10 ms\"\n\
    [[flow]]\nname = \"flow\"\ncc = \"cubic\"\n";

/// Set: this process is the one that [`killed`] kills, and runs no tests.
pub const VICTIM: &str = "KNEE_TEST_VICTIM";

/// Runs for a minute.
pub fn victim() {
    run(&scenario(SCENARIO), &Control::default()).unwrap();
}

/// Entries of a folder of `/proc`, which may vanish meanwhile.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Network namespaces that threads of this process are in or hold open.
fn namespaces_of(process: &Path) -> BTreeSet<String> {
    let threads = entries(&process.join("task")).into_iter().map(|task| task.join("ns/net"));
    let held = entries(&process.join("fd"));
    let targets = threads.chain(held).filter_map(|link| fs::read_link(link).ok());
    let names = targets.map(|target| target.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("net:[")).collect()
}

/// All that any process of the machine is in or holds open.
fn namespaces_in_use() -> BTreeSet<String> {
    entries(Path::new("/proc")).iter().flat_map(|process| namespaces_of(process)).collect()
}

fn interfaces() -> BTreeSet<PathBuf> {
    entries(Path::new("/sys/class/net")).into_iter().collect()
}

/// Mounts that keep a namespace alive without a process (`ip netns add`).
fn namespace_mounts() -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    mounts.lines().filter(|line| line.contains(" nsfs ")).count()
}

fn soon(condition: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        thread::park_timeout(Duration::from_millis(20));
        condition()
    })
}

/// A namespace lives as long as a process, a descriptor or a mount refers
/// to it: after `kill -9` there is none of them.
pub fn killed() -> Result<(), Skipped> {
    let _turn = turn()?;
    let (mounts, links) = (namespace_mounts(), interfaces());
    let here = namespaces_of(Path::new("/proc/self"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(VICTIM, "")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let made = || namespaces_of(&process).difference(&here).cloned().collect::<BTreeSet<_>>();
    // Both hosts; then past the self-check, into the run.
    assert!(soon(|| made().len() == 2), "{:?}", made());
    thread::park_timeout(Duration::from_millis(1500));
    let made = made();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    assert!(soon(|| namespaces_in_use().is_disjoint(&made)));
    assert_eq!((namespace_mounts(), interfaces()), (mounts, links));
    Ok(())
}
