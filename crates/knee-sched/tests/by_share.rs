//! Schedulers that share data out, against decisions computed by hand.
#![allow(clippy::unwrap_used, reason = "a test ends there")]

mod common;

use common::{Ground, names};
use common::{MSS, blocked_by, busy, head, line, path, scheduler, view};
use knee_sched::{Decision, Path, PathSet, Scheduler, View};
use knee_units::Rate;

const WAIT: Decision = Decision::Wait;

fn sctc(paths: &[Path], unsent_bytes: u64) -> Decision {
    scheduler("sctc").schedule(&View { unsent: unsent_bytes, ..view(paths) })
}

/// Rates 10/10 = 1 and 40/20 = 2 packets per ms; 50 packets of free window.
#[test]
fn sctc_has_two_branches() {
    let paths = [path(10, 10, 0), path(20, 40, 0)];
    assert_eq!(sctc(&paths, 50_000), head(1), "R1 = R2: the highest rate");
    assert_eq!(sctc(&paths, 49_001), head(1), "a short last packet counts as one");
    assert_eq!(sctc(&paths, 49_000), head(0), "R1 < R2: 10 ms before 20 ms");
    // What is held makes R2 smaller: 4 + 25 packets.
    let paths = [path(10, 10, 6), path(20, 40, 15)];
    assert_eq!((sctc(&paths, 29_000), sctc(&paths, 28_000)), (head(1), head(0)));
}

#[test]
fn sctc_breaks_ties_by_index() {
    let equal = [path(20, 10, 2), path(20, 10, 1), path(20, 10, 0)];
    assert_eq!((sctc(&equal, 900_000), sctc(&equal, 1_000)), (head(0), head(0)));
    // 10/20 = 20/40 as rates, but not as RTTs.
    let same_rate = [path(40, 20, 0), path(20, 10, 0)];
    assert_eq!((sctc(&same_rate, 900_000), sctc(&same_rate, 1_000)), (head(0), head(1)));
}

#[test]
fn sctc_takes_any_number_of_paths() {
    // Rates 0.5, 2, 1.5 and (full) 4; free windows 10 + 10 + 45.
    let paths = [path(20, 10, 0), path(25, 50, 40), path(30, 45, 0), path(10, 40, 40)];
    assert_eq!((sctc(&paths, 65_000), sctc(&paths, 64_000)), (head(1), head(0)));
    // Held back by pacing: no candidate, but its window will be filled.
    let paths = [path(20, 10, 0), busy(path(25, 50, 40)), path(30, 45, 0), path(10, 40, 40)];
    assert_eq!((sctc(&paths, 65_000), sctc(&paths, 64_000)), (head(2), head(0)));
    assert_eq!(sctc(&[path(10, 40, 40), path(5, 3, 3)], 1_000), WAIT);
}

/// A window filled to nine tenths still is done in one RTT, so the next
/// packet there is no later than in an empty one.
#[test]
fn sctc_counts_full_windows_only() {
    assert_eq!(sctc(&[path(31, 10, 0), path(30, 10, 9)], 1_000), head(1));
    // A window that shrank to 4 holds two and a half: done after 3 x 20 ms.
    let mut shrunk = path(20, 4, 10);
    shrunk.ready = true;
    assert_eq!(sctc(&[shrunk, path(59, 10, 0)], 1_000), head(1));
    assert_eq!(sctc(&[shrunk, path(60, 10, 0)], 1_000), head(0));
}

#[test]
fn round_robin_takes_turns() {
    let mut turns = scheduler("round-robin");
    let all = [path(10, 9, 0), path(20, 9, 0), path(30, 9, 0)];
    let order: Vec<Decision> = (0..5).map(|_| turns.schedule(&view(&all))).collect();
    assert_eq!(order, [head(0), head(1), head(2), head(0), head(1)]);
    // Path 2 is due and full: the others begin afresh, and it is still due.
    let full = [path(10, 9, 0), path(20, 9, 0), path(30, 9, 9)];
    assert_eq!(turns.schedule(&view(&full)), head(0));
    assert_eq!(turns.schedule(&view(&all)), head(1));
    assert_eq!(turns.schedule(&view(&all)), head(2));
}

/// Linux MPTCP fork: a turn that starts afresh does so for the paths with
/// room; one that had its turn and is full now has not got another.
#[test]
fn round_robin_starts_afresh_only_where_there_is_room() {
    let mut turns = scheduler("round-robin");
    let (full, open) = (path(10, 9, 9), path(10, 9, 0));
    assert_eq!(turns.schedule(&view(&[full, open, full])), head(1));
    assert_eq!(turns.schedule(&view(&[full, full, open])), head(2));
    assert_eq!(turns.schedule(&view(&[full, open, full])), head(1), "afresh for path 1");
    let order: Vec<Decision> = (0..3).map(|_| turns.schedule(&view(&[open; 3]))).collect();
    assert_eq!(order, [head(0), head(0), head(1)], "path 2 had its turn before path 0");
}

/// Deficit scheduling stays within a packet of every path's due.
#[test]
fn capacity_shares_in_proportion() {
    let rates = [10_u64, 5, 1].map(|mbit| Rate::from_bits_per_second(mbit * 1_000_000));
    let mut paths = rates.map(|rate| Path { rate: Some(rate), ..path(10, 100, 0) });
    let mut capacity = scheduler("capacity");
    for total in 1..=16_000_u64 {
        let Decision::Send(chosen, _) = capacity.schedule(&view(&paths)) else { panic!("waits") };
        paths[chosen].sent += MSS;
        for (path, weight) in paths.iter().zip([10.0, 5.0, 1.0]) {
            let due = weight / 16.0 * (total * MSS) as f64;
            assert!((path.sent as f64 - due).abs() <= 1.5 * MSS as f64, "{total}: {path:?}");
        }
    }
    assert_eq!(paths.map(|path| path.sent / MSS), [10_000, 5_000, 1_000]);
    let ascending = [1, 5, 10].map(|mbit: u64| Path {
        rate: Some(Rate::from_bits_per_second(mbit * 1_000_000)),
        ..path(10, 100, 0)
    });
    assert_eq!(capacity.schedule(&view(&ascending)), head(2), "the first packet too");
}

/// Before there is a delivery rate a window per RTT stands for it: 3 to 1.
#[test]
fn capacity_begins_with_window_over_rtt() {
    let lines = [line(20, 10), line(10, 15)];
    let mut paths = [path(20, 10, 0), path(10, 15, 0)];
    let mut capacity = scheduler("capacity");
    for _ in 0..400 {
        let Decision::Send(chosen, _) = capacity.schedule(&view(&paths)) else { panic!("waits") };
        paths[chosen].sent += MSS;
    }
    assert_eq!(paths.map(|path| path.sent / MSS), [100, 300]);
    let outcome = Ground::new(&lines, 400, 1000).run(&mut capacity).unwrap();
    assert!(outcome.given[1].len().abs_diff(300) <= 15, "{}", outcome.given[1].len());
}

#[test]
fn redundant_repeats_before_it_sends() {
    let mut redundant = scheduler("redundant");
    let paths = [path(10, 9, 1), path(20, 9, 1)];
    let repeatable = |set| View { can_repeat: PathSet(set), ..view(&paths) };
    assert_eq!(redundant.schedule(&repeatable(0b01)), Decision::Repeat(0));
    assert_eq!(redundant.schedule(&repeatable(0b00)), head(0));
    let slow_only = [path(10, 9, 9), path(20, 9, 1)];
    let view = View { can_repeat: PathSet(0b10), ..view(&slow_only) };
    assert_eq!(redundant.schedule(&view), Decision::Repeat(1));
    assert_eq!(redundant.schedule(&blocked_by(1, &slow_only)), WAIT);
}

/// Two equal paths carry every packet each; a slow one skips what the fast
/// one got acknowledged, so the transfer takes no longer than on the fast one.
#[test]
fn redundant_is_as_fast_as_its_fastest_path() {
    let equal = [line(20, 10), line(20, 10)];
    let outcome = Ground::new(&equal, 100, 1000).run(&mut scheduler("redundant")).unwrap();
    assert_eq!(outcome.repeated, 100);
    let alone = Ground::new(&[line(20, 10)], 100, 1000).run(&mut scheduler("redundant")).unwrap();
    assert_eq!(outcome.completed(), alone.completed());
    let unequal = [line(20, 10), line(200, 10)];
    let outcome = Ground::new(&unequal, 100, 1000).run(&mut scheduler("redundant")).unwrap();
    assert!(outcome.completed() <= alone.completed());
    assert!(outcome.given[1].len() < 40, "{:?}", outcome.given[1]);
}

#[test]
fn opportunistic_redundancy_takes_the_room_there_is() {
    let mut scheduler = scheduler("opportunistic-redundant");
    let idle = [path(10, 9, 0), path(20, 9, 9), path(30, 9, 8)];
    assert_eq!(scheduler.schedule(&view(&idle)), Decision::Duplicate(PathSet(0b101)));
    let one = [path(10, 9, 9), path(20, 9, 9), path(30, 9, 8)];
    assert_eq!(scheduler.schedule(&view(&one)), head(2));
    assert_eq!(scheduler.schedule(&blocked_by(0, &idle)), WAIT, "no later copies");
}

/// On equal paths there is nothing to be clever about: all that send each
/// packet once take the same time, the paths' sum.
#[test]
fn equal_paths_add_up_whatever_the_scheduler() {
    let lines = [line(20, 10), line(20, 10)];
    for name in names().into_iter().filter(|name| !name.contains("redundant")) {
        let outcome = Ground::new(&lines, 200, 1000).run(&mut scheduler(name)).unwrap();
        // 20 packets per 20 ms, the first after 10 ms.
        assert_eq!(outcome.completed().as_millis_f64(), 190.0, "{name}");
    }
}
