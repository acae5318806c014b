//! A history of two bundles over paths that lose, reorder and duplicate, and go down and come back,
//! under a virtual clock.

use bytes::{Bytes, BytesMut};
use knee_bundle::{Bundle, BundleSettings, Class, Event, Limits, PathUse, StreamId};
use knee_multipath::sched::{Path, Selection, Status};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

pub const WINDOW: u64 = 256 * 1024;
pub const STREAM_WINDOW: u64 = 16 * 1024;
pub const BUFFER: u64 = 96 * 1024;
pub const LIMITS: Limits = Limits { window: WINDOW, stream_window: STREAM_WINDOW, streams: 6 };

#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub one_way: Time,
    pub jitter: Time,
    pub loss_percent: u64,
    pub duplicate_percent: u64,
    /// Limit of bytes in flight, in place of a controller.
    pub flight: u64,
    pub datagram: u16,
    /// When the path begins to carry smaller datagrams, and their size.
    pub shrinks: Option<(Time, u16)>,
    /// How long the path is down, and how often.
    pub away: Option<(Time, Time)>,
    /// How the client wants the path to be used.
    pub path_use: PathUse,
}

/// How a stream is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// Both ends write and read everything.
    Whole,
    /// The client resets it when the server has read something.
    Reset,
    /// The server stops it at its first byte.
    Stop,
}

#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub request: usize,
    pub response: usize,
    pub manner: Manner,
}

pub enum Item {
    Datagram { end: usize, path: usize, life: u64, bytes: Bytes },
    Free { end: usize, path: usize, life: u64, bytes: u64 },
    Shrink(usize),
    Away(usize),
    Back(usize),
}

/// A bundle and its application.
pub struct End {
    pub bundle: Bundle,
    pub in_flight: Vec<u64>,
    /// For each stream, the bytes to write and the bytes written.
    pub writing: BTreeMap<StreamId, (usize, usize)>,
    pub read: BTreeMap<StreamId, Vec<u8>>,
    pub ended: BTreeSet<StreamId>,
    pub messages: Vec<Bytes>,
}

pub struct World {
    pub now: Time,
    pub random: ChaCha8Rng,
    pub channels: Vec<Channel>,
    pub life: Vec<u64>,
    pub is_up: Vec<bool>,
    pub items: BTreeMap<(Time, u64), Item>,
    pub count: u64,
    pub ends: [End; 2],
    pub transfers: Vec<Transfer>,
    pub ids: Vec<StreamId>,
    pub held_most: u64,
}

pub fn byte(id: StreamId, by_server: bool, at: usize) -> u8 {
    let start = id.value() * 2 + u64::from(by_server);
    (at as u64).wrapping_mul(31 + start).wrapping_add((at / 251) as u64) as u8
}

pub fn content(id: StreamId, by_server: bool, from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|at| byte(id, by_server, at)).collect()
}

pub fn end(is_server: bool, channels: &[Channel], scheduler: &str) -> End {
    let settings = BundleSettings {
        is_server,
        datagram: 1200,
        limits: LIMITS,
        buffer: BUFFER,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let scheduler = knee_multipath::sched::build(&Selection::named(scheduler)).unwrap();
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
pub const ITEMS_MAX: u64 = 1_000_000;
pub const AT_ONCE_MAX: u64 = 10_000;

impl World {
    pub fn new(seed: u64, channels: &[Channel], transfers: &[Transfer]) -> World {
        World::under("minrtt", seed, channels, transfers)
    }

    /// Makes a world with this scheduler.
    pub fn under(
        scheduler: &str,
        seed: u64,
        channels: &[Channel],
        transfers: &[Transfer],
    ) -> World {
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

    pub fn schedule(&mut self, at: Time, item: Item) {
        self.items.insert((at, self.count), item);
        self.count += 1;
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.random.next_u64() % 100 < percent
    }

    pub fn paths(&self, end: usize) -> Vec<Path> {
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
    pub fn pump(&mut self, end: usize) {
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
    pub fn apply(&mut self, end: usize) {
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
                Event::Crowded { .. } | Event::GoAway | Event::Closed { .. } => {}
            }
        }
    }

    pub fn write(&mut self, end: usize, id: StreamId) {
        let End { bundle, writing, .. } = &mut self.ends[end];
        let Some((size, done)) = writing.get_mut(&id) else { return };
        *done += bundle.write(id, &content(id, end == 1, *done, *size));
        if done == size {
            bundle.finish(id);
            writing.remove(&id);
        }
    }

    pub fn open(&mut self) {
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

    pub fn take(&mut self, item: Item) {
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

    pub fn tell_of_paths(&mut self) {
        for end in 0..2 {
            let paths = self.paths(end);
            self.ends[end].bundle.on_paths_changed(&paths);
        }
    }

    pub fn is_done(&self) -> bool {
        let drained = self.ends.iter().all(|end| end.bundle.is_drained());
        self.ids.len() == self.transfers.len() && drained
    }

    /// Runs one step: everything that happens at the next time.
    pub fn step(&mut self) {
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
    pub fn run(mut self) -> World {
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

/// Returns a path that loses nothing.
pub fn still(one_way: u64, flight: u64) -> Channel {
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

/// Returns a path, with its times in microseconds, its loss and duplication in percent, and its sizes
/// in bytes.
pub fn rough(
    one_way: u64,
    jitter: u64,
    loss: u64,
    duplicate: u64,
    flight: u64,
    datagram: u16,
) -> Channel {
    Channel {
        one_way: Time::from_micros(one_way),
        jitter: Time::from_micros(jitter),
        loss_percent: loss,
        duplicate_percent: duplicate,
        datagram,
        ..still(0, flight)
    }
}

/// Returns a transfer of so many bytes.
pub fn transfer(request: usize, response: usize, manner: Manner) -> Transfer {
    Transfer { request, response, manner }
}
