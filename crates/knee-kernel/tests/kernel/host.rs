//! What the tests need of the host.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use knee_kernel::{Control, Health, run};
use knee_record::{Records, Verdict};
use knee_scenario::{Loader, Scenario, Source, parse};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is missing; none: nothing.
pub fn lack() -> Option<String> {
    if let Err(error) = File::open("/dev/net/tun") {
        return Some(format!("/dev/net/tun ({error})"));
    }
    let allowed = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join().unwrap();
    allowed.err().map(|error| format!("network namespaces ({error})"))
}

/// Whether a test can run here. Where `KNEE_REQUIRE_ROOT_TESTS` is set, as in
/// CI, a test that cannot fails; elsewhere it says why it is skipped.
pub fn allows(test: &str) -> bool {
    match lack() {
        None => true,
        Some(lack) => {
            skip(test, &format!("the host lacks {lack}"));
            false
        }
    }
}

pub fn skip(test: &str, why: &str) {
    assert!(std::env::var_os("KNEE_REQUIRE_ROOT_TESTS").is_none(), "{test}: {why}");
    println!("test {test} ... ignored, {why}");
}

/// Real time is not to be shared: runs take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("{name}: no files here"))
    }
}

pub fn scenario(text: &str) -> Scenario {
    let source = Source { name: "test.toml", loader: &NoFiles };
    parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Runs a scenario; none where the host lacks something, or was too busy
/// for the run to be worth anything.
pub fn sound_run(test: &str, text: &str) -> Option<(Records, Health)> {
    if !allows(test) {
        return None;
    }
    let _alone = alone();
    let (records, health) =
        run(&scenario(text), &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let (verdict, reason) = health.verdict();
    if verdict != Verdict::Valid {
        // That is no fault of what is tested, in CI neither.
        println!("test {test} ... ignored, the host is too busy: {reason}");
        return None;
    }
    Some((records, health))
}
