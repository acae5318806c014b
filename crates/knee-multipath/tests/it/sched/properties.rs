//! Properties of every scheduler, for any view.
use crate::sched::common::{Ground, Line, check, selections};
use knee_multipath::sched::{
    Decision, Oldest, PATHS_MAX, Path, PathSet, Place, Status, View, build,
};
use knee_units::{Rate, Time};
use proptest::prelude::*;

fn any_path() -> impl Strategy<Value = Path> {
    let status = prop_oneof![
        4 => Just(Status::Active),
        2 => Just(Status::Backup),
        1 => Just(Status::Suspect),
        1 => Just(Status::Down),
    ];
    let micros = prop_oneof![1 => Just(0_u64), 9 => 100..1_000_000_u64];
    let flight = prop_oneof![Just(0_u64), 0..200_u64];
    let state = (status, any::<bool>(), micros, 0..100_000_u64, 1..200_u64);
    let rate = || proptest::option::of(0..1_000_000_000_u64);
    let load = (flight, rate(), 0..1_000_000_000_u64, rate(), any::<bool>());
    (state, load).prop_map(|((status, ready, srtt, variation, window), load)| {
        let (flight, rate, sent, capacity, doubles) = load;
        let (window, in_flight) = (window * 1400, flight * 1400);
        Path {
            status,
            ready: ready && status != Status::Down && in_flight < window,
            srtt: Time::from_micros(srtt),
            rtt_variation: Time::from_micros(variation),
            min_rtt: Time::from_micros(srtt),
            window,
            in_flight,
            rate: rate.map(Rate::from_bits_per_second),
            sent,
            capacity: capacity.map(Rate::from_bits_per_second),
            doubles,
        }
    })
}

/// All fields of a view except the paths; their number is not known yet.
#[derive(Clone, Debug)]
struct Rest {
    now: Time,
    unsent: u64,
    window_left: u64,
    outstanding: u64,
    oldest: Option<(usize, u32)>,
    can_repeat: u32,
}

fn any_rest() -> impl Strategy<Value = Rest> {
    let amount = || prop_oneof![Just(0_u64), 1..3000_u64, 1..20_000_000_u64];
    let oldest = proptest::option::of((0..PATHS_MAX, any::<u32>()));
    (0..100_000_u64, amount(), amount(), amount(), oldest, any::<u32>()).prop_map(
        |(now, unsent, window_left, outstanding, oldest, can_repeat)| Rest {
            now: Time::from_millis(now),
            unsent,
            window_left,
            outstanding,
            oldest,
            can_repeat,
        },
    )
}

fn view<'p>(rest: &Rest, paths: &'p [Path]) -> View<'p> {
    let all = PathSet::first_of(paths.len()).0;
    let oldest = rest.oldest.map(|(holder, on)| {
        let holder = holder % paths.len();
        Oldest { holder, sent_on: PathSet(on & all | 1 << holder) }
    });
    View {
        now: rest.now,
        mss: 1400,
        unsent: rest.unsent,
        window_left: rest.window_left,
        outstanding: rest.outstanding,
        oldest,
        can_repeat: PathSet(if oldest.is_some() { rest.can_repeat & all } else { 0 }),
        paths,
    }
}

fn any_lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (1..300_u64, 1..40_u64)
        .prop_map(|(rtt, window)| Line { rtt: Time::from_millis(rtt), window });
    proptest::collection::vec(line, 1..=4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One scheduler of each kind gets unrelated views, so that its state is as
    /// wrong as possible.
    #[test]
    fn answers_can_be_carried_out_and_never_wait_for_ever(
        shown in proptest::collection::vec(
            (any_rest(), proptest::collection::vec(any_path(), 1..=PATHS_MAX)), 1..20),
    ) {
        for name in selections() {
            let mut scheduler = build(&name).unwrap();
            for (rest, paths) in &shown {
                let view = view(rest, paths);
                let right = check(&view, scheduler.schedule(&view));
                prop_assert!(right.is_ok(), "{name:?}: {}", right.unwrap_err());
            }
        }
    }

    /// A scheduler that declares that it keeps its choice returns the same
    /// decision after each packet sent on the path, while the path has room.
    #[test]
    fn a_kept_choice_is_made_again(
        rest in any_rest(),
        mut paths in proptest::collection::vec(any_path(), 1..=PATHS_MAX),
        packets in 1..20_u64,
    ) {
        let rest = Rest { unsent: 1_000_000, window_left: 1_000_000, ..rest };
        for name in selections() {
            let mut scheduler = build(&name).unwrap();
            let decision = scheduler.schedule(&view(&rest, &paths));
            let (true, Decision::Send(path, _)) = (scheduler.keeps_choice(), decision) else {
                continue;
            };
            for sent in 1..packets {
                let bytes = sent * 1400;
                paths[path].in_flight += 1400;
                paths[path].sent += 1400;
                let rest = Rest {
                    unsent: 1_000_000 - bytes,
                    window_left: 1_000_000 - bytes,
                    outstanding: rest.outstanding + bytes,
                    ..rest
                };
                prop_assert_eq!(scheduler.schedule(&view(&rest, &paths)), decision, "{:?}", name);
            }
        }
    }

    /// A scheduler that declares that it takes the only choice gives the head of new data
    /// to the only path that is ready, if that is active.
    #[test]
    fn the_only_choice_is_taken(
        rest in any_rest(),
        mut paths in proptest::collection::vec(any_path(), 1..=PATHS_MAX),
        only in 0..PATHS_MAX,
    ) {
        let rest = Rest { unsent: 1_000_000, window_left: 1_000_000, ..rest };
        let only = only % paths.len();
        for (index, path) in paths.iter_mut().enumerate() {
            path.ready = index == only;
        }
        paths[only].status = Status::Active;
        for name in selections() {
            let mut scheduler = build(&name).unwrap();
            if scheduler.takes_only_choice() {
                let decision = scheduler.schedule(&view(&rest, &paths));
                prop_assert_eq!(decision, Decision::Send(only, Place::Head), "{:?}", name);
            }
        }
    }

    /// Every transfer ends, over any paths and any receive window, and every
    /// packet arrives, its first copy no earlier than the fastest path's delay.
    #[test]
    fn a_transfer_ends(lines in any_lines(), packets in 1..200_u64, window in 1..250_u64) {
        let soonest = lines.iter().map(|line| line.rtt.as_nanos() / 2).min().unwrap();
        for name in selections() {
            let mut scheduler = build(&name).unwrap();
            let outcome = Ground::new(&lines, packets, window).run(&mut scheduler);
            prop_assert!(outcome.is_ok(), "{name:?}: {}", outcome.unwrap_err());
            let outcome = outcome.unwrap();
            prop_assert_eq!(outcome.arrived.len() as u64, packets);
            prop_assert!(outcome.arrived.values().all(|at| at.as_nanos() >= soonest));
        }
    }

    /// With one path there is nothing to choose: all schedulers send the same
    /// packets in the same order, none twice, at a window per RTT.
    #[test]
    fn over_one_path_all_are_a_plain_connection(
        rtt in 1..300_u64, window in 1..40_u64, packets in 1..400_u64,
    ) {
        let lines = [crate::sched::common::line(rtt, window)];
        for name in selections() {
            let mut scheduler = build(&name).unwrap();
            let outcome = Ground::new(&lines, packets, 1000).run(&mut scheduler).unwrap();
            prop_assert_eq!(&outcome.given[0], &(0..packets).collect::<Vec<_>>(), "{:?}", name);
            let rounds = packets.div_ceil(window) - 1;
            let last = Time::from_nanos(rtt * 1_000_000 / 2 + rounds * rtt * 1_000_000);
            prop_assert_eq!(outcome.completed(), last, "{:?}", name);
        }
    }
}
