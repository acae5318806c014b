//! Just in time: its decisions, computed on paper, and its invariants.
use crate::sched::common::{MSS, busy, head, path, scheduler, view};
use knee_multipath::sched::{Decision, Path, Place, View};
use knee_units::Rate;
use proptest::prelude::*;

const WAIT: Decision = Decision::Wait;

/// Sets the capacity to `packets` packets of a thousand bytes per second.
fn with_capacity(mut path: Path, packets: u64) -> Path {
    path.capacity = Some(Rate::from_bits_per_second(packets * MSS * 8));
    path
}

/// 20 ms at 1000 packets/s with 20 in flight of a window of 20: its next packet
/// is acknowledged after 21 ms, and then one per ms. A packet on the slow path
/// arrives after 50 ms. What the fast path delivers by then is acknowledged by
/// 60 ms: 40 packets. By the slow path's acknowledgement, at 100 ms, it is 80.
#[test]
fn a_slow_path_carries_what_is_due_when_it_arrives() {
    let mut just_in_time = scheduler("just-in-time");
    let fast = with_capacity(path(20, 20, 20), 1000);
    let slow = with_capacity(path(100, 10, 0), 100);
    let paths = [fast, slow];
    let ahead = |packets: u64| Decision::Send(1, Place::Ahead(packets * MSS));
    assert_eq!(just_in_time.schedule(&view(&paths)), ahead(40));
    // All the rest is acknowledged sooner on the fast path.
    let left = |packets: u64| View { unsent: packets * MSS, ..view(&paths) };
    assert_eq!(just_in_time.schedule(&left(81)), ahead(40));
    assert_eq!(just_in_time.schedule(&left(80)), WAIT);
    // The receiver has no room until the acknowledgement, or not much more.
    let room = |packets: u64| View { window_left: packets * MSS, ..view(&paths) };
    assert_eq!(just_in_time.schedule(&room(320)), ahead(40));
    assert_eq!(just_in_time.schedule(&room(319)), ahead(80));
    assert_eq!(just_in_time.schedule(&room(81)), ahead(80));
    assert_eq!(just_in_time.schedule(&room(80)), WAIT);
    // If the fast path has room, the head goes there in any case.
    let paths = [with_capacity(path(20, 20, 19), 1000), slow];
    assert_eq!(just_in_time.schedule(&View { unsent: 1, ..view(&paths) }), head(0));
}

/// The data that a path holds delays its next packet: 30 packets at 1000 per
/// second are acknowledged after 31 ms, and have arrived 10 ms before, later
/// than the 20 ms that the other path takes.
#[test]
fn a_queue_makes_the_quicker_path_the_slower_one() {
    let mut just_in_time = scheduler("just-in-time");
    let paths = [with_capacity(path(20, 100, 30), 1000), with_capacity(path(40, 100, 0), 1000)];
    assert_eq!(just_in_time.schedule(&view(&paths)), head(1));
    let paths = [with_capacity(path(20, 100, 28), 1000), paths[1]];
    assert_eq!(just_in_time.schedule(&view(&paths)), head(0));
}

#[test]
fn ahead_and_growth_are_parameters() {
    let paths = [with_capacity(path(20, 20, 20), 1000), with_capacity(path(100, 10, 0), 100)];
    let with = |name: &str, on: bool| {
        crate::sched::common::scheduler_with(
            "just-in-time",
            name,
            knee_multipath::sched::Value::Switch(on),
        )
    };
    assert_eq!(with("ahead", false).schedule(&view(&paths)), head(1));
    // 10 packets in flight of a window of 10, which frees one every 2 ms: the
    // first is acknowledged at 22 ms, then those of the 38 ms or 1.9 round
    // trips until 60 ms: 19 packets, or with doubling 2 x 10 x (2^1.9 - 1) =
    // 54, of which 1000/s allow 60 - 10.
    let mut fast = with_capacity(path(20, 10, 10), 1000);
    fast.doubles = true;
    let paths = [fast, paths[1]];
    let ahead = |packets| Decision::Send(1, Place::Ahead(packets * MSS));
    assert_eq!(scheduler("just-in-time").schedule(&view(&paths)), ahead(20));
    assert_eq!(with("growth", true).schedule(&view(&paths)), ahead(50));
}

/// Two packets, or a tenth of the rest, until the capacity is known.
#[test]
fn a_path_of_unknown_capacity_is_tried_with_few_packets() {
    let mut just_in_time = scheduler("just-in-time");
    let known = busy(with_capacity(path(20, 20, 20), 1000));
    let mut decide = |held: u64, unsent: u64| {
        let paths = [known, path(20, 10, held)];
        just_in_time.schedule(&View { unsent: unsent * MSS, ..view(&paths) })
    };
    assert_eq!((decide(1, 20), decide(2, 20)), (head(1), WAIT));
    assert_eq!((decide(4, 50), decide(5, 50)), (head(1), WAIT));
    assert_eq!(decide(9, 1000), head(1));
    // A single path is not on trial.
    let alone = [path(20, 10, 9)];
    assert_eq!(just_in_time.schedule(&View { unsent: MSS, ..view(&alone) }), head(0));
}

/// Paths with equal rate, delay and window, holding any amount: one that has
/// room is used, unless all the rest fits on another with room.
fn any_equal_paths() -> impl Strategy<Value = (u64, Vec<Path>)> {
    (1..200_u64, 1..60_u64, 100..5000_u64).prop_flat_map(|(rtt, window, rate)| {
        let held = proptest::collection::vec(0..=window, 1..=4);
        held.prop_map(move |held| {
            let of = |held: &u64| with_capacity(path(rtt, window, *held), rate);
            (rtt, held.iter().map(of).collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn equal_paths_never_wait_for_each_other(
        (_, paths) in any_equal_paths(), unsent in 1..10_000_000_u64,
    ) {
        let decision = scheduler("just-in-time").schedule(&View { unsent, ..view(&paths) });
        if let Some(least) = paths.iter().filter(|path| path.ready).map(|path| path.in_flight).min() {
            let Decision::Send(path, place) = decision else {
                return Err(TestCaseError::fail(format!("{decision:?}")));
            };
            prop_assert_eq!(place, Place::Head);
            prop_assert!(paths[path].ready && paths[path].in_flight >= least);
        }
    }

    /// A scheduler that waits is called again by an acknowledgement.
    #[test]
    fn a_wait_always_has_an_acknowledgement_to_come(
        first in (1..300_u64, 1..40_u64, 0..40_u64, proptest::option::of(1..5000_u64)),
        second in (1..300_u64, 1..40_u64, 0..40_u64, proptest::option::of(1..5000_u64)),
        unsent in 1..200_000_u64,
        window_left in 1000..200_000_u64,
    ) {
        let of = |(rtt, window, held, rate): (u64, u64, u64, Option<u64>)| {
            let path = path(rtt, window, held);
            rate.map_or(path, |rate| with_capacity(path, rate))
        };
        let paths = [of(first), of(second)];
        let view = View { unsent, window_left, ..view(&paths) };
        let decision = scheduler("just-in-time").schedule(&view);
        if decision == WAIT && paths.iter().any(|path| path.ready) {
            prop_assert!(paths.iter().any(|path| path.in_flight > 0));
        }
    }
}
