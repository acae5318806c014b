//! Two hosts with real QUIC connections over links of `knee-link`, under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test ends there")]

use knee_bundle::{Class, Event, Limits, StreamId};
use knee_cc::Selection;
use knee_link::{Buffer, Config, Ecn, Link, Loss, RateModel};
use knee_quic::{BundleId, CongestionSettings, Host, HostEvent, HostSettings, KeyPair, Observed};
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use std::time::Instant;

/// Headers of IPv4 and UDP.
const AROUND: u32 = 28;
const PACKET: u16 = 1472;
const ID: BundleId = [7; 16];

struct Packet(Vec<u8>);

impl knee_link::Packet for Packet {
    fn size(&self) -> u32 {
        self.0.len() as u32 + AROUND
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    fn mark(&mut self) {}

    fn flow_hash(&self) -> u64 {
        0
    }
}

#[derive(Clone)]
struct Way {
    mbit: f64,
    one_way: Time,
    buffer: u64,
    loss: f64,
    down: Vec<(Time, Time)>,
}

fn way(mbit: f64, one_way_ms: u64, buffer: u64) -> Way {
    let one_way = Time::from_millis(one_way_ms);
    Way { mbit, one_way, buffer, loss: 0.0, down: Vec::new() }
}

struct World {
    now: Time,
    hosts: [Host; 2],
    links: [Vec<Link<Packet>>; 2],
    received: u64,
    ended: bool,
    told: Vec<String>,
}

fn address(end: usize, path: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, path as u8, end as u8 + 1], 4433))
}

impl World {
    fn new(ways: &[Way], cc: &str, scheduler: &str, window: u64) -> World {
        let links = [0_u64, 100].map(|seed| {
            let link = |(way, seed): (&Way, u64)| {
                let config = Config {
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
                Link::new(config, ChaCha8Rng::seed_from_u64(seed))
            };
            ways.iter().zip(seed..).map(link).collect::<Vec<_>>()
        });
        let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
        let start = Instant::now();
        let hosts = [0, 1].map(|end| {
            let settings = HostSettings {
                is_server: end == 1,
                packets: vec![PACKET; ways.len()],
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
                backup: Vec::new(),
            };
            let rng = ChaCha8Rng::seed_from_u64(end);
            let [own, other] = [&keys[end as usize], &keys[1 - end as usize]];
            Host::new(settings, own, &other.public(), start, &rng).unwrap()
        });
        let mut world =
            World { now: Time::ZERO, hosts, links, received: 0, ended: false, told: Vec::new() };
        let paths: Vec<_> = (0..ways.len()).map(|path| (path, address(1, path))).collect();
        world.hosts[0].open(Time::ZERO, ID, &paths).unwrap();
        world
    }

    fn work(&mut self, end: usize) {
        let (now, links) = (self.now, &mut self.links[end]);
        self.hosts[end].work(now, |path, _, bytes, packet| {
            for part in bytes.chunks(packet) {
                let _ = links[path].send(now, Packet(part.to_vec()));
            }
        });
        while let Some(event) = self.hosts[end].poll_event() {
            self.told.push(format!("{:?} {end} {event:?}", self.now));
            assert!(!matches!(event, HostEvent::Broken(..)), "{event:?}");
        }
    }

    fn read(&mut self) {
        let Some(bundle) = self.hosts[1].bundle(&ID) else { return };
        while let Some(event) = bundle.poll_event() {
            if let Event::Readable(id) = event {
                while let Some(bytes) = bundle.read(id, usize::MAX) {
                    self.received += bytes.len() as u64;
                }
                self.ended |= bundle.is_read_to_end(id);
            }
        }
    }

    fn step(&mut self) {
        (0..2).for_each(|end| self.work(end));
        let mut at = Time::MAX;
        for end in 0..2 {
            at = at.min(self.hosts[end].timer(self.now));
            at = self.links[end].iter().map(Link::next_time).fold(at, Time::min);
        }
        assert!(at < Time::from_secs(3600), "it stands still at {:?}: {:?}", self.now, self.told);
        self.now = self.now.max(at);
        for end in 0..2 {
            for path in 0..self.links[end].len() {
                while let Some(Packet(bytes)) = self.links[end][path].poll(self.now) {
                    self.hosts[1 - end].on_packet(self.now, path, address(end, path), &bytes);
                }
            }
        }
        self.read();
    }

    /// Sends a file; how long it takes from the start on.
    fn file(mut self, bytes: u64) -> (Time, World) {
        let mut left = bytes;
        let bundle = self.hosts[0].bundle(&ID).unwrap();
        let id: StreamId = bundle.open(Class::Normal).unwrap();
        let chunk = vec![0_u8; 65536];
        while !self.ended {
            let bundle = self.hosts[0].bundle(&ID).unwrap();
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

    fn observe(&self, path: usize) -> Observed {
        self.hosts[0].controls(&ID)[path].as_ref().unwrap().observe()
    }
}

#[test]
fn a_file() {
    for (cc, ways, bytes) in [
        ("cubic", vec![way(20.0, 20, 64_000)], 20_000_000),
        ("bbr", vec![way(20.0, 20, 64_000)], 20_000_000),
        ("reno", vec![way(20.0, 20, 64_000)], 20_000_000),
        ("cubic", vec![way(10.0, 10, 25_000), way(5.0, 10, 20_000)], 20_000_000),
        ("bbr", vec![way(10.0, 10, 25_000), way(5.0, 10, 20_000)], 20_000_000),
    ] {
        let real = Instant::now();
        let (took, world) = World::new(&ways, cc, "just-in-time", 1 << 24).file(bytes);
        let seen = world.observe(0);
        println!(
            "{cc} {} ways: {took:?}, lost {} of {}, {:?} real, {:?}",
            ways.len(), seen.lost_packets, seen.sent_packets, real.elapsed(),
            world.hosts[0].counters(&ID),
        );
    }
}
