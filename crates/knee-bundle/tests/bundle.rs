//! Two bundles over several paths that lose, reorder and duplicate, and go down and come back,
//! under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test ends there")]

use bytes::{Bytes, BytesMut};
use knee_bundle::{
    AckRanges, Bundle, BundleSettings, Class, Event, Frame, Limits, PathUse, StreamId,
};
use knee_sched::{Path, Selection, Status};
use knee_units::Time;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const WINDOW: u64 = 256 * 1024;
const STREAM_WINDOW: u64 = 64 * 1024;
const BUFFER: u64 = 96 * 1024;
const LIMITS: Limits = Limits { window: WINDOW, stream_window: STREAM_WINDOW, streams: 6 };

#[derive(Clone, Copy, Debug)]
struct Channel {
    one_way: Time,
    jitter: Time,
    loss_percent: u64,
    duplicate_percent: u64,
    /// Limit of bytes in flight, in place of a controller.
    flight: u64,
    datagram: u16,
    /// When the path begins to carry smaller datagrams, and their size.
    shrinks: Option<(Time, u16)>,
    /// How long the path is down, and how often.
    away: Option<(Time, Time)>,
    /// How the client wants the path to be used.
    path_use: PathUse,
}

/// How a stream is used.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Both ends write and read everything.
    Whole,
    /// The client resets it when the server has read something.
    Reset,
    /// The server stops it at its first byte.
    Stop,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    request: usize,
    response: usize,
    manner: Manner,
}

enum Item {
    Datagram { end: usize, path: usize, life: u64, bytes: Bytes },
    Free { end: usize, path: usize, life: u64, bytes: u64 },
    Shrink(usize),
    Away(usize),
    Back(usize),
}

/// A bundle and its application.
struct End {
    bundle: Bundle,
    in_flight: Vec<u64>,
    /// For each stream, the bytes to write and the bytes written.
    writing: BTreeMap<StreamId, (usize, usize)>,
    read: BTreeMap<StreamId, Vec<u8>>,
    ended: BTreeSet<StreamId>,
    messages: Vec<Bytes>,
}

struct World {
    now: Time,
    random: ChaCha8Rng,
    channels: Vec<Channel>,
    life: Vec<u64>,
    is_up: Vec<bool>,
    items: BTreeMap<(Time, u64), Item>,
    count: u64,
    ends: [End; 2],
    transfers: Vec<Transfer>,
    ids: Vec<StreamId>,
    held_most: u64,
}

fn byte(id: StreamId, by_server: bool, at: usize) -> u8 {
    let start = id.value() * 2 + u64::from(by_server);
    (at as u64).wrapping_mul(31 + start).wrapping_add((at / 251) as u64) as u8
}

fn content(id: StreamId, by_server: bool, from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|at| byte(id, by_server, at)).collect()
}

fn end(is_server: bool, channels: &[Channel], scheduler: &str) -> End {
    let settings = BundleSettings {
        is_server,
        datagram: 1200,
        limits: LIMITS,
        buffer: BUFFER,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let scheduler = knee_sched::build(&Selection::named(scheduler)).unwrap();
    End {
        bundle: Bundle::new(settings, LIMITS, scheduler),
        in_flight: vec![0; channels.len()],
        writing: BTreeMap::new(),
        read: BTreeMap::new(),
        ended: BTreeSet::new(),
        messages: Vec::new(),
    }
}

/// Largest number of items of a history, and of those that an end adds at one time: some hundred
/// times those of the longest.
const ITEMS_MAX: u64 = 1_000_000;
const AT_ONCE_MAX: u64 = 10_000;

impl World {
    fn new(seed: u64, channels: &[Channel], transfers: &[Transfer]) -> World {
        World::under("minrtt", seed, channels, transfers)
    }

    /// Makes a world with this scheduler.
    fn under(scheduler: &str, seed: u64, channels: &[Channel], transfers: &[Transfer]) -> World {
        let mut world = World {
            now: Time::ZERO,
            random: ChaCha8Rng::seed_from_u64(seed),
            channels: channels.to_vec(),
            life: vec![0; channels.len()],
            is_up: vec![true; channels.len()],
            items: BTreeMap::new(),
            count: 0,
            ends: [end(false, channels, scheduler), end(true, channels, scheduler)],
            transfers: transfers.to_vec(),
            ids: Vec::new(),
            held_most: 0,
        };
        for (path, channel) in channels.iter().enumerate() {
            world.ends.iter_mut().for_each(|end| end.bundle.on_path_up(path));
            let (client, server) = (channel.path_use, PathUse::default());
            world.ends[0].bundle.on_use(path, client, server);
            world.ends[1].bundle.on_use(path, server, client);
            if let Some((_, every)) = channel.away {
                world.schedule(every, Item::Away(path));
            }
            if let Some((at, _)) = channel.shrinks {
                world.schedule(at, Item::Shrink(path));
            }
        }
        world
    }

    fn schedule(&mut self, at: Time, item: Item) {
        self.items.insert((at, self.count), item);
        self.count += 1;
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.next_u64() % 100 < percent
    }

    fn paths(&self, end: usize) -> Vec<Path> {
        let End { bundle, in_flight, .. } = &self.ends[end];
        let view = |path: usize| {
            let Channel { flight, .. } = self.channels[path];
            let is_up = self.is_up[path];
            let rtt = bundle.rtt(path);
            Path {
                status: match (is_up, bundle.is_suspect(path)) {
                    (false, _) => Status::Down,
                    (true, true) => Status::Suspect,
                    (true, false) if bundle.path_use(path).cost > 0 => Status::Backup,
                    (true, false) => Status::Active,
                },
                ready: is_up && in_flight[path] + 1200 <= flight,
                srtt: rtt.smoothed,
                rtt_variation: rtt.variation,
                min_rtt: rtt.min,
                window: flight,
                in_flight: in_flight[path],
                ..Path::default()
            }
        };
        (0..self.channels.len()).map(view).collect()
    }

    /// Lets an end send everything that it may.
    fn pump(&mut self, end: usize) {
        let max: Vec<u16> = self.channels.iter().map(|channel| channel.datagram).collect();
        let mut into = BytesMut::new();
        let before = self.count;
        loop {
            assert!(self.count - before < AT_ONCE_MAX, "it sends without end at {:?}", self.now);
            let paths = self.paths(end);
            let bundle = &mut self.ends[end].bundle;
            let Some(path) = bundle.poll_datagram(self.now, &paths, &max, &mut into) else {
                break;
            };
            let bytes = into.split().freeze();
            bundle.take_penalty();
            assert!(bytes.len() <= usize::from(max[path]), "{} of {}", bytes.len(), max[path]);
            assert!(self.is_up[path]);
            let Channel { one_way, jitter, loss_percent, duplicate_percent, .. } =
                self.channels[path];
            let life = self.life[path];
            let len = bytes.len() as u64;
            self.ends[end].in_flight[path] += len;
            let lost = self.chance(loss_percent);
            let copies = 1 + u64::from(self.chance(duplicate_percent));
            for _ in 0..if lost { 0 } else { copies } {
                let extra = Time::from_nanos(self.random.next_u64() % (jitter.as_nanos() + 1));
                let item = Item::Datagram { end: 1 - end, path, life, bytes: bytes.clone() };
                self.schedule(self.now + one_way + extra, item);
            }
            let known = self.now + (one_way * 2 + jitter) * if lost { 2 } else { 1 };
            self.schedule(known, Item::Free { end, path, life, bytes: len });
        }
    }

    /// Processes the events of an end as its application.
    fn apply(&mut self, end: usize) {
        let is_server = end == 1;
        while let Some(event) = self.ends[end].bundle.poll_event() {
            match event {
                Event::Opened(id) => {
                    assert!(is_server);
                    let transfer = self.transfers[id.number() as usize];
                    self.ends[end].writing.insert(id, (transfer.response, 0));
                    if transfer.manner == Manner::Stop {
                        self.ends[end].bundle.stop(id, 7);
                    }
                    self.write(end, id);
                }
                Event::Readable(id) => {
                    let transfer = self.transfers[id.number() as usize];
                    while let Some(bytes) = self.ends[end].bundle.read(id, 1000) {
                        self.ends[end].read.entry(id).or_default().extend_from_slice(&bytes);
                        if is_server && transfer.manner == Manner::Reset {
                            self.ends[0].bundle.reset(id, 9);
                            self.ends[0].writing.remove(&id);
                        }
                    }
                }
                Event::Writable(id) => self.write(end, id),
                Event::Reset { stream, code } => {
                    assert!(is_server && [7, 9].contains(&code), "{code}");
                    self.ends[end].ended.insert(stream);
                }
                Event::Stopped { stream, code } => {
                    assert!(!is_server && code == 7);
                    self.ends[end].writing.remove(&stream);
                }
                Event::Message { bytes, .. } => self.ends[end].messages.push(bytes),
                Event::GoAway | Event::Closed { .. } => {}
            }
        }
    }

    fn write(&mut self, end: usize, id: StreamId) {
        let End { bundle, writing, .. } = &mut self.ends[end];
        let Some((size, done)) = writing.get_mut(&id) else { return };
        *done += bundle.write(id, &content(id, end == 1, *done, *size));
        if done == size {
            bundle.finish(id);
            writing.remove(&id);
        }
    }

    fn open(&mut self) {
        while self.ids.len() < self.transfers.len() {
            let number = self.ids.len();
            let class = [Class::Interactive, Class::Normal, Class::Bulk][number % 3];
            let Some(id) = self.ends[0].bundle.open(class) else { break };
            assert_eq!(id.number(), number as u64);
            self.ids.push(id);
            self.ends[0].writing.insert(id, (self.transfers[number].request, 0));
            self.write(0, id);
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Datagram { end, path, life, bytes } => {
                if self.life[path] == life && self.is_up[path] {
                    let taken = self.ends[end].bundle.on_datagram(self.now, path, &bytes);
                    taken.unwrap();
                }
            }
            Item::Free { end, path, life, bytes } => {
                if self.life[path] == life {
                    self.ends[end].in_flight[path] -= bytes;
                }
            }
            Item::Shrink(path) => {
                let (_, datagram) = self.channels[path].shrinks.unwrap();
                self.channels[path].datagram = datagram;
            }
            Item::Away(path) => {
                self.is_up[path] = false;
                self.life[path] += 1;
                for end in &mut self.ends {
                    end.bundle.on_path_down(path);
                    end.in_flight[path] = 0;
                }
                self.tell_of_paths();
                let (away, _) = self.channels[path].away.unwrap();
                self.schedule(self.now + away, Item::Back(path));
            }
            Item::Back(path) => {
                self.is_up[path] = true;
                self.ends.iter_mut().for_each(|end| end.bundle.on_path_up(path));
                self.tell_of_paths();
                let (_, every) = self.channels[path].away.unwrap();
                self.schedule(self.now + every, Item::Away(path));
            }
        }
    }

    fn tell_of_paths(&mut self) {
        for end in 0..2 {
            let paths = self.paths(end);
            self.ends[end].bundle.on_paths_changed(&paths);
        }
    }

    fn is_done(&self) -> bool {
        let drained = self.ends.iter().all(|end| end.bundle.is_drained());
        self.ids.len() == self.transfers.len() && drained
    }

    /// Runs one step: everything that happens at the next time.
    fn step(&mut self) {
        self.open();
        for end in 0..2 {
            self.apply(end);
            self.pump(end);
            self.held_most = self.held_most.max(self.ends[end].bundle.held());
        }
        let timer = |end: usize| self.ends[end].bundle.timer(&self.paths(end));
        let next = self.items.keys().next().map_or(Time::MAX, |key| key.0);
        let at = next.min(timer(0)).min(timer(1));
        assert!(at < Time::from_secs(3600), "it stands still at {:?}", self.now);
        self.now = self.now.max(at);
        while self.items.keys().next().is_some_and(|key| key.0 <= self.now) {
            let (_, item) = self.items.pop_first().unwrap();
            self.take(item);
        }
        for end in 0..2 {
            let paths = self.paths(end);
            self.ends[end].bundle.on_timer(self.now, &paths);
        }
    }

    /// Runs until all streams are over at both ends, and checks what arrived.
    fn run(mut self) -> World {
        while !self.is_done() {
            assert!(self.count < ITEMS_MAX, "it goes on without end at {:?}", self.now);
            self.step();
        }
        for (id, transfer) in self.ids.iter().zip(&self.transfers) {
            let nothing = Vec::new();
            let request = self.ends[1].read.get(id).unwrap_or(&nothing);
            let response = self.ends[0].read.get(id).unwrap_or(&nothing);
            let whole = content(*id, false, 0, transfer.request);
            match transfer.manner {
                Manner::Whole => assert!(*request == whole, "{} bytes", request.len()),
                Manner::Reset | Manner::Stop => assert!(whole.starts_with(request)),
            }
            assert!(*response == content(*id, true, 0, transfer.response));
            assert!(!self.ends[0].bundle.has(*id) && !self.ends[1].bundle.has(*id));
        }
        assert_eq!((self.ends[0].bundle.held(), self.ends[1].bundle.held()), (0, 0));
        self
    }
}

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

fn still(one_way: u64, flight: u64) -> Channel {
    Channel {
        one_way: Time::from_millis(one_way),
        jitter: Time::ZERO,
        loss_percent: 0,
        duplicate_percent: 0,
        flight,
        datagram: 1200,
        shrinks: None,
        away: None,
        path_use: PathUse::default(),
    }
}

fn scheduler() -> impl Strategy<Value = &'static str> {
    let names: Vec<&str> = knee_sched::schedulers().iter().map(|entry| entry.name).collect();
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
        if knee_sched::check_paths(&Selection::named(scheduler), channels.len()).is_err() {
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
        (vec![piece(own, STREAM_WINDOW - 2, false)], beyond),
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
    let mut channel = still(0, 49 * 1024);
    (channel.one_way, channel.jitter) = (Time::from_micros(17_534), Time::from_micros(3_561));
    (channel.loss_percent, channel.duplicate_percent, channel.datagram) = (26, 16, 771);
    let transfer = |request, response, manner| Transfer { request, response, manner };
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
    let channel = |one_way, jitter, loss_percent, duplicate_percent, flight, datagram| Channel {
        one_way: Time::from_micros(one_way),
        jitter: Time::from_micros(jitter),
        loss_percent,
        duplicate_percent,
        flight,
        datagram,
        shrinks: None,
        away: None,
        path_use: PathUse::default(),
    };
    let channels = [
        channel(14_873, 439, 4, 8, 12_288, 766),
        channel(31_366, 0, 11, 7, 39_936, 761),
        channel(18_895, 9_932, 17, 8, 57_344, 755),
        channel(2_549, 14_842, 22, 5, 36_864, 749),
    ];
    let transfer = |request, response, manner| Transfer { request, response, manner };
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
    let channel = |one_way, jitter, loss_percent, duplicate_percent, flight, datagram, quiet| {
        let path_use = PathUse { quiet, cost: 1, overflows: false };
        Channel {
            one_way: Time::from_micros(one_way),
            jitter: Time::from_micros(jitter),
            loss_percent,
            duplicate_percent,
            path_use,
            datagram,
            ..still(0, flight)
        }
    };
    let channels = [
        channel(8_313, 47_283, 0, 12, 26_624, 759, true),
        channel(1_193, 39_206, 22, 4, 23_552, 757, false),
        channel(12_420, 23_303, 10, 1, 10_240, 756, false),
    ];
    let transfer = |request, response, manner| Transfer { request, response, manner };
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
