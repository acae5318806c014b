//! A host that is too busy causes an invalid verdict, not wrong numbers.

use crate::host::scenario;
use crate::{TEN_MEGABIT, text};
use knee_host::set_realtime;
use knee_kernel::{Control, run};
use knee_record::Verdict;
use knee_trials::{Pauses, Skipped, turn};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Priority under SCHED_FIFO, above the emulator's.
const PRIORITY: i32 = 40;

/// Occupies a processor, ahead of everything including the emulator, for 60 ms in every 120.
fn starve(over: &AtomicBool) {
    set_realtime(PRIORITY).unwrap();
    // By the clock, so that all processors are occupied at the same time.
    let monotonic = || clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().num_nanoseconds() as u64;
    let phase = || monotonic() % 120_000_000;
    while !over.load(Ordering::Relaxed) {
        while phase() < 60_000_000 {
            std::hint::spin_loop();
        }
        thread::park_timeout(Duration::from_nanos(120_000_000 - phase()));
    }
}

pub fn a_starved_emulator_is_invalid() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let permitted = thread::spawn(|| set_realtime(PRIORITY)).join().unwrap();
    permitted.map_err(|error| Skipped::lack(format!("the host lacks SCHED_FIFO ({error})")))?;
    let scenario = scenario(&text("3 s", TEN_MEGABIT, "cc = \"cubic\""));
    let over = AtomicBool::new(false);
    let processors = thread::available_parallelism().unwrap().get();
    let outcome = thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| starve(&over));
        }
        let outcome = run(&scenario, &Control::default());
        over.store(true, Ordering::Relaxed);
        outcome
    });
    let (_, health) = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(health.verdict().0, Verdict::Invalid, "{}", health.emulator.stalled);
    Ok(())
}
