//! What a stream may take of the credit that all streams of a bundle share.

use bytes::BytesMut;
use knee_bundle::{Bundle, BundleSettings, Class, Event, Limits, StreamId, VARINT_MAX};
use knee_multipath::sched::{Path, Selection, Status};
use knee_units::Time;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const WINDOW: u64 = 16 << 20;

/// Returns the limits for so many streams at a time, as `knee bond` announces them.
fn limits(streams: u64) -> Limits {
    Limits::sharing(WINDOW, (streams * 4).div_ceil(3)).unwrap()
}

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
    /// Whether the client's datagrams seem lost to it, although they arrive.
    seem_lost: bool,
}

/// How a reader uses its stream beside those that never read.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    /// It has sent its request, and waits for all of the answer.
    Waits,
    /// It has read all of the answer, in this round.
    Has(usize),
    /// It never reads.
    Never,
}

fn bundle(is_server: bool, buffer: u64, limits: Limits) -> Bundle {
    bundle_with(is_server, buffer, limits, limits)
}

/// Makes a bundle whose peer allows what `peer` says.
fn bundle_with(is_server: bool, buffer: u64, limits: Limits, peer: Limits) -> Bundle {
    let settings = BundleSettings {
        is_server,
        datagram: 1200,
        limits,
        buffer,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let mut bundle = Bundle::new(
        settings,
        peer,
        knee_multipath::sched::build(&Selection::named("minrtt")).unwrap(),
    );
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
            client: bundle(false, buffer, limits(256)),
            server: bundle(true, buffer, limits(256)),
            paused: BTreeSet::new(),
            idle: BTreeSet::new(),
            streams: Vec::new(),
            seem_lost: false,
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
        if self.seem_lost {
            self.client.on_path_down(0);
            self.client.on_path_up(0);
        }
        while self.server.poll_event().is_some() {}
        for id in self.streams.iter().filter(|id| !self.idle.contains(id)) {
            while self.server.has(*id) && self.server.write(*id, &[7; 1 << 16]) > 0 {}
        }
        deliver(self.now, &mut self.server, &mut self.client);
        while let Some(event) = self.client.poll_event() {
            let of_page = matches!(event, Event::Reset { code: 0, .. });
            assert!(
                of_page
                    || matches!(
                        event,
                        Event::Readable(_) | Event::Writable(_) | Event::Crowded { .. }
                    ),
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

/// Credit that is asked back is asked for once, also if the question is repeated because its datagram
/// seemed lost: a peer that gave it back must not be asked for more, and then be blamed for it.
#[test]
fn a_repeated_question_for_credit_asks_for_no_more() {
    let mut world = World::new();
    for _ in 0..30 {
        let id = world.open();
        world.read(id, 8);
        world.idle.insert(id);
        world.seem_lost = true;
        (0..16).for_each(|_| world.round());
        world.seem_lost = false;
    }
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

/// Streams that nobody reads, whatever is sent on them, stop no other one: half of 5,000 are never
/// read, and each of the others has its answer of 20 kB within a second. Neither end holds more than
/// a window and what is kept beside it.
#[test]
fn streams_that_nobody_reads_stop_no_other() {
    const STREAMS: usize = 5_000;
    /// Those that begin in a round of 10 ms.
    const BEGIN: usize = 50;
    const ANSWER: usize = 20_000;
    let limits = limits(STREAMS as u64);
    let mut world = World::new();
    world.client = bundle(false, 4 << 20, limits);
    world.server = bundle(true, 4 << 20, limits);
    let mut readers: Vec<(StreamId, usize, Reader)> = Vec::new();
    let (mut left, mut read) = (BTreeMap::new(), BTreeMap::new());
    for round in 0..STREAMS / BEGIN + 101 {
        for _ in 0..BEGIN.min(STREAMS - readers.len()) {
            let id = world.client.open(Class::Normal).unwrap();
            world.client.write(id, b"GET");
            let never = readers.len().is_multiple_of(2);
            left.insert(id, if never { usize::MAX } else { ANSWER });
            readers.push((id, round, if never { Reader::Never } else { Reader::Waits }));
        }
        world.now += Time::from_millis(10);
        deliver(world.now, &mut world.client, &mut world.server);
        while world.server.poll_event().is_some() {}
        for (id, left) in &mut left {
            while *left > 0 {
                let taken = world.server.write(*id, &[7; 1 << 16][..(*left).min(1 << 16)]);
                *left -= if *left == usize::MAX { 0 } else { taken };
                if taken == 0 {
                    break;
                }
                if *left == 0 {
                    world.server.finish(*id);
                }
            }
        }
        deliver(world.now, &mut world.server, &mut world.client);
        while world.client.poll_event().is_some() {}
        for (id, began, reader) in &mut readers {
            if *reader == Reader::Waits {
                let so_far = read.entry(*id).or_insert(0);
                while let Some(bytes) = world.client.read(*id, 1 << 16) {
                    *so_far += bytes.len();
                }
                if *so_far == ANSWER {
                    *reader = Reader::Has(round - *began);
                }
            }
        }
        for held in [world.client.held(), world.server.held()] {
            assert!(held <= WINDOW * 3 / 2, "{held} bytes");
        }
    }
    let slow = readers
        .iter()
        .filter(|(.., reader)| !matches!(reader, Reader::Never | Reader::Has(..=100)));
    assert_eq!(slow.count(), 0);
}

/// Connections that were used, are idle and all come back to pause leave something to the next one.
#[test]
fn idle_streams_that_come_back_to_pause_leave_something() {
    let mut world = World::new();
    for _ in 0..12 {
        let id = world.open();
        world.read(id, 16);
        world.idle.insert(id);
        (0..8).for_each(|_| world.round());
    }
    world.paused.extend(world.streams.iter().copied());
    world.idle.clear();
    (0..40).for_each(|_| world.round());
    assert!(world.client.held() <= WINDOW, "{}", world.client.held());
    let page = world.open();
    world.read(page, 8);
    let round = world.read(page, 1);
    assert!(round >= 48 << 10, "{round} bytes in a round trip");
}

/// A server that allows everything and acknowledges nothing does not fill the memory of a client,
/// however fast its links and however many its connections: the client's own limits hold.
#[test]
fn credit_of_the_peer_does_not_fill_the_memory() {
    let boundless = Limits { window: VARINT_MAX, stream_window: VARINT_MAX, streams: VARINT_MAX };
    let mut client = bundle_with(false, 4 << 20, limits(256), boundless);
    let path = Path { status: Status::Active, ready: true, window: 1 << 40, ..Path::default() };
    let mut bytes = BytesMut::new();
    let mut streams = Vec::new();
    while let Some(id) = client.open(Class::Normal) {
        streams.push(id);
        assert!(streams.len() <= 342);
    }
    for round in 0..100 {
        for id in &streams {
            while client.write(*id, &[7; 1 << 16]) > 0 {}
        }
        while client.poll_datagram(Time::from_millis(round), &[path], &[1200], &mut bytes).is_some()
        {
        }
    }
    assert!(client.held() <= WINDOW + (2 << 20), "{} bytes", client.held());
}
