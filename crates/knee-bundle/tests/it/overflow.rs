//! When a dear link helps a cheaper one, over simulated links.

use crate::world::{WINDOW, Way, World, way};
use knee_bundle::{Class, PathUse};
use knee_units::Time;

/// Bytes that each path has delivered from the client.
fn carried(world: &World) -> Vec<u64> {
    world.carriers[0].iter().map(|carrier| carrier.delivered).collect()
}

/// A link of 10 Mbit/s and dearer ones.
fn dear(costs: &[(u8, bool)]) -> Vec<Way> {
    let dear = |(cost, overflows): &(u8, bool)| Way {
        path_use: PathUse { quiet: true, cost: *cost, overflows: *overflows },
        ..way(5, 10)
    };
    std::iter::once(way(10, 10)).chain(costs.iter().map(dear)).collect()
}

/// Writes `bytes` every `interval` until `end`, as an application with a rate of its own does.
fn at_a_rate(mut world: World, bytes: usize, interval: Time, end: Time) -> World {
    let id = world.bundles[0].open(Class::Normal).unwrap();
    let mut next = Time::ZERO;
    while world.now < end {
        while next <= world.now {
            assert_eq!(world.bundles[0].write(id, &vec![7; bytes]), bytes, "{:?}", world.now);
            next += interval;
        }
        world.step_to(next);
    }
    world
}

/// A dear link that overflows helps while the cheap one is full, from the third second on; without
/// the option it never does.
#[test]
fn a_dear_link_helps_when_the_cheap_one_is_full() {
    for (cc, scheduler) in [("bbr", "just-in-time"), ("cubic", "minrtt"), ("cubic", "round-robin")]
    {
        let file = |ways: &[Way]| World::new(ways, cc, scheduler, WINDOW).file(20_000_000);
        let (alone, _) = file(&dear(&[]));
        let (waits, world) = file(&dear(&[(1, false)]));
        assert!(carried(&world)[1] < 10_000, "{cc}, {scheduler}: {:?}", carried(&world));
        assert!(waits < alone * 102 / 100, "{cc}, {scheduler}: {waits:?}, alone {alone:?}");
        let (helped, world) = file(&dear(&[(1, true)]));
        // Two seconds over the cheap one alone, then over both.
        let best = 2.0 + (160.0 - 20.0) / 15.0;
        let took = helped.as_secs_f64();
        println!("{cc}, {scheduler}: {took:.2} s with help, {best:.2} at best");
        assert!((best * 0.99..best * 1.12).contains(&took), "{cc}, {scheduler}: {took} s");
        assert!(carried(&world)[1] > 4_000_000, "{cc}, {scheduler}: {:?}", carried(&world));
    }
}

/// What is within the cheap link's rate stays there, and so does a burst of half a second. Of two
/// dear links the cheaper one helps until it is full as well.
#[test]
fn a_dear_link_does_not_help_sooner_or_more_than_needed() {
    let world = |ways: &[Way]| World::new(ways, "bbr", "just-in-time", WINDOW);
    // 7 Mbit/s in steps of 10 ms: what BBR's probe for the RTT leaves behind is cleared in time.
    let ways = dear(&[(1, true)]);
    let steady = at_a_rate(world(&ways), 8_750, Time::from_millis(10), Time::from_secs(20));
    assert!(carried(&steady)[1] < 10_000, "{:?}", carried(&steady));
    // 500 kB every two seconds, which take 0.4 s.
    let bursts = at_a_rate(world(&ways), 500_000, Time::from_secs(2), Time::from_secs(20));
    assert!(carried(&bursts)[1] < 10_000, "{:?}", carried(&bursts));
    // 11 Mbit/s: beyond the cheap link, within both cheaper ones, which clear what two seconds left
    // behind in less than two more.
    let ways = dear(&[(2, true), (1, true)]);
    let more = at_a_rate(world(&ways), 13_750, Time::from_millis(10), Time::from_secs(20));
    let sent = carried(&more);
    assert!(sent[2] > 2_000_000, "{sent:?}");
    // It helps for a moment when BBR probes for the RTT on the others.
    assert!(sent[1] < sent[2] / 50, "{sent:?}");
    let received = more.received as f64 * 8.0 / 20e6;
    assert!(received > 10.6, "{received} Mbit/s");
}
