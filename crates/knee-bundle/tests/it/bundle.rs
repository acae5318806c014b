//! Two bundles over several paths that lose, reorder and duplicate, and go down and come back,
//! under a virtual clock.

use crate::history::{
    BUFFER, Channel, Manner, Transfer, WINDOW, World, content, rough, still, transfer,
};
use bytes::Bytes;
use knee_bundle::{AckRanges, Class, Frame, PathUse, StreamId};
use knee_multipath::sched::Selection;
use knee_units::Time;
use proptest::prelude::*;

fn transfers() -> impl Strategy<Value = Vec<Transfer>> {
    let manner = prop_oneof![
        6 => Just(Manner::Whole), 1 => Just(Manner::Reset), 1 => Just(Manner::Stop)
    ];
    let transfer = (0..150_000_usize, 0..150_000_usize, manner)
        .prop_map(|(request, response, manner)| Transfer { request, response, manner });
    prop::collection::vec(transfer, 1..10)
}

fn channel() -> impl Strategy<Value = Channel> {
    let times = (0..100_000_u64, 0..50_000_u64);
    let away = prop::option::of((50..2_000_u64, 300..5_000_u64));
    let shrinks = prop::option::of((0..3_000_u64, 600..1200_u16));
    let rest = (0..30_u64, 0..20_u64, 8..64_u64, 600..1500_u16);
    let path_use = (any::<(bool, bool)>(), prop_oneof![3 => Just(0), 1 => 1..4_u8])
        .prop_map(|((quiet, overflows), cost)| PathUse { quiet, cost, overflows });
    let all = (times, away, shrinks, rest, path_use);
    all.prop_map(|((one_way, jitter), away, shrinks, rest, path_use)| {
        let (loss_percent, duplicate_percent, flight, datagram) = rest;
        Channel {
            one_way: Time::from_micros(one_way),
            jitter: Time::from_micros(jitter),
            loss_percent,
            duplicate_percent,
            flight: flight * 1024,
            datagram,
            shrinks: shrinks.map(|(at, to)| (Time::from_millis(at), to.min(datagram))),
            away: away.map(|(away, every)| (Time::from_millis(away), Time::from_millis(every))),
            path_use,
        }
    })
}

fn scheduler() -> impl Strategy<Value = &'static str> {
    let names: Vec<&str> =
        knee_multipath::sched::schedulers().iter().map(|entry| entry.name).collect();
    prop::sample::select(names)
}

fn histories() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(histories()))]

    /// Every byte arrives once and in order, in both directions, whatever the paths do and the
    /// scheduler chooses; what is held stays within buffers and windows; the same seed gives the
    /// same history. `PROPTEST_CASES=100000` tries that many.
    #[test]
    fn each_byte_arrives_once_and_in_order(
        seed: u64, channels in prop::collection::vec(channel(), 1..5), transfers in transfers(),
        scheduler in scheduler(),
    ) {
        if knee_multipath::sched::check_paths(&Selection::named(scheduler), channels.len()).is_err() {
            return Ok(());
        }
        let world = World::under(scheduler, seed, &channels, &transfers).run();
        prop_assert!(world.held_most <= WINDOW + transfers.len() as u64 * BUFFER);
        let again = World::under(scheduler, seed, &channels, &transfers).run();
        prop_assert_eq!((world.now, world.count), (again.now, again.count));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Any input is accepted or refused, and both ends remain able to communicate.
    #[test]
    fn nothing_that_comes_harms(
        datagrams in prop::collection::vec(
            (0..2_usize, 0..3_u16, prop::collection::vec(frame_like(), 0..6)), 1..12
        ),
    ) {
        let mut world = World::new(1, &[still(1, 48_000); 2], &[]);
        world.step();
        for (path, number, parts) in datagrams {
            let mut bytes = number.to_be_bytes().to_vec();
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            if world.ends[1].bundle.on_datagram(world.now, path, &bytes).is_err() {
                break;
            }
            world.ends[1].bundle.poll_event();
            world.pump(1);
        }
    }
}

/// Bytes that begin like a frame, followed by small numbers.
fn frame_like() -> impl Strategy<Value = Vec<u8>> {
    (0..0x18_u8, prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..12)).prop_map(
        |(kind, mut rest)| {
            rest.insert(0, kind);
            rest
        },
    )
}

/// Violations are refused, and the error names the rule.
#[test]
fn violations_are_named() {
    let framed = |frames: &[Frame<'_>]| {
        let mut bytes = vec![0, 0];
        frames.iter().for_each(|frame| frame.write(&mut bytes));
        bytes
    };
    let stream =
        |number: u64, by_server: bool| StreamId::new(number, Class::Normal, by_server).value();
    let piece = |stream: u64, offset: u64, fin: bool| Frame::Stream {
        stream,
        offset,
        fin,
        bytes: &[1, 2, 3],
    };
    let ranges = AckRanges::new([(50, 60)]).unwrap();
    let (own, beyond) = (stream(0, false), "beyond the credit or the end");
    for (frames, words) in [
        (vec![piece(stream(6, false), 0, false)], "may not open"),
        (vec![piece(stream(0, true), 0, false)], "may not open"),
        (vec![piece(7, 0, false)], "may not open"),
        (vec![piece(own, WINDOW - 2, false)], beyond),
        (vec![Frame::Return { stream: own, round: 1, end: 0 }], beyond),
        (vec![piece(own, 0, true), piece(own, 3, false)], beyond),
        (vec![piece(own, 9, false), piece(own, 0, true)], beyond),
        (vec![piece(own, 9, false), Frame::Reset { stream: own, code: 0, size: 5 }], beyond),
        (vec![Frame::Ack { path: 0, delay: Time::ZERO, ranges }], "never sent"),
    ] {
        let mut world = World::new(1, &[still(1, 48_000)], &[]);
        let refused = world.ends[1].bundle.on_datagram(world.now, 0, &framed(&frames));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(words), "{frames:?}: {refused}");
    }
    // Only the first ACK of a path says anything, and each costs the time of all that it covers.
    let mut world = World::new(1, &[still(1, 48_000)], &[]);
    world.pump(1);
    let ranges = AckRanges::new([(0, 0)]).unwrap();
    let twice = framed(&[Frame::Ack { path: 0, delay: Time::ZERO, ranges }; 2]);
    let refused = world.ends[1].bundle.on_datagram(world.now, 0, &twice).unwrap_err();
    assert!(refused.to_string().contains("a second ACK"), "{refused}");
    let mut world = World::new(1, &[still(1, 48_000)], &[]);
    for (bytes, words) in [(&[0_u8][..], "ends within"), (&[0, 0, 0x40], "no frame")] {
        let refused = world.ends[1].bundle.on_datagram(world.now, 0, bytes).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

const WHOLE: Transfer = Transfer { request: 3_000_000, response: 0, manner: Manner::Whole };

/// Two equal paths take half the time of one.
#[test]
fn two_paths_carry_twice_as_much() {
    let one = World::new(1, &[still(20, 24_000)], &[WHOLE]).run().now;
    let two = World::new(1, &[still(20, 24_000), still(20, 24_000)], &[WHOLE]).run().now;
    let ratio = one.as_secs_f64() / two.as_secs_f64();
    assert!((1.8..=2.1).contains(&ratio), "{ratio}");
}

/// Nothing is lost on paths without loss, no path is suspected, and a path that the peer calls a
/// backup stays empty apart from probes.
#[test]
fn a_backup_waits() {
    let mut world = World::new(1, &[still(20, 48_000), still(5, 48_000)], &[WHOLE]);
    let backup = PathUse { cost: 1, ..PathUse::default() };
    world.ends[1].bundle.set_use(1, backup);
    // The client must learn of it first.
    while world.ends[0].bundle.path_use(1) != backup {
        world.transfers.clear();
        world.step();
    }
    world.transfers = vec![WHOLE];
    let world = world.run();
    let counters = world.ends.each_ref().map(|end| end.bundle.counters());
    assert_eq!((counters[0].lost, counters[1].lost), (0, 0), "{counters:?}");
    let suspicions = world.ends[0].bundle.multipath_counters().suspicions;
    assert_eq!(suspicions, 0);
    let one = World::new(1, &[still(20, 48_000)], &[WHOLE]).run().now;
    assert!(world.now > one * 9 / 10, "{:?} beside {one:?}", world.now);
}

/// A path that dies silently is noticed, and what it held goes over the other one.
#[test]
fn a_silent_path_is_suspected() {
    let mut dead = still(10, 48_000);
    dead.loss_percent = 0;
    let mut world = World::new(3, &[dead, still(30, 48_000)], &[WHOLE]);
    while world.now < Time::from_millis(300) {
        world.step();
    }
    world.channels[0].loss_percent = 100;
    while !world.ends[0].bundle.is_suspect(0) {
        world.step();
    }
    // 1.5 probe timeouts after the last answer.
    assert!(world.now < Time::from_millis(300 + 120), "{:?}", world.now);
    world.channels[0].loss_percent = 0;
    let world = world.run();
    assert!(!world.ends[0].bundle.is_suspect(0));
}

/// One history of 51,000: the only path was suspected, then everything that it held was declared
/// lost, so nothing was in flight that could have found it alive.
#[test]
fn a_suspected_path_that_holds_nothing_is_probed() {
    let channel = rough(17_534, 3_561, 26, 16, 49 * 1024, 771);
    let transfers = [
        transfer(21_040, 58_514, Manner::Stop),
        transfer(106_466, 65_665, Manner::Whole),
        transfer(100_971, 130_239, Manner::Whole),
        transfer(25_408, 74_414, Manner::Whole),
        transfer(36_763, 77_976, Manner::Whole),
        transfer(1_532, 46_590, Manner::Reset),
        transfer(47_935, 56_629, Manner::Stop),
        transfer(26_027, 119_947, Manner::Reset),
    ];
    World::new(6_334_510_301_478_029_951, &[channel], &transfers).run();
}

/// A stream may be reset after its end is known and before it is sent: the peer receives only the
/// reset.
#[test]
fn a_reset_after_the_end_takes_its_place() {
    let mut world = World::new(1, &[still(10, 48_000)], &[]);
    world.step();
    let id = world.ends[0].bundle.open(Class::Normal).unwrap();
    world.transfers = vec![Transfer { request: 5_000, response: 0, manner: Manner::Whole }];
    world.ids = vec![id];
    world.ends[0].bundle.write(id, &content(id, false, 0, 5_000));
    world.pump(0);
    world.ends[0].bundle.finish(id);
    world.ends[0].bundle.reset(id, 9);
    while world.ends.iter().any(|end| end.bundle.has(id)) || !world.ends[1].ended.contains(&id) {
        world.step();
    }
}

/// DAPS takes pieces from a stream that are sent later. A stream that is reset in between, or whose
/// end becomes known, must not use more of the peer's credit than what left.
#[test]
fn what_is_cut_ahead_takes_no_credit() {
    let channels = [
        rough(14_873, 439, 4, 8, 12_288, 766),
        rough(31_366, 0, 11, 7, 39_936, 761),
        rough(18_895, 9_932, 17, 8, 57_344, 755),
        rough(2_549, 14_842, 22, 5, 36_864, 749),
    ];
    let transfers = [
        transfer(32_653, 59_329, Manner::Whole),
        transfer(58_588, 746, Manner::Whole),
        transfer(23_762, 17_092, Manner::Stop),
        transfer(65_257, 17_495, Manner::Whole),
        transfer(58_866, 65_536, Manner::Whole),
        transfer(25_151, 17_092, Manner::Whole),
    ];
    World::under("daps", 7_531_630_502_794_879_274, &channels, &transfers).run();
}

/// One history of some 400,000: a datagram that had been given up arrived, and with it everything
/// that its path had brought was settled before it was acknowledged. So there was nothing to say,
/// and the ACK stayed due for ever.
#[test]
fn what_the_peer_no_longer_needs_is_not_acknowledged() {
    let channel = |quiet, channel| {
        let path_use = PathUse { quiet, cost: 1, overflows: false };
        Channel { path_use, ..channel }
    };
    let channels = [
        channel(true, rough(8_313, 47_283, 0, 12, 26_624, 759)),
        channel(false, rough(1_193, 39_206, 22, 4, 23_552, 757)),
        channel(false, rough(12_420, 23_303, 10, 1, 10_240, 756)),
    ];
    let transfers = [
        transfer(12_422, 1, Manner::Whole),
        transfer(3_718, 0, Manner::Whole),
        transfer(1_502, 0, Manner::Whole),
        transfer(35_951, 56_860, Manner::Whole),
        transfer(3_002, 0, Manner::Stop),
    ];
    World::under("blest", 13_109_519_610_645_443_835, &channels, &transfers).run();
}

/// Messages of a flow stay on a path, in order if the path keeps it; duplicated ones arrive once
/// although every path carries them, and although one path loses half.
#[test]
fn messages_arrive_at_most_once() {
    for duplicate in [false, true] {
        let mut bad = still(5, 48_000);
        bad.loss_percent = if duplicate { 50 } else { 0 };
        let mut world = World::new(5, &[bad, still(9, 48_000)], &[]);
        for number in 0..200_u32 {
            let bytes = Bytes::copy_from_slice(&number.to_be_bytes());
            world.ends[0].bundle.send(4, bytes, duplicate);
            let until = world.now + Time::from_millis(20);
            while world.now < until {
                world.step();
                if world.items.is_empty() {
                    world.now = until;
                }
            }
        }
        while !world.items.is_empty() {
            world.step();
        }
        world.apply(1);
        let came: Vec<u32> = world.ends[1]
            .messages
            .iter()
            .map(|bytes| u32::from_be_bytes(bytes.as_ref().try_into().unwrap()))
            .collect();
        assert_eq!(came, (0..200).collect::<Vec<_>>());
    }
}

/// Also over paths that reorder widely and duplicate, between streams that are repeated there.
#[test]
fn duplicated_messages_of_several_flows_arrive_once_over_paths_that_reorder() {
    let wide = rough(10_000, 60_000, 0, 20, 48_000, 1200);
    let mut world = World::new(7, &[wide, wide], &[transfer(200_000, 0, Manner::Whole)]);
    for number in 0..400_u32 {
        let bytes = Bytes::copy_from_slice(&number.to_be_bytes());
        world.ends[0].bundle.send(u64::from(number % 5) << 3, bytes, true);
        let until = world.now + Time::from_millis(2);
        while world.now < until {
            world.step();
            if world.items.is_empty() {
                world.now = until;
            }
        }
    }
    let mut world = world.run();
    while !world.items.is_empty() {
        world.step();
    }
    world.apply(1);
    let number = |bytes: &Bytes| u32::from_be_bytes(bytes.as_ref().try_into().unwrap());
    let mut came: Vec<u32> = world.ends[1].messages.iter().map(number).collect();
    came.sort_unstable();
    assert_eq!(came, (0..400).collect::<Vec<_>>());
}

/// A copy that is still under way when the stream of its flow has ended, on a path sixty times as
/// slow, is not a new message.
#[test]
fn a_late_copy_is_not_delivered_after_its_flow_ended() {
    let short = Transfer { request: 1000, response: 0, manner: Manner::Whole };
    let mut world = World::new(5, &[still(5, 48_000), still(300, 48_000)], &[short]);
    let flow = StreamId::new(0, Class::Interactive, false);
    world.ends[0].bundle.send(flow.value(), Bytes::from_static(b"once"), true);
    let mut world = world.run();
    while !world.items.is_empty() {
        world.step();
    }
    world.apply(1);
    assert_eq!(world.ends[1].messages, [Bytes::from_static(b"once")]);
}

/// After GOAWAY no stream begins and existing ones end; CLOSE ends everything.
#[test]
fn drain_and_close() {
    let mut world = World::new(1, &[still(20, 48_000)], &[WHOLE]);
    while world.now < Time::from_millis(100) {
        world.step();
    }
    world.ends[1].bundle.go_away();
    let mut world = world.run();
    assert_eq!(world.ends[0].bundle.open(Class::Normal), None);
    world.ends[1].bundle.close(3, "restart");
    while !world.ends.iter().all(|end| end.bundle.is_closed()) {
        world.ends[0].bundle.poll_event();
        world.step();
    }
}
