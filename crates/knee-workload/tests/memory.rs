//! A mix keeps nothing of a transfer that has ended.

#[path = "it/common/mod.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod common;

use common::rng;
use knee_units::Time;
use knee_workload::{Action, Arrivals, Mix, Sizes, Workload, build, read_access_log};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held while allocations are counted, which are those of all threads.
static COUNTING: Mutex<()> = Mutex::new(());

#[test]
fn a_million_transfers_are_kept_nowhere() {
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let sizes = Sizes::LogNormal { median: 20_000, sigma: 2.0, max: 5_000_000_000 };
    let mix = Mix {
        arrivals: Arrivals::Poisson { per_second: 1000.0 },
        count: Some(1_000_000),
        sizes,
        process: None,
    };
    let mut application = build(&Workload::Mix(mix), rng(2));
    let region = Region::new(ALLOCATOR);
    let mut transfers = 0;
    while application.timer() < Time::MAX {
        let now = application.timer();
        while let Some(action) = application.poll(now) {
            if let Action::Close { connection } = action {
                transfers += 1;
                application.on_closed(now, connection);
            }
        }
    }
    let change = region.change();
    assert_eq!(transfers, 1_000_000);
    assert!(application.is_complete());
    // Not zero: the thread of the test harness may allocate at any time.
    assert!(change.allocations + change.reallocations < 1000, "{change:?}");
}

/// The lines of a log take what their numbers need: here a byte for the size, four for the time.
#[test]
fn lines_of_a_log_are_packed() {
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    const LINES: usize = 100_000;
    let line = |n: usize| format!("{}.{:06},{}\n", 1_700_000_000 + n / 10, n % 10, 1 + n % 200);
    let text = format!("time,bytes\n{}", (0..LINES).map(line).collect::<String>());
    let region = Region::new(ALLOCATOR);
    let log = read_access_log(text.as_bytes()).unwrap();
    let change = region.change();
    // What reallocation adds is counted as allocated.
    let held = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    assert_eq!((log.sizes.len(), log.times_ns.len()), (LINES, LINES));
    assert!(held < 8 * LINES as i64, "{held}");
}
