//! Nothing is left behind, however a run ends.

use crate::host::scenario;
use knee_kernel::{Control, run};
use knee_trials::namespaces::{Leftovers, namespaces_in_use, namespaces_of, soon};
use knee_trials::{Pauses, Skipped, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const SCENARIO: &str = "name = \"test\"\nduration = \"60 s\"\n\
    [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
    [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"10 ms\"\n\
    [[flow]]\nname = \"flow\"\ncc = \"cubic\"\n";

/// If set, this process is the one that [`killed`] kills, and runs no tests.
pub const VICTIM: &str = "KNEE_TEST_VICTIM";

/// Runs for a minute.
pub fn victim() {
    run(&scenario(SCENARIO), &Control::default()).unwrap();
}

/// A namespace lives as long as a process, a descriptor or a mount refers to it; after `kill -9`
/// there is none of them.
pub fn killed() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let before = Leftovers::now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(VICTIM, "")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let made = || namespaces_of(&process);
    // Both hosts exist; then past the self-check, into the run.
    assert!(soon(|| made().len() == 2), "{:?}", made());
    thread::park_timeout(Duration::from_millis(1500));
    let made = made();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    assert!(soon(|| namespaces_in_use().is_disjoint(&made)));
    assert_eq!(Leftovers::now(), before);
    Ok(())
}
