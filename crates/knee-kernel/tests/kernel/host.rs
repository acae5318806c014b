//! What the tests have in common.

use knee_kernel::{Control, Health, run};
use knee_record::{Records, Verdict};
use knee_scenario::{Loader, Scenario, Source, parse};
use knee_trials::{Skipped, turn};

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

/// Pauses of a host come and go: so often a run is tried before the host is
/// said to be too busy.
const TRIES: usize = 3;

/// Runs a scenario, unless the host lacks something or was too busy for the
/// run to be worth anything.
pub fn sound_run(text: &str) -> Result<(Records, Health), Skipped> {
    let _turn = turn()?;
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
    // That is no fault of what is tested, in CI neither.
    Err(Skipped(format!("the host is too busy: {reason}")))
}

/// Whether the kernel takes BPF programs from here.
#[cfg(feature = "bpf")]
pub fn bpf_allowed() -> Result<(), Skipped> {
    knee_host::bpf::lack().map_or(Ok(()), |lack| Err(Skipped::lack(lack)))
}
