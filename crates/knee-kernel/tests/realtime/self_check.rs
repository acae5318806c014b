//! The self-check before a run, and the probes during it.

use crate::host::{scenario, sound_run};
use crate::{TEN_MEGABIT, text};
use knee_kernel::{Control, Health, run};
use knee_record::Records;
use knee_trials::{Pauses, Skipped, turn};

/// Number of runs, of which the best counts: the host may be busy in one of them.
const TRIES: usize = 3;

fn played(text: &str) -> (Records, Health) {
    run(&scenario(text), &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that no path's RTT is off by half a millisecond, from which the verdict is no longer valid;
/// skipped if the host is too busy for an ordinary run.
fn assert_near(scenario: &str) -> Result<(), Skipped> {
    let turn = turn(Pauses::UpToMs(20))?;
    let mut errors = Vec::new();
    for _ in 0..TRIES {
        let (_, health) = played(scenario);
        let all: Vec<f64> =
            health.self_check.iter().map(|check| check.rtt_error_s().unwrap()).collect();
        if all.iter().all(|error| error.abs() < 0.0005) {
            return Ok(());
        }
        errors.push(all);
    }
    drop(turn);
    sound_run(&text("1 s", TEN_MEGABIT, "cc = \"cubic\""))?;
    panic!("RTTs are off by {errors:?} s");
}

/// A probe of 44 bytes takes 5.5 ms at 64 kbit/s: the next one must not wait for it.
pub fn a_slow_link_passes_the_self_check() -> Result<(), Skipped> {
    let slow = TEN_MEGABIT.replace("10 Mbit/s", "64 kbit/s");
    assert_near(&text("1 s", &slow, "cc = \"cubic\""))
}

/// Probes of five paths meet at a link on which each takes 0.176 ms.
pub fn paths_that_share_a_slow_link_pass_the_self_check() -> Result<(), Skipped> {
    let paths = ["a", "b", "c", "d", "e"].map(|name| {
        format!(
            "[path.{name}]\nforward = [\"link\"]\nreverse_delay = \"10 ms\"\n\
             [[flow]]\nname = \"{name}\"\npath = \"{name}\"\ncc = \"cubic\"\n"
        )
    });
    let link = "[link.link]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"4 BDP\"\n";
    assert_near(&format!("name = \"test\"\nduration = \"1 s\"\n{link}{}", paths.concat()))
}

/// The rate at the start, from which the probing interval follows, is zero.
pub fn a_link_that_stands_still_at_first_is_probed_slowly() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let steps =
        "[{ at = \"0 s\", rate = \"0 Mbit/s\" }, { at = \"500 ms\", rate = \"10 Mbit/s\" }]";
    let link = TEN_MEGABIT.replace("\"10 Mbit/s\"", steps).replace("20 BDP", "100 kB");
    let (records, health) = played(&text("3 s", &link, "cc = \"cubic\""));
    assert!(records.flows[0].delivered_bytes > 0);
    assert!(health.probes[0].sent <= 3 * 50, "{} probes in 3 s", health.probes[0].sent);
    Ok(())
}
