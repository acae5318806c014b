//! Messages, control frames and acknowledgements beside streams, over paths that are full or fall
//! silent without an error.

use crate::world::{WINDOW, Way, World, way};
use bytes::Bytes;
use knee_bundle::{Class, Event, PathUse};
use knee_units::Time;

const MS: fn(u64) -> Time = Time::from_millis;
const END: Time = Time::from_secs(1_000);

/// A path that is silent during a time.
fn silent(mbit: u64, one_way_ms: u64, from: Time, until: Time) -> Way {
    Way { down: vec![(from, until)], ..way(mbit, one_way_ms) }
}

/// Goes on until a time, and calls `tick` every `interval`.
fn pass(world: &mut World, until: Time, interval: Time, mut tick: impl FnMut(&mut World)) {
    let mut next = world.now;
    while world.now < until {
        while next <= world.now {
            tick(world);
            next += interval;
        }
        world.step_to(next);
    }
}

fn say(world: &mut World, bytes: usize, duplicate: bool) {
    world.bundles[0].send(4, Bytes::from(vec![1; bytes]), duplicate);
}

/// A flow of messages offers more than the link carries, and a stream has data all the time: both
/// get a part (RFC 9221, section 5.4: messages are subject to congestion control).
#[test]
fn messages_and_streams_share_a_path() {
    for (cc, duplicate) in [("cubic", false), ("bbr", false), ("cubic", true)] {
        let mut world = World::new(&[way(10, 20)], cc, "minrtt", WINDOW);
        let id = world.bundles[0].open(Class::Normal).unwrap();
        // 12 Mbit/s.
        pass(&mut world, Time::from_secs(10), Time::from_micros(800), |world| {
            say(world, 1_200, duplicate);
            world.bundles[0].write(id, &[7; 2_000]);
        });
        let messages: usize = world.messages.iter().map(|(_, bytes)| bytes.len()).sum();
        let rates = [messages as u64, world.received].map(|bytes| bytes as f64 * 8.0 / 10e6);
        assert!(rates.iter().all(|rate| (3.0..7.0).contains(rate)), "{cc}: {rates:?}");
        assert!(rates.iter().sum::<f64>() > 8.0, "{cc}: {rates:?}");
    }
}

/// A call that never fills its links: after a loss none of its messages waits for a round trip, which
/// the window of a controller in recovery would demand.
#[test]
fn a_call_does_not_wait_for_acknowledgements() {
    for cc in ["bbr", "cubic"] {
        let lossy = || Way { loss: 0.05, ..way(20, 12) };
        let mut world = World::new(&[lossy(), lossy()], cc, "minrtt", WINDOW);
        let mut number = 0_u64;
        pass(&mut world, Time::from_secs(60), MS(20), |world| {
            let content = [number.to_be_bytes().as_slice(), &[7; 992]].concat();
            world.bundles[0].send(4, content.into(), true);
            number += 1;
        });
        let delay = |(at, bytes): &(Time, Bytes)| {
            let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            at.saturating_sub(MS(20 * number))
        };
        let mut delays: Vec<Time> = world.messages.iter().map(delay).collect();
        delays.sort_unstable();
        let p99 = delays[delays.len() * 99 / 100];
        assert!(p99 < MS(16), "{cc}: {p99}");
    }
}

/// The server has nothing to send but a reset, on the path with the lower RTT, which is silent.
#[test]
fn control_frames_take_another_path_when_theirs_is_silent() {
    let ways = [silent(10, 5, MS(500), END), way(10, 30)];
    let mut world = World::new(&ways, "cubic", "minrtt", WINDOW);
    let id = world.bundles[0].open(Class::Normal).unwrap();
    world.bundles[0].write(id, &[7; 10]);
    pass(&mut world, MS(300), MS(100), |_| {});
    world.bundles[1].write(id, &[7; 10]);
    pass(&mut world, MS(600), MS(100), |_| {});
    world.bundles[1].reset(id, 9);
    pass(&mut world, MS(1_000), MS(100), |_| {});
    assert!(world.bundles[1].is_suspect(0));
    let events = std::iter::from_fn(|| world.bundles[0].poll_event());
    let reset = Event::Reset { stream: id, code: 9 };
    assert!(events.collect::<Vec<_>>().contains(&reset));
}

/// A flow sends a message every 20 ms, and each is acknowledged before the next.
#[test]
fn messages_leave_a_path_that_falls_silent() {
    let ways = [silent(10, 5, MS(1_005), END), way(10, 30)];
    let mut world = World::new(&ways, "cubic", "minrtt", WINDOW);
    pass(&mut world, MS(3_000), MS(20), |world| say(world, 1_000, false));
    let came = |from: u64, until: u64| {
        world.messages.iter().filter(|(at, _)| (MS(from)..MS(until)).contains(at)).count()
    };
    assert_eq!(came(0, 1_000), 50);
    assert!(came(1_300, 3_000) >= 83, "{}", came(1_300, 3_000));
}

/// A flow that had to use a dearer path leaves it once the cheaper one is back, and a duplicated
/// one does not use it while the cheaper one works.
#[test]
fn messages_leave_a_dearer_path_when_a_cheaper_one_returns() {
    for duplicate in [false, true] {
        let dear = Way { path_use: PathUse { cost: 1, ..PathUse::default() }, ..way(10, 5) };
        let ways = [silent(10, 10, MS(1_005), MS(3_000)), dear];
        let mut world = World::new(&ways, "cubic", "minrtt", WINDOW);
        let carried = |world: &World| world.links[0][1].counters().entered_packets;
        let used = |world: &mut World, until: u64| {
            let before = carried(world);
            pass(world, MS(until), MS(20), |world| say(world, 1_000, duplicate));
            carried(world) - before
        };
        assert!(used(&mut world, 1_000) < 10);
        assert!(used(&mut world, 3_000) > 80);
        used(&mut world, 4_500);
        // Nothing but probes.
        let more = used(&mut world, 8_000);
        assert!(more < 10, "{more} packets over the dearer path, duplicate: {duplicate}");
    }
}
