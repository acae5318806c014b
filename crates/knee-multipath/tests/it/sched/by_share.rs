//! Schedulers that divide data, checked against decisions computed by hand.
use crate::sched::common::{Ground, Line, names};
use crate::sched::common::{
    MSS, blocked_by, buffered_cycle, busy, head, line, path, scheduler, scheduler_with, view,
};
use knee_multipath::sched::{Decision, Path, PathSet, Scheduler, Status, Value, View, build};
use knee_units::Rate;
use proptest::prelude::*;

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
    // Data in flight reduces R2: 4 + 25 packets.
    let paths = [path(10, 10, 6), path(20, 40, 15)];
    assert_eq!((sctc(&paths, 29_000), sctc(&paths, 28_000)), (head(1), head(0)));
}

#[test]
fn sctc_breaks_ties_by_index() {
    let equal = [path(20, 10, 2), path(20, 10, 1), path(20, 10, 0)];
    assert_eq!((sctc(&equal, 900_000), sctc(&equal, 1_000)), (head(0), head(0)));
    // 10/20 = 20/40 as rates, but the RTTs differ.
    let same_rate = [path(40, 20, 0), path(20, 10, 0)];
    assert_eq!((sctc(&same_rate, 900_000), sctc(&same_rate, 1_000)), (head(0), head(1)));
}

#[test]
fn sctc_takes_any_number_of_paths() {
    // Rates 0.5, 2, 1.5 and (full) 4; free windows 10 + 10 + 45.
    let paths = [path(20, 10, 0), path(25, 50, 40), path(30, 45, 0), path(10, 40, 40)];
    assert_eq!((sctc(&paths, 65_000), sctc(&paths, 64_000)), (head(1), head(0)));
    // Held back by pacing: it is not a candidate, but its window will be filled.
    let paths = [path(20, 10, 0), busy(path(25, 50, 40)), path(30, 45, 0), path(10, 40, 40)];
    assert_eq!((sctc(&paths, 65_000), sctc(&paths, 64_000)), (head(2), head(0)));
    assert_eq!(sctc(&[path(10, 40, 40), path(5, 3, 3)], 1_000), WAIT);
}

/// A window that is nine tenths full still takes one RTT, so the next packet is no
/// later than if it were empty.
#[test]
fn sctc_counts_full_windows_only() {
    assert_eq!(sctc(&[path(31, 10, 0), path(30, 10, 9)], 1_000), head(1));
    // A window that shrank to 4 holds two and a half windows: done after 3 x 20 ms.
    let mut shrunk = path(20, 4, 10);
    shrunk.ready = true;
    assert_eq!(sctc(&[shrunk, path(59, 10, 0)], 1_000), head(1));
    assert_eq!(sctc(&[shrunk, path(60, 10, 0)], 1_000), head(0));
}

fn planned(paths: &[Path], unsent: u64) -> Decision {
    let mut plan = scheduler_with("sctc", "plan", Value::Switch(true));
    plan.schedule(&View { unsent: unsent * MSS, ..view(paths) })
}

/// Windows of 10 in 40 and in 100 ms: by 80 ms the first delivers 20 packets,
/// by 100 ms the two deliver 30.
#[test]
fn a_plan_of_sctc_uses_a_path_that_has_a_share() {
    let (near, far) = (path(40, 10, 0), path(100, 10, 0));
    let full = path(40, 10, 10);
    assert_eq!(planned(&[near, far], 20), head(0), "the higher rate first");
    assert_eq!(planned(&[full, far], 10), WAIT, "path 0 is done after 80 ms");
    assert_eq!(planned(&[full, far], 11), head(1), "at 100 ms both, not 120 ms alone");
    assert_eq!(planned(&[full, path(100, 10, 9)], 11), head(1), "one of 11 is enough");
    let far = path(200, 10, 0);
    assert_eq!(planned(&[full, far], 30), WAIT, "4 windows by 160 ms, one of them under way");
    assert_eq!(planned(&[full, far], 31), head(1), "at 200 ms both");
    // Nothing is in flight that could wake it up.
    assert_eq!(planned(&[busy(near), far], 5), head(1));
    assert_eq!(planned(&[path(0, 10, 0)], 5), head(0), "no RTT is known");
}

/// Returns all divisions of the waiting data among the paths, and when the last
/// is done: ceil((held + share) / window) round trips, for paths with a share.
fn divisions(paths: &[Path], unsent: u64) -> Vec<(u64, Vec<u64>)> {
    let Some((first, rest)) = paths.split_first() else {
        return if unsent == 0 { vec![(0, Vec::new())] } else { Vec::new() };
    };
    let [held, window] = [first.in_flight / MSS, first.window / MSS];
    let with = |share: u64| {
        let rounds = if share == 0 { 0 } else { (held + share).div_ceil(window) };
        let done = rounds * first.srtt.as_nanos();
        divisions(rest, unsent - share).into_iter().map(move |(others, shares)| {
            (others.max(done), std::iter::once(share).chain(shares).collect())
        })
    };
    (0..=unsent).flat_map(with).collect()
}

proptest! {
    /// A path gets a packet exactly if some division gives it one and finishes
    /// as early as possible.
    #[test]
    fn a_plan_of_sctc_is_the_best_division(
        lines in proptest::collection::vec((1..60_u64, 1..6_u64, 0..9_u64), 1..=3),
        unsent in 1..14_u64,
    ) {
        let paths: Vec<Path> =
            lines.iter().map(|(rtt, window, held)| path(*rtt, *window, *held)).collect();
        let all = divisions(&paths, unsent);
        let soonest = all.iter().map(|(done, _)| *done).min().unwrap();
        let best = all.iter().filter(|(done, _)| *done == soonest);
        let mut gets = vec![false; paths.len()];
        for (_, shares) in best {
            gets.iter_mut().zip(shares).for_each(|(gets, share)| *gets |= *share > 0);
        }
        let with_a_share = (0..paths.len()).filter(|at| paths[*at].ready && gets[*at]).count();
        match planned(&paths, unsent) {
            Decision::Send(path, _) => {
                let idle = paths.iter().all(|path| path.in_flight == 0);
                prop_assert!(gets[path] || idle && with_a_share == 0, "{paths:?}");
            }
            _ => prop_assert_eq!(with_a_share, 0, "{:?}", paths),
        }
    }
}

/// Divides `packets` among the paths by the paper's equations (3) to (6) and its greedy rule, packet
/// by packet, with RTTs in ms: shares in proportion to the rates, in whole windows; then each of the
/// remaining n' to the smallest t'_i + rtt_i.
fn by_the_paper(lines: &[(u64, u64)], packets: u64) -> Vec<u64> {
    // T' = n / sum of cwnd_i / rtt_i, as a fraction.
    let product: u64 = lines.iter().map(|(rtt, _)| rtt).product();
    let rates: u64 = lines.iter().map(|(rtt, window)| window * (product / rtt)).sum();
    let whole = |(rtt, window): &(u64, u64)| packets * product / (rates * rtt) * window;
    let mut shares: Vec<u64> = lines.iter().map(whole).collect();
    let rest = packets - shares.iter().sum::<u64>();
    assert!(rest < lines.iter().map(|(_, window)| window).sum(), "equation (6)");
    for _ in 0..rest {
        let ends = |path: &usize| (shares[*path] / lines[*path].1 + 1) * lines[*path].0;
        let first = (0..lines.len()).min_by_key(ends).unwrap();
        shares[first] += 1;
    }
    shares
}

/// Returns what each path is given of a task before the scheduler waits, with paths that always have
/// room, and what the views show after the first packet changed by `later`.
fn cycle(
    scheduler: &mut dyn Scheduler,
    paths: &[Path],
    packets: u64,
    later: impl Fn(&mut Path),
) -> Vec<u64> {
    let mut shares = vec![0; paths.len()];
    let mut paths = paths.to_vec();
    let mut unsent = packets;
    while let Decision::Send(path, _) =
        scheduler.schedule(&View { unsent: unsent * MSS, ..view(&paths) })
    {
        if shares.iter().sum::<u64>() == 0 {
            paths.iter_mut().for_each(&later);
            // New requests, which wait.
            unsent += 1000;
        }
        paths[path].in_flight = MSS;
        (shares[path], unsent) = (shares[path] + 1, unsent - 1);
    }
    shares
}

fn in_cycles() -> Box<dyn Scheduler> {
    scheduler_with("sctc", "cycle", Value::Switch(true))
}

proptest! {
    /// A cycle divides its task as the equations do, whatever happens to windows and RTTs meanwhile;
    /// no division ends earlier, and what comes later waits.
    #[test]
    fn a_cycle_of_sctc_divides_as_the_equations_do(
        lines in proptest::collection::vec((1..60_u64, 1..6_u64), 1..=3),
        packets in 1..14_u64,
        (rtt, window) in (1..60_u64, 1..6_u64),
    ) {
        let paths: Vec<Path> = lines.iter().map(|(rtt, window)| path(*rtt, *window, 0)).collect();
        let shares = cycle(&mut *in_cycles(), &paths, packets, |path| {
            (path.srtt, path.window) = (crate::sched::common::ms(rtt), window * MSS);
        });
        prop_assert_eq!(&shares, &by_the_paper(&lines, packets), "{:?}", lines);
        let ends = lines.iter().zip(&shares).map(|((rtt, window), share)| {
            share.div_ceil(*window) * rtt * 1_000_000
        });
        let soonest = divisions(&paths, packets).iter().map(|(done, _)| *done).min();
        prop_assert_eq!(ends.max(), soonest);
    }
}

/// 10 packets per 40 ms and 20 per 100 ms: of 60 packets, 40 by 160 ms on the first, 20 by 100 ms on
/// the second. The next task begins when both have arrived.
#[test]
fn a_cycle_of_sctc_ends_when_its_task_has_arrived() {
    let mut sctc = in_cycles();
    let paths = [path(40, 10, 0), path(100, 20, 0)];
    assert_eq!(cycle(&mut *sctc, &paths, 60, |_| ()), [40, 20]);
    let under_way = [path(40, 10, 0), path(100, 20, 1)];
    assert_eq!(sctc.schedule(&view(&under_way)), WAIT);
    assert_eq!(sctc.schedule(&view(&paths)), head(0), "a new cycle: 0.25 against 0.2 per ms");
    let mut buffered = build(&buffered_cycle()).unwrap();
    let shares = cycle(&mut *buffered, &paths, 900, |_| ());
    assert_eq!(shares, [40, 20], "twice 10 + 20 packets");
}

/// A path that dies leaves its part to the others, and does not hold up the next cycle.
#[test]
fn a_cycle_of_sctc_goes_on_without_a_dead_path() {
    let mut sctc = in_cycles();
    let (near, far) = (path(40, 10, 5), path(100, 20, 5));
    let dead = |path: Path| Path { status: Status::Suspect, ready: false, ..path };
    let mut ask =
        |paths: &[Path], unsent: u64| sctc.schedule(&View { unsent: unsent * MSS, ..view(paths) });
    assert_eq!(ask(&[path(40, 10, 0), path(100, 20, 0)], 30), head(0));
    let full = path(40, 10, 10);
    assert_eq!(ask(&[full, far], 29), head(1), "its part of the task");
    assert_eq!(ask(&[full, dead(far)], 28), WAIT, "the others have no room");
    for unsent in (1..=28).rev() {
        assert_eq!(ask(&[near, dead(far)], unsent), head(0));
    }
    assert_eq!(ask(&[path(40, 10, 0), dead(far)], 7), head(0), "what the dead path holds");
}

#[test]
fn round_robin_takes_turns() {
    let mut turns = scheduler("round-robin");
    let all = [path(10, 9, 0), path(20, 9, 0), path(30, 9, 0)];
    let order: Vec<Decision> = (0..5).map(|_| turns.schedule(&view(&all))).collect();
    assert_eq!(order, [head(0), head(1), head(2), head(0), head(1)]);
    // Path 2 is due and full: the others start a new round, and it is still due.
    let full = [path(10, 9, 0), path(20, 9, 0), path(30, 9, 9)];
    assert_eq!(turns.schedule(&view(&full)), head(0));
    assert_eq!(turns.schedule(&view(&all)), head(1));
    assert_eq!(turns.schedule(&view(&all)), head(2));
}

/// Linux MPTCP fork: a new round starts for the paths with room; a path that
/// had its turn and is full now does not get another.
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

/// Deficit scheduling stays within one packet of every path's due.
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

/// Before there is a delivery rate, a window per RTT replaces it: 3 to 1.
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

/// Each of two equal paths carries every packet; a slow one skips what was acknowledged
/// on the fast one, so the transfer takes no longer than on the fast one.
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

/// On equal paths there is nothing to optimise: all schedulers that send each
/// packet once take the same time, that of the paths' sum.
#[test]
fn equal_paths_add_up_whatever_the_scheduler() {
    let lines = [line(20, 10), line(20, 10)];
    let time = |lines: &[Line], name: &str| {
        let outcome = Ground::new(lines, 200, 1000).run(&mut scheduler(name)).unwrap();
        outcome.completed().as_millis_f64()
    };
    // Capacities are never known here: just-in-time keeps a path on trial.
    let others = names().into_iter().filter(|name| *name != "just-in-time");
    for name in others.filter(|name| !name.contains("redundant")) {
        // 20 packets per 20 ms, the first after 10 ms.
        assert_eq!(time(&lines, name), 190.0, "{name}");
    }
    let tried = time(&lines, "just-in-time");
    assert!(tried < 0.7 * time(&lines[..1], "just-in-time"), "{tried}");
}
