//! Paths on which packets overtake hundreds of others: the connections have several packet number
//! spaces there.

use crate::world::{ID, REBOUND, Way, World, way};
use knee_units::Time;

/// Payload bytes of a queue of a thousand full packets.
const QUEUE: u64 = 1_500_000;

/// A path whose delay is normal in both directions, as netem draws it: at 50 Mbit/s a packet is
/// overtaken by up to four hundred.
fn jittery() -> Way {
    Way { deviation: Time::from_millis(20), ..way(50.0, 20, QUEUE) }
}

/// Returns the world of such paths.
fn world(ways: &[Way]) -> World {
    World::bonded(ways, "bbr", "just-in-time", 1 << 24)
}

/// Whichever end sends. Without further packet number spaces the library dropped 27 % of the packets,
/// and a path carried 18 Mbit/s.
#[test]
fn a_path_carries_its_rate_though_packets_overtake_hundreds() {
    for sender in [0, 1] {
        let mut world = world(&[jittery()]);
        world.sender = sender;
        let (took, world) = world.file(12_000_000);
        let goodput = 96.0 / took.as_secs_f64();
        let counts = world.hosts[sender].counters(&ID);
        assert!(goodput > 30.0, "{goodput} Mbit/s: {:?}", world.observe(0));
        assert!(counts.lost < counts.sent / 50, "{counts:?}");
    }
}

/// Two such paths carry nearly twice what one does.
#[test]
fn two_paths_that_reorder_carry_nearly_twice_as_much() {
    let one = world(&[jittery()]).file(12_000_000).0;
    let both = world(&[jittery(), jittery()]).file(24_000_000).0;
    let ratio = 2.0 * one.as_secs_f64() / both.as_secs_f64();
    assert!(ratio > 1.6, "{ratio}");
}

/// All number spaces follow a NAT that assigns another port, whichever end sends.
#[test]
fn all_number_spaces_follow_a_nat_that_rebinds() {
    for sender in [0, 1] {
        let world = |rebinding| {
            let mut world = world(&[jittery()]);
            (world.sender, world.rebinding) = (sender, rebinding);
            world
        };
        let (usual, _) = world(Time::MAX).file(8_000_000);
        let (took, world) = world(Time::from_millis(800)).file(8_000_000);
        let paths = world.hosts[1].paths(&ID);
        let ports: Vec<u16> = paths.iter().flatten().map(|path| path.peer.port()).collect();
        assert_eq!(ports, [REBOUND]);
        assert!(!world.told.iter().any(|told| told.contains("Lost")), "{:?}", world.told);
        assert!(took < usual + Time::from_secs(1), "{took:?}, usually {usual:?}");
    }
}

/// What was in flight on any number space when a link fails is repeated once it is back.
#[test]
fn a_transfer_over_several_number_spaces_survives_an_outage() {
    let away = Way { down: vec![(Time::from_secs(1), Time::from_secs(4))], ..jittery() };
    let took = world(&[away]).file(8_000_000).0;
    assert!(took < Time::from_secs(8), "{took:?}");
}
