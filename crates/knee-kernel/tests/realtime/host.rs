//! Helpers shared by the tests.

use knee_kernel::{Control, Health, run};
use knee_record::{Records, Verdict};
use knee_scenario::{Loader, Scenario, Source, parse};
use knee_trials::{Pauses, Skipped, turn};

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

/// Number of attempts at a run before the host counts as too busy; its pauses vary.
const TRIES: usize = 3;

/// Runs a scenario; skipped if the host lacks something or was too busy for a valid run.
pub fn sound_run(text: &str) -> Result<(Records, Health), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let scenario = scenario(text);
    let mut reason = String::new();
    for _ in 0..TRIES {
        let run = run(&scenario, &Control::default());
        let (records, health) = run.unwrap_or_else(|error| panic!("{error}"));
        match health.verdict() {
            (Verdict::Valid, _) => return Ok((records, health)),
            (_, why) => reason = why,
        }
    }
    // A busy host is not a failure of the test, not even in CI.
    Err(Skipped(format!("the host is too busy: {reason}")))
}

/// Checks whether the kernel accepts BPF programs from this process.
#[cfg(feature = "bpf")]
pub fn bpf_allowed() -> Result<(), Skipped> {
    knee_host::bpf::lack().map_or(Ok(()), |lack| Err(Skipped::lack(lack)))
}
