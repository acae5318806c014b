//! Two hosts with real QUIC connections over links of `knee-link`, under a virtual clock.

use knee_bundle::{Class, Event, Limits, PathUse, StreamId};
use knee_cc::Selection;
use knee_link::{Buffer, Config, Ecn, Jitter, Link, Loss, Normal, RateModel, Steps};
use knee_quic::{
    Addresses, BundleId, CongestionSettings, ConnectionSettings, Host, HostEvent, HostSettings,
    KeyPair, Member, Observed,
};
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use std::time::Instant;

/// Headers of IPv4 and UDP.
const AROUND: u32 = 28;
pub const PACKET: u16 = 1472;
/// The client's port after a NAT forgot the first one.
pub const REBOUND: u16 = 50_000;
pub const ID: BundleId = [7; 16];

pub struct Packet(Vec<u8>);

impl knee_link::Packet for Packet {
    fn size(&self) -> u32 {
        self.0.len() as u32 + AROUND
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    fn mark(&mut self) {}

    fn clear_ecn(&mut self) {}

    fn flow_hash(&self) -> u64 {
        0
    }
}

#[derive(Clone)]
pub struct Way {
    pub mbit: f64,
    pub one_way: Time,
    pub buffer: u64,
    /// Share of the packets that are lost on the way to the server.
    pub loss: f64,
    /// Largest addition to the delay of a packet to the server, uniform, which reorders.
    pub jitter: Time,
    /// Deviation of the delay of a packet to the server, normal around `one_way` as netem draws it,
    /// which reorders.
    pub deviation: Time,
    pub down: Vec<(Time, Time)>,
    pub cost: u8,
}

pub fn way(mbit: f64, one_way_ms: u64, buffer: u64) -> Way {
    let one_way = Time::from_millis(one_way_ms);
    let (jitter, deviation) = (Time::ZERO, Time::ZERO);
    Way { mbit, one_way, buffer, loss: 0.0, jitter, deviation, down: Vec::new(), cost: 0 }
}

pub struct World {
    pub now: Time,
    pub hosts: [Host; 2],
    pub links: [Vec<Link<Packet>>; 2],
    /// The end that sends files: 0 is the client, 1 the server.
    pub sender: usize,
    pub received: u64,
    pub ended: bool,
    pub told: Vec<String>,
    /// Bytes of packets with headers sent on each path, by end.
    pub carried: [Vec<u64>; 2],
    /// Whether the receiving application reads.
    pub reads: bool,
    /// When a NAT assigns the client a different port.
    pub rebinding: Time,
    /// Largest UDP payload that the links carry.
    pub largest: usize,
    /// Interval between the turns of a host, which is busy otherwise.
    pub turn: Time,
    /// Time of each host's next turn.
    pub next_turn: [Time; 2],
    /// Addresses of the ends.
    address: fn(usize, usize) -> SocketAddr,
}

/// Address of an end on a path.
pub fn address(end: usize, path: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, path as u8, end as u8 + 1], 4433))
}

/// The same for IPv6.
pub fn address_v6(end: usize, path: usize) -> SocketAddr {
    SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, path as u16, end as u16 + 1], 4433))
}

pub fn settings(
    is_server: bool,
    paths: usize,
    cc: &str,
    scheduler: &str,
    window: u64,
) -> HostSettings {
    HostSettings {
        is_server,
        paths: vec![ConnectionSettings::lasting(PACKET); paths],
        eager: true,
        linger: Time::MAX,
        bundles_of_a_key: 1,
        congestion: CongestionSettings {
            controller: Selection::named(cc),
            recovery: None,
            paced: None,
            initial_window: 10,
            max_burst: 65536,
        },
        scheduler: Selection::named(scheduler),
        limits: Limits { window, stream_window: window, streams: 16 },
        buffer: window * 2,
        reinjection: true,
        lateness: Time::from_millis(1),
    }
}

impl World {
    pub fn new(ways: &[Way], cc: &str, scheduler: &str, window: u64) -> World {
        World::with(ways, cc, scheduler, window, 2 * window)
    }

    /// Makes a world of bonded links: their connections get further packet number spaces where needed.
    pub fn bonded(ways: &[Way], cc: &str, scheduler: &str, window: u64) -> World {
        World::between(ways, |is_server| {
            let mut settings = settings(is_server, ways.len(), cc, scheduler, window);
            settings.paths.iter_mut().for_each(|path| path.more_number_spaces = true);
            settings
        })
    }

    /// Makes a world whose hosts buffer `buffer` bytes per stream.
    pub fn with(ways: &[Way], cc: &str, scheduler: &str, window: u64, buffer: u64) -> World {
        World::between(ways, |is_server| {
            let settings = settings(is_server, ways.len(), cc, scheduler, window);
            HostSettings { buffer, ..settings }
        })
    }

    /// Makes a world whose hosts have these settings, by whether it is the server.
    pub fn between(ways: &[Way], settings: impl Fn(bool) -> HostSettings) -> World {
        World::over(address, ways, settings)
    }

    /// The same with other addresses.
    pub fn over(
        address: fn(usize, usize) -> SocketAddr,
        ways: &[Way],
        settings: impl Fn(bool) -> HostSettings,
    ) -> World {
        let links = [0_u64, 100].map(|seed| {
            let link = |(way, seed): (&Way, u64)| {
                let mut config = Config {
                    rate: RateModel::Constant(Rate::from_bits_per_second((way.mbit * 1e6) as u64)),
                    buffer: Buffer::Bytes(way.buffer),
                    loss: if way.loss > 0.0 && seed < 100 {
                        Loss::Independent(way.loss)
                    } else {
                        Loss::None
                    },
                    down: way.down.clone(),
                    ..Config::pure_delay(way.one_way)
                };
                if way.jitter > Time::ZERO && seed < 100 {
                    config.delay.jitter = Some(Jitter {
                        amount: Steps(vec![(Time::ZERO, way.jitter)]),
                        least: Time::ZERO,
                        share: 1.0,
                        normal: None,
                        reorder: true,
                    });
                }
                if way.deviation > Time::ZERO {
                    let normal = Normal { mean: way.one_way, deviation: way.deviation };
                    config.delay.base = Steps(vec![(Time::ZERO, Time::ZERO)]);
                    config.delay.jitter = Some(Jitter {
                        amount: Steps(vec![(Time::ZERO, normal.largest())]),
                        least: Time::ZERO,
                        share: 1.0,
                        normal: Some(normal),
                        reorder: true,
                    });
                }
                Link::new(config, ChaCha8Rng::seed_from_u64(seed))
            };
            ways.iter().zip(seed..).map(link).collect::<Vec<_>>()
        });
        let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
        let start = Instant::now();
        let hosts = [0_u64, 1].map(|end| {
            let settings = settings(end == 1);
            let rng = ChaCha8Rng::seed_from_u64(end);
            let [own, other] = [&keys[end as usize], &keys[1 - end as usize]];
            Host::new(settings, own, &[other.public()], start, &rng).unwrap()
        });
        let mut world = World {
            now: Time::ZERO,
            hosts,
            links,
            sender: 0,
            received: 0,
            ended: false,
            told: Vec::new(),
            carried: [vec![0; ways.len()], vec![0; ways.len()]],
            reads: true,
            rebinding: Time::MAX,
            largest: usize::MAX,
            turn: Time::ZERO,
            next_turn: [Time::ZERO; 2],
            address,
        };
        let paths: Vec<_> =
            ways.iter().enumerate().map(|(path, way)| (path, address(1, path), way.cost)).collect();
        world.hosts[0].open(Time::ZERO, ID, &paths).unwrap();
        world
    }

    pub fn work(&mut self, end: usize) {
        let (now, links) = (self.now, &mut self.links[end]);
        let carried = &mut self.carried[end];
        self.hosts[end].work(now, |path, _, bytes, packet| {
            for part in bytes.chunks(packet).filter(|part| part.len() <= self.largest) {
                carried[path] += u64::from(AROUND) + part.len() as u64;
                let _ = links[path].send(now, Packet(part.to_vec()));
            }
        });
        while let Some(event) = self.hosts[end].poll_event() {
            self.told.push(format!("{:?} {end} {event:?}", self.now));
            assert!(!matches!(event, HostEvent::Broken(..)), "{event:?}");
        }
    }

    pub fn read(&mut self) {
        let bundle = self.hosts[1 - self.sender].bundle(&ID).filter(|_| self.reads);
        let Some(bundle) = bundle else { return };
        while let Some(event) = bundle.poll_event() {
            if let Event::Readable(id) = event {
                while let Some(bytes) = bundle.read(id, usize::MAX) {
                    self.received += bytes.len() as u64;
                }
                self.ended |= bundle.is_read_to_end(id);
            }
        }
    }

    pub fn step(&mut self) {
        self.step_to(Time::from_secs(3600));
        assert!(self.now < Time::from_secs(3600), "it stands still: {:?}", self.told);
    }

    /// Advances to the next event, but no further than `bound`.
    pub fn step_to(&mut self, bound: Time) {
        for end in 0..2 {
            if self.next_turn[end] <= self.now {
                self.work(end);
                self.next_turn[end] = self.now + self.turn;
            }
        }
        let mut at = Time::MAX;
        for end in 0..2 {
            at = at.min(self.hosts[end].timer(self.now).max(self.next_turn[end]));
            at = self.links[end].iter().map(Link::next_time).fold(at, Time::min);
        }
        let at = at.min(bound);
        self.now = self.now.max(at);
        for end in 0..2 {
            for path in 0..self.links[end].len() {
                while let Some(Packet(bytes)) = self.links[end][path].poll(self.now) {
                    let mut from = (self.address)(end, path);
                    if end == 0 && self.now >= self.rebinding {
                        from.set_port(REBOUND);
                    }
                    let from = Addresses::to(from);
                    self.hosts[1 - end].on_packet(self.now, path, from, &bytes);
                }
            }
        }
        self.read();
    }

    /// Opens a stream at the client, and asks for a file on it if the server is the sender.
    fn ask(&mut self) -> StreamId {
        while self.hosts[0].bundle(&ID).is_none() {
            self.step();
        }
        let client = self.hosts[0].bundle(&ID).unwrap();
        let id = client.open(Class::Normal).unwrap();
        if self.sender == 1 {
            client.write(id, b"GET");
            while self.hosts[1].bundle(&ID).is_none_or(|bundle| !bundle.has(id)) {
                self.step();
            }
        }
        id
    }

    /// Sends a file, and returns the time from the start.
    pub fn file(mut self, bytes: u64) -> (Time, World) {
        let (sender, mut left) = (self.sender, bytes);
        let id = self.ask();
        let chunk = vec![0_u8; 65536];
        while !self.ended {
            let bundle = self.hosts[sender].bundle(&ID).unwrap();
            while left > 0 {
                let part = &chunk[..left.min(65536) as usize];
                let taken = bundle.write(id, part);
                left -= taken as u64;
                if left == 0 {
                    bundle.finish(id);
                }
                if taken < part.len() {
                    break;
                }
            }
            self.step();
        }
        assert_eq!(self.received, bytes);
        (self.now, self)
    }

    pub fn observe(&self, path: usize) -> Observed {
        self.hosts[self.sender].controls(&ID)[path].as_ref().unwrap().observe()
    }
}

/// Makes a world whose hosts wait for JOINED, and give up a bundle without links after 3 s.
pub fn patient() -> (World, [KeyPair; 2]) {
    let ways = [way(10.0, 10, 25_000), way(5.0, 10, 20_000)];
    let mut world = World::new(&ways, "cubic", "minrtt", 1 << 20);
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    for end in 0..2 {
        world.hosts[end] = patient_host(end, &keys);
    }
    (world, keys)
}

pub fn patient_host(end: usize, keys: &[KeyPair; 2]) -> Host {
    let settings = HostSettings {
        eager: false,
        linger: Time::from_secs(3),
        ..settings(end == 1, 2, "cubic", "minrtt", 1 << 20)
    };
    let rng = ChaCha8Rng::seed_from_u64(end as u64);
    Host::new(settings, &keys[end], &[keys[1 - end].public()], Instant::now(), &rng).unwrap()
}

impl World {
    pub fn connect(&mut self, number: usize) {
        let member = Member {
            bundle: ID,
            number,
            label: format!("link{number}"),
            path_use: PathUse::default(),
        };
        self.hosts[0].connect(self.now, number, (self.address)(1, number), member).unwrap();
    }

    /// Runs for this long, and returns the events of that time.
    pub fn for_a_while(&mut self, time: Time) -> Vec<String> {
        let (until, before) = (self.now + time, self.told.len());
        while self.now < until {
            self.step_to(until);
        }
        self.told[before..].to_vec()
    }
}
