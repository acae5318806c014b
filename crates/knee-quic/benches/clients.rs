//! What a packet of one client costs a server with many, most of which are idle. `cargo bench -p
//! knee-quic --bench clients -- 5000` prints the time that the server's host takes for each.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the processor's time is what it measures")]
#![allow(clippy::print_stdout, reason = "the figure is what it is for")]

#[path = "../tests/it/world/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod world;

use knee_bundle::{Class, Event};
use knee_quic::{Addresses, ConnectionSettings, Host, HostSettings, KeyPair};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::time::{Duration, Instant};
use world::{address, settings};

/// Clients that begin at a time; a key may have sixteen connections that have not joined.
const AT_A_TIME: u64 = 8;
/// Messages that are measured.
const MESSAGES: u64 = 2000;

struct Pair {
    hosts: [Host; 2],
    /// Time that the server took, and its calls.
    took: Duration,
    rounds: u64,
}

impl Pair {
    /// Exchanges packets until there are none.
    fn settle(&mut self, now: Time) {
        loop {
            let mut moved = false;
            for end in 0..2 {
                let mut packets = Vec::new();
                let began = Instant::now();
                self.hosts[end].work(now, |_, _, bytes, packet| {
                    packets.extend(bytes.chunks(packet).map(<[u8]>::to_vec));
                });
                self.hosts[end].timer(now);
                if end == 1 {
                    self.took += began.elapsed();
                    self.rounds += 1;
                }
                while self.hosts[end].poll_event().is_some() {}
                for packet in packets {
                    moved = true;
                    let from = Addresses::to(address(end, 0));
                    self.hosts[1 - end].on_packet(now, 0, from, &packet);
                }
            }
            if !moved {
                return;
            }
        }
    }
}

fn main() {
    let given = std::env::args().skip(1).find_map(|count| count.parse().ok());
    let clients: u64 = given.unwrap_or(5000);
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    let start = Instant::now();
    let host = |end: usize| {
        let settings = HostSettings {
            eager: false,
            paths: vec![ConnectionSettings::lasting(1200)],
            bundles_of_a_key: usize::MAX,
            ..settings(end == 1, 1, "cubic", "minrtt", 1 << 20)
        };
        let rng = ChaCha8Rng::seed_from_u64(end as u64);
        Host::new(settings, &keys[end], &[keys[1 - end].public()], start, &rng).unwrap()
    };
    let mut pair = Pair { hosts: [host(0), host(1)], took: Duration::ZERO, rounds: 0 };
    let id = |number: u64| u128::from(number).to_be_bytes();
    let mut now = Time::ZERO;
    for first in (0..clients).step_by(AT_A_TIME as usize) {
        for number in first..clients.min(first + AT_A_TIME) {
            pair.hosts[0].open(now, id(number), &[(0, address(1, 0), 0)]).unwrap();
        }
        for _ in 0..4 {
            now = now.saturating_add(Time::from_millis(1));
            pair.settle(now);
        }
    }
    println!("{} clients joined", pair.hosts[1].bundles().count());
    // What they have to say after the handshake.
    for _ in 0..10 {
        now = now.saturating_add(Time::from_secs(1));
        pair.settle(now);
    }
    let stream = pair.hosts[0].bundle(&id(0)).unwrap().open(Class::Normal).unwrap();
    (pair.took, pair.rounds) = (Duration::ZERO, 0);
    let mut received = 0;
    for _ in 0..MESSAGES {
        pair.hosts[0].bundle(&id(0)).unwrap().write(stream, &[7; 100]);
        now = now.saturating_add(Time::from_millis(30));
        pair.settle(now);
        let bundle = pair.hosts[1].bundle(&id(0)).unwrap();
        while let Some(event) = bundle.poll_event() {
            if let Event::Readable(stream) = event {
                while let Some(bytes) = bundle.read(stream, usize::MAX) {
                    received += bytes.len();
                }
            }
        }
    }
    assert_eq!(received as u64, 100 * MESSAGES);
    let each = pair.took.as_secs_f64() * 1e6 / pair.rounds as f64;
    println!("{each:.1} us of the server for each of {} rounds", pair.rounds);
}
