//! Schedulers that send packets other than the next one: DAPS and DEMS.
use crate::sched::common::{
    Ground, Line, MSS, blocked_by, busy, head, line, ms, path, scheduler, view,
};
use knee_multipath::sched::{Decision, Path, Place, View};
use knee_units::{Rate, Time};

/// The example at the top of daps.rs: fast sends 0 and 1, slow the packet due
/// after 2 and 3, which is the third of those unsent at that time.
#[test]
fn daps_gives_the_slow_path_what_will_be_due() {
    let mut daps = scheduler("daps");
    let states = [
        [path(2, 2, 0), path(6, 1, 0)],
        [path(2, 2, 1), path(6, 1, 0)],
        [path(2, 2, 2), path(6, 1, 0)],
    ];
    let answers = states.map(|paths| daps.schedule(&view(&paths)));
    assert_eq!(answers, [head(0), head(0), Decision::Send(1, Place::Ahead(2 * MSS))]);
}

/// Packets 2 and 3 arrive together with packet 4 and precede it, since the faster
/// path wins ties. So a fast path that has room first sends the next packet.
#[test]
fn daps_breaks_ties_for_the_faster_path() {
    let mut daps = scheduler("daps");
    let slow_held_back = [path(2, 2, 0), busy(path(6, 1, 0))];
    let answers: Vec<Decision> = (0..4).map(|_| daps.schedule(&view(&slow_held_back))).collect();
    assert_eq!(answers, [head(0); 4]);
    // Then packet 4 is due, and only then 5 and 6.
    let both = [path(2, 2, 0), path(6, 1, 0)];
    assert_eq!(daps.schedule(&view(&both)), head(1));
}

/// The fast path finishes the file sooner: the slow one is not used.
#[test]
fn daps_leaves_what_ends_sooner_to_the_fast_path() {
    let paths = [path(2, 2, 2), path(6, 1, 0)];
    let ask = |unsent| scheduler("daps").schedule(&View { unsent, ..view(&paths) });
    // Nothing has been given out in this plan: two windows of two precede it.
    assert_eq!(ask(4 * MSS), Decision::Wait);
    assert_eq!(ask(5 * MSS), Decision::Send(1, Place::Ahead(4 * MSS)));
    let receiver_full = View { window_left: 4 * MSS, ..view(&paths) };
    assert_eq!(scheduler("daps").schedule(&receiver_full), Decision::Wait);
    let idle = [busy(path(2, 2, 0)), path(6, 1, 0)];
    let short = View { unsent: 4 * MSS, ..view(&idle) };
    assert_eq!(scheduler("daps").schedule(&short), head(1), "nobody else will ask");
}

/// The purpose of DAPS: with constant delays and windows, nothing waits at the
/// receiver for an earlier packet longer than until the next arrival time;
/// minrtt keeps a window of the slow path waiting each round.
#[test]
fn daps_arrives_in_order() {
    for (lines, windows_per_round) in [
        ([line(20, 10), line(60, 10)], 3),
        ([line(20, 8), line(100, 20)], 5),
        ([line(10, 4), line(70, 6)], 7),
    ] {
        let waiting = |name| {
            Ground::new(&lines, 2000, 5000).run(&mut scheduler(name)).unwrap().most_waiting()
        };
        assert_eq!(waiting("daps"), 0, "{lines:?}");
        let held = lines[0].window * (windows_per_round - 1) / 2;
        assert!(waiting("minrtt") as u64 >= held.min(lines[1].window), "{lines:?}");
    }
}

/// One-way delays of 10 and 60 ms; a packet of the slow path is in time as long
/// as the fast one, at 1 Mbyte/s, needs 50 ms for the rest: 50 packets.
#[test]
fn dems_works_from_both_ends() {
    let rate = Some(Rate::from_bytes_per_second(1_000_000));
    let fast = Path { rate, ..path(20, 20, 20) };
    let paths = [Path { ready: true, in_flight: 0, ..fast }, path(120, 20, 0)];
    let fast_full = [fast, path(120, 20, 0)];
    let ask = |paths: &[Path], unsent| {
        scheduler("dems").schedule(&View { unsent: unsent * MSS, ..view(paths) })
    };
    assert_eq!(ask(&paths, 100), head(0));
    assert_eq!(ask(&fast_full, 100), Decision::Send(1, Place::Tail));
    assert_eq!(ask(&fast_full, 50), Decision::Send(1, Place::Tail));
    assert_eq!(ask(&fast_full, 49), Decision::Wait);
    // More than a chunk of 8 MB: the chunk's tail, not the file's.
    let tail = Decision::Send(1, Place::Ahead(7999 * MSS));
    let mut dems = scheduler("dems");
    assert_eq!(dems.schedule(&View { unsent: 9_000 * MSS, ..view(&fast_full) }), tail);
    // Data written in the meantime: the chunk is unchanged, less the packet sent.
    let next = Decision::Send(1, Place::Ahead(7998 * MSS));
    let paths = [fast, path(120, 20, 1)];
    assert_eq!(dems.schedule(&View { unsent: 8_999 * MSS, ..view(&paths) }), next);
    // A chunk ends at the end of the receiver's window.
    let narrow = View { window_left: 300 * MSS + 500, ..view(&fast_full) };
    let tail = Decision::Send(1, Place::Ahead(299 * MSS));
    assert_eq!(scheduler("dems").schedule(&narrow), tail);
}

/// When everything is given out, the fast path repeats as much as it delivers during
/// the larger RTT variation: in 3 ms at 1 Mbyte/s, three packets.
#[test]
fn dems_sends_a_little_twice_where_the_paths_meet() {
    let rate = Some(Rate::from_bytes_per_second(1_000_000));
    let slow = Path { rtt_variation: ms(3), ..path(120, 20, 10) };
    let paths = [Path { rate, ..path(20, 20, 5) }, slow];
    let mut dems = scheduler("dems");
    assert_eq!(dems.schedule(&View { unsent: MSS, ..view(&paths) }), head(0));
    let met = View { unsent: 0, ..blocked_by(1, &paths) };
    let answers: Vec<Decision> = (0..4).map(|_| dems.schedule(&met)).collect();
    let repeat = Decision::Repeat(0);
    assert_eq!(answers, [repeat, repeat, repeat, Decision::Wait]);
}

/// Returns when the last packet arrives if the fast path alone carries the first
/// `split` packets and the slow one the rest: by formula, not by scheduler.
fn end_of_split(lines: &[Line], packets: u64, split: u64) -> Time {
    let last = |line: &Line, share: u64| {
        let rounds = share.div_ceil(line.window);
        match rounds {
            0 => Time::ZERO,
            _ => Time::from_nanos((rounds - 1) * line.rtt.as_nanos() + line.rtt.as_nanos() / 2),
        }
    };
    last(&lines[0], split).max(last(&lines[1], packets - split))
}

#[test]
fn dems_paths_meet_and_end_near_the_best_split() {
    for lines in [
        [line(20, 10), line(60, 10)],
        [line(10, 20), line(200, 30)],
        [line(40, 10), line(50, 40)],
        [line(20, 30), line(30, 5)],
    ] {
        for packets in [20, 100, 500, 1500] {
            let outcome = Ground::new(&lines, packets, 5000).run(&mut scheduler("dems")).unwrap();
            let first_copies = packets as usize - outcome.given[1].len();
            let (fast, slow) = (&outcome.given[0][..first_copies], &outcome.given[1]);
            assert!(fast.iter().copied().eq(0..first_copies as u64), "{lines:?} {packets}");
            let backwards = (first_copies as u64..packets).rev();
            assert!(slow.iter().copied().eq(backwards), "{lines:?} {packets}");
            let best = (0..=packets).map(|split| end_of_split(&lines, packets, split)).min();
            let allowed = best.unwrap() + lines[0].rtt + lines[0].rtt;
            assert!(outcome.completed() <= allowed, "{lines:?} {packets}: {outcome:?}");
        }
    }
}
