//! What a stream may take of the credit that all streams of a bundle share.

use bytes::BytesMut;
use knee_bundle::{Bundle, BundleSettings, Class, Event, Limits, StreamId};
use knee_sched::{Path, Selection, Status};
use knee_units::Time;
use proptest::prelude::*;
use std::collections::BTreeSet;

const WINDOW: u64 = 16 << 20;
const LIMITS: Limits = Limits { window: WINDOW, stream_window: 64 << 10, streams: 256 };

/// A client that reads what it wants, and a server that always has something to send, over a path
/// without loss.
struct World {
    now: Time,
    client: Bundle,
    server: Bundle,
    /// Streams that the client does not read now.
    paused: BTreeSet<StreamId>,
    /// Streams that the server has nothing to send on now.
    idle: BTreeSet<StreamId>,
    streams: Vec<StreamId>,
}

fn bundle(is_server: bool, buffer: u64) -> Bundle {
    let settings = BundleSettings {
        is_server,
        datagram: 1200,
        limits: LIMITS,
        buffer,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let mut bundle =
        Bundle::new(settings, LIMITS, knee_sched::build(&Selection::named("minrtt")).unwrap());
    bundle.on_path_up(0);
    bundle
}

/// Delivers everything that `from` can send. Returns the bytes.
fn deliver(now: Time, from: &mut Bundle, to: &mut Bundle) -> u64 {
    let path = Path {
        status: Status::Active,
        ready: true,
        srtt: Time::from_millis(10),
        window: 1 << 30,
        ..Path::default()
    };
    let (mut bytes, mut all) = (BytesMut::new(), 0);
    while from.poll_datagram(now, &[path], &[1200], &mut bytes).is_some() {
        all += bytes.len() as u64;
        to.on_datagram(now, 0, &bytes).unwrap();
    }
    all
}

impl World {
    fn new() -> World {
        World::buffering(4 << 20)
    }

    /// Makes a world in which a stream may buffer so many bytes.
    fn buffering(buffer: u64) -> World {
        World {
            now: Time::ZERO,
            client: bundle(false, buffer),
            server: bundle(true, buffer),
            paused: BTreeSet::new(),
            idle: BTreeSet::new(),
            streams: Vec::new(),
        }
    }

    fn open(&mut self) -> StreamId {
        let id = self.client.open(Class::Normal).unwrap();
        self.client.write(id, b"GET");
        self.streams.push(id);
        id
    }

    /// Lets both ends do what they can within one round trip.
    fn round(&mut self) {
        self.now += Time::from_millis(10);
        deliver(self.now, &mut self.client, &mut self.server);
        while self.server.poll_event().is_some() {}
        for id in self.streams.iter().filter(|id| !self.idle.contains(id)) {
            while self.server.has(*id) && self.server.write(*id, &[7; 1 << 16]) > 0 {}
        }
        deliver(self.now, &mut self.server, &mut self.client);
        while let Some(event) = self.client.poll_event() {
            let of_page = matches!(event, Event::Reset { code: 0, .. });
            assert!(
                of_page || matches!(event, Event::Readable(_) | Event::Writable(_)),
                "{event:?}"
            );
        }
        for id in self.streams.iter().filter(|id| !self.paused.contains(id)) {
            while self.client.read(*id, 1 << 16).is_some() {}
        }
    }

    /// Returns the bytes of a stream that arrive and are read in so many rounds.
    fn read(&mut self, id: StreamId, rounds: usize) -> u64 {
        let mut all = 0;
        self.paused.insert(id);
        for _ in 0..rounds {
            self.round();
            while let Some(bytes) = self.client.read(id, 1 << 16) {
                all += bytes.len() as u64;
            }
        }
        self.paused.remove(&id);
        all
    }
}

/// One stream has half of the window within a few round trips.
#[test]
fn one_stream_has_half_of_the_window() {
    let mut world = World::buffering(2 * WINDOW);
    let id = world.open();
    world.read(id, 8);
    // A limit is raised when a quarter of it is used.
    let round = world.read(id, 1);
    assert!((WINDOW * 3 / 8..=WINDOW * 5 / 8).contains(&round), "{round}");
}

/// Downloads whose readers pause leave room for others: a web page must open beside two videos
/// that are paused.
#[test]
fn paused_streams_leave_room() {
    let mut world = World::new();
    for paused in 1..=4 {
        let id = world.open();
        world.read(id, 8);
        world.paused.insert(id);
        (0..8).for_each(|_| world.round());
        let page = world.open();
        world.read(page, 8);
        let round = world.read(page, 1);
        // 2 Mbit/s and more at 100 ms.
        assert!(round >= 96 << 10, "{round} bytes in a round trip beside {paused} paused streams");
        world.client.stop(page, 0);
        world.streams.retain(|id| *id != page);
    }
}

/// However many downloads pause, the next one gets through, to its end.
#[test]
fn nothing_stops_beside_paused_streams() {
    for paused in [1, 4, 12, 40] {
        let mut world = World::new();
        for _ in 0..paused {
            let id = world.open();
            world.read(id, 8);
            world.paused.insert(id);
            (0..8).for_each(|_| world.round());
        }
        let page = world.open();
        let all = world.read(page, 400);
        assert!(all > WINDOW, "{all} bytes in 400 round trips beside {paused} paused streams");
    }
}

/// Connections that were used and are kept open take nothing from a new one.
#[test]
fn idle_streams_leave_everything() {
    let mut world = World::new();
    for _ in 0..30 {
        let id = world.open();
        world.read(id, 8);
        world.idle.insert(id);
        // What was buffered leaves.
        (0..8).for_each(|_| world.round());
    }
    let id = world.open();
    world.read(id, 8);
    let round = world.read(id, 1);
    assert!(round >= WINDOW / 4, "{round}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However streams pause, go on and are added, sixteen at most, one that is read gets through.
    #[test]
    fn who_reads_gets_through(steps in prop::collection::vec((0_u8..4, 0_usize..16, 1_usize..6), 1..40)) {
        let mut world = World::new();
        for (action, which, rounds) in steps {
            let known = world.streams.get(which).copied();
            match (action, known) {
                (0, _) if world.streams.len() < 15 => {
                    world.open();
                }
                (1, Some(id)) => {
                    world.paused.insert(id);
                }
                (2, Some(id)) => {
                    world.paused.remove(&id);
                }
                _ => {}
            }
            (0..rounds).for_each(|_| world.round());
            prop_assert!(world.client.held() <= WINDOW + (2 << 20), "{}", world.client.held());
        }
        let reader = world.open();
        world.read(reader, 8);
        let round = world.read(reader, 1);
        prop_assert!(round >= 48 << 10, "{round} bytes in a round trip");
    }
}
