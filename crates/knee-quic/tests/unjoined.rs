//! What a server bears of clients that it knows, and whose connections never join: memory, as counted
//! by the allocator, and number. Beside it, what it answers to whom it does not know. The clients are
//! those of quinn.

#![allow(clippy::unwrap_used, reason = "a test ends there")]
#![allow(clippy::disallowed_methods, reason = "QUIC counts from it; the clock is virtual")]
#![allow(clippy::print_stdout, reason = "how much it is, is worth a look")]

#[path = "it/world/mod.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod world;

use bytes::{Bytes, BytesMut};
use knee_quic::{Addresses, ConnectionSettings, Host, HostEvent, HostSettings, KeyPair};
use knee_units::Time;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    TransportConfig,
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use world::settings;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum number of a server's connections that have not joined (`strangers.rs` tests it).
const UNJOINED_MAX: usize = 512;
/// Maximum number of one key's connections that have not joined.
const OF_A_KEY: usize = 16;

fn server(own: &KeyPair, clients: &[&KeyPair], start: Instant) -> Host {
    let path =
        ConnectionSettings { idle: Some(Time::from_secs(40)), ..ConnectionSettings::lasting(1200) };
    let settings = HostSettings {
        eager: false,
        paths: vec![path],
        ..settings(true, 1, "cubic", "minrtt", 16 << 20)
    };
    let pins: Vec<_> = clients.iter().map(|key| key.public()).collect();
    Host::new(settings, own, &pins, start, &ChaCha8Rng::seed_from_u64(1)).unwrap()
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 4433))
}

/// A client that shakes hands, and then does as it likes.
struct Stranger {
    number: usize,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
}

impl Stranger {
    fn new(number: usize, own: &KeyPair, server: &KeyPair, now: Instant) -> Stranger {
        let crypto = QuicClientConfig::try_from(own.client(&[server.public()]).unwrap()).unwrap();
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport.mtu_discovery_config(None).initial_rtt(Duration::from_millis(10));
        config.transport_config(Arc::new(transport));
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (handle, connection) =
            endpoint.connect(now, config, address(usize::MAX), "knee").unwrap();
        Stranger { number, endpoint, handle, connection }
    }

    /// Exchanges all packets with the server.
    fn settle(&mut self, now: Time, start: Instant, server: &mut Host) {
        let at = start + Duration::from_nanos(now.as_nanos());
        let mut buffer = Vec::new();
        loop {
            let mut moved = false;
            while let Some(event) = self.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    self.connection.handle_event(event);
                }
            }
            while self.connection.poll().is_some() {}
            while let Some(transmit) = self.connection.poll_transmit(at, 1, &mut buffer) {
                let bytes = &buffer[..transmit.size];
                server.on_packet(now, 0, Addresses::to(address(self.number)), bytes);
                buffer.clear();
                moved = true;
            }
            let mut packets = Vec::new();
            server.work(now, |_, to, bytes, packet| {
                if to.peer == address(self.number) {
                    packets.extend(bytes.chunks(packet).map(BytesMut::from));
                }
            });
            for packet in packets {
                moved = true;
                let event =
                    self.endpoint.handle(at, address(usize::MAX), None, None, packet, &mut buffer);
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    self.connection.handle_event(event);
                }
                buffer.clear();
            }
            if !moved {
                return;
            }
        }
    }
}

/// One after the other, because the allocator counts for the whole program.
#[test]
fn connections_that_never_join_cost_little() {
    all_of_them_cost_64_mib_at_most();
    one_key_has_sixteen();
    a_short_datagram_of_another_version_has_no_answer();
}

/// Connections of many keys send datagrams and half of a message each, and never join. As many as a
/// server keeps of them cost 64 MiB at most.
fn all_of_them_cost_64_mib_at_most() {
    const COUNT: usize = 160;
    let start = Instant::now();
    let own = KeyPair::generate().unwrap();
    let keys: Vec<_> = (0..COUNT / OF_A_KEY).map(|_| KeyPair::generate().unwrap()).collect();
    let mut host = server(&own, &keys.iter().collect::<Vec<_>>(), start);
    let mut strangers = Vec::new();
    let region = Region::new(ALLOCATOR);
    for number in 0..COUNT {
        let now = Time::from_secs(1);
        let mut stranger = Stranger::new(number, &keys[number / OF_A_KEY], &own, start);
        stranger.settle(now, start, &mut host);
        assert!(!stranger.connection.is_handshaking() && !stranger.connection.is_closed());
        for step in 0..8_u64 {
            for _ in 0..64 {
                let _ = stranger.connection.datagrams().send(Bytes::from(vec![7; 1000]), true);
            }
            stranger.settle(now + Time::from_millis(step * 10), start, &mut host);
        }
        let stream = stranger.connection.streams().open(Dir::Bi).unwrap();
        let _ = stranger.connection.send_stream(stream).write(&[200; 100]);
        stranger.settle(now + Time::from_secs(1), start, &mut host);
        strangers.push(stranger);
    }
    assert!(strangers.iter().all(|stranger| !stranger.connection.is_closed()));
    drop(strangers);
    let change = region.change();
    let each = (change.bytes_allocated - change.bytes_deallocated) / COUNT;
    println!("a connection holds {each} bytes");
    assert!(UNJOINED_MAX * each <= 64 << 20, "{each} bytes");
}

/// Of a key whose connections do not join the newest are kept, and the owner of the host is told.
fn one_key_has_sixteen() {
    let start = Instant::now();
    let (own, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut host = server(&own, &[&key], start);
    let mut strangers = Vec::new();
    for number in 0..3 * OF_A_KEY {
        let now = Time::from_millis(number as u64);
        let mut stranger = Stranger::new(number, &key, &own, start);
        stranger.settle(now, start, &mut host);
        strangers.push(stranger);
    }
    let told: Vec<_> = std::iter::from_fn(|| host.poll_event()).collect();
    let hoarded =
        |event: &&HostEvent| matches!(event, HostEvent::Hoarded(of) if *of == key.public());
    let closed = |event: &&HostEvent| matches!(event, HostEvent::Lost(None, _));
    assert_eq!(told.iter().filter(hoarded).count(), 2 * OF_A_KEY);
    assert_eq!(told.iter().filter(closed).count(), 2 * OF_A_KEY);
}

/// RFC 9000, section 6.1: a server that is asked for a version which it does not speak answers only if
/// the datagram is large enough to begin a connection.
fn a_short_datagram_of_another_version_has_no_answer() {
    let start = Instant::now();
    let (own, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut host = server(&own, &[&key], start);
    let mut answered = |len: usize| {
        // A long header with an unknown version, and empty connection ids.
        let mut bytes = vec![0_u8; len];
        bytes[..7].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0]);
        host.on_packet(Time::ZERO, 0, Addresses::to(address(1)), &bytes);
        let mut sent = 0;
        host.work(Time::ZERO, |_, _, bytes, _| sent += bytes.len());
        sent
    };
    assert_eq!([7, 39, 1199].map(&mut answered), [0; 3]);
    assert!((7..1200).contains(&answered(1200)));
}
