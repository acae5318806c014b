//! Runs with many connections, each of which has a socket at both ends.

use crate::host::scenario;
use knee_kernel::{Control, run};
use knee_trials::{Pauses, Skipped, turn};
use nix::sys::resource::{Resource, setrlimit};
use std::process::{Command, Output};

/// If set, this process is the one that [`output_with`] started, and runs no tests. The soft and the
/// hard limit of open files.
pub const LIMITS: &str = "KNEE_TEST_FILES";

/// Thirty flows, with 90 sockets.
const SCENARIO: &str = "name = \"test\"\nduration = \"2 s\"\n\
    [link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1 MB\"\n\
    [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"10 ms\"\n\
    [[flow]]\nname = \"flow\"\ncc = \"cubic\"\ncount = 30\n";

/// Runs with the limits of the environment, and panics if a flow delivers nothing.
pub fn limited() {
    let limits = std::env::var(LIMITS).unwrap();
    let (soft, hard) = limits.split_once(' ').unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.parse().unwrap(), hard.parse().unwrap()).unwrap();
    let run = run(&scenario(SCENARIO), &Control::default());
    let (records, _) = run.unwrap_or_else(|error| panic!("{error}"));
    assert!(records.flows.iter().all(|flow| flow.delivered_bytes > 0), "a flow is idle");
}

fn output_with(limits: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    Command::new(program).env(LIMITS, limits).output().unwrap()
}

/// Each listener accepts its connection, or the run says why not.
pub fn a_run_without_enough_files_says_so() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    // Beyond the 30 listeners and the 30 ends that connect, the host itself needs less than 25.
    let output = output_with("85 85");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("accept a connection") && told.contains("limits"), "{told}");
    Ok(())
}

/// 1024 is the usual soft limit, far below the hard one.
pub fn a_run_raises_the_soft_limit_of_files() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let output = output_with("64 512");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    Ok(())
}
