//! Attacks a server of `knee bond`, or a client, for `benches/siege.py`:
//!
//! - `besiege garbage SERVER COUNT`: datagrams of random bytes, and of long headers with random rest;
//! - `besiege initials SERVER COUNT`: first packets of connections, without reading an answer;
//! - `besiege unjoined SERVER COUNT KEY SERVER_KEY`: handshakes with a key that the server knows, each
//!   of which sends some datagrams and never joins a bundle;
//! - `besiege boast ADDRESS KEY CLIENT_KEY`: a server that announces the largest windows, until it is
//!   killed.
//!
//! Keys are DER PKCS #8, and public keys 32 bytes, in hexadecimal. Prints how much was sent.

#![allow(clippy::unwrap_used, reason = "an attack that fails is no attack")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]
#![allow(clippy::print_stdout, reason = "it says what it did")]

use bytes::{Bytes, BytesMut};
use knee_bundle::Limits;
use knee_cc::Selection;
use knee_quic::{
    Addresses, CongestionSettings, ConnectionSettings, Host, HostSettings, KeyPair, PublicKey,
};
use knee_units::Time;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    TransportConfig,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Handshakes at a time.
const AT_A_TIME: usize = 64;
/// Time after which a handshake is given up.
const GIVEN_UP: Duration = Duration::from_secs(5);
/// Sources of the first packets: sockets, each with an address of its own.
const SOURCES: usize = 50;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["garbage", server, count] => garbage(address(server), count.parse().unwrap()),
        ["initials", server, count] => initials(address(server), count.parse().unwrap()),
        ["unjoined", server, count, key, peer] => {
            unjoined(address(server), count.parse().unwrap(), &config(&pair(key), public(peer)));
        }
        ["boast", at, key, peer] => boast(address(at), &pair(key), public(peer)),
        _ => panic!("see the first lines of its source"),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    pairs.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn pair(hexadecimal: &str) -> KeyPair {
    KeyPair::from_pkcs8(&bytes(hexadecimal)).unwrap()
}

fn public(hexadecimal: &str) -> PublicKey {
    PublicKey::new(bytes(hexadecimal).try_into().unwrap())
}

fn garbage(server: SocketAddr, count: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let mut datagram = [0; 1400];
    let mut refused = 0;
    for number in 0..count {
        let length = 1 + rng.next_u32() as usize % datagram.len();
        rng.fill_bytes(&mut datagram[..length]);
        if number % 2 == 0 && length > 5 {
            // A long header of version 1, of any type (RFC 9000, section 17.2).
            datagram[0] |= 0xc0;
            datagram[1..5].copy_from_slice(&[0, 0, 0, 1]);
        }
        refused += usize::from(socket.send_to(&datagram[..length], server).is_err());
    }
    println!("{} datagrams", count - refused);
}

fn config(own: &KeyPair, server: PublicKey) -> ClientConfig {
    let crypto = QuicClientConfig::try_from(own.client(&[server]).unwrap()).unwrap();
    let mut config = ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    config.transport_config(Arc::new(transport));
    config
}

fn initials(server: SocketAddr, count: usize) {
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let config = config(&own, other.public());
    let sockets: Vec<_> = (0..SOURCES).map(|_| UdpSocket::bind("0.0.0.0:0").unwrap()).collect();
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let (mut sent, mut buffer) = (0, Vec::new());
    for number in 0..count {
        let now = Instant::now();
        let (handle, mut connection) =
            endpoint.connect(now, config.clone(), server, "knee").unwrap();
        buffer.clear();
        if let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
            let socket = &sockets[number % sockets.len()];
            sent += usize::from(socket.send_to(&buffer[..transmit.size], server).is_ok());
        }
        endpoint.handle_event(handle, quinn_proto::EndpointEvent::drained());
    }
    println!("{sent} first packets");
}

/// A connection, and when it began.
type Begun = (Connection, Instant);

fn unjoined(server: SocketAddr, count: usize, config: &ClientConfig) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let mut open: BTreeMap<ConnectionHandle, Begun> = BTreeMap::new();
    let (mut begun, mut done, mut failed) = (0, 0, 0);
    let (mut packet, mut buffer) = ([0; 2048], Vec::new());
    while done + failed < count {
        let now = Instant::now();
        while open.len() < AT_A_TIME && begun < count {
            let (handle, connection) =
                endpoint.connect(now, config.clone(), server, "knee").unwrap();
            open.insert(handle, (connection, now));
            begun += 1;
        }
        if let Ok((length, from)) = socket.recv_from(&mut packet) {
            let data = BytesMut::from(&packet[..length]);
            let event = endpoint.handle(now, from, None, None, data, &mut buffer);
            if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event
                && let Some((connection, _)) = open.get_mut(&handle)
            {
                connection.handle_event(event);
            }
            buffer.clear();
        }
        open.retain(|handle, (connection, begun)| {
            if connection.poll_timeout().is_some_and(|due| due <= now) {
                connection.handle_timeout(now);
            }
            let is_up = !connection.is_handshaking();
            if is_up && !connection.is_closed() {
                // What it sends before it joins is kept for it.
                let _ = connection.datagrams().send(Bytes::from_static(&[7; 1000]), true);
            }
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                let _ = socket.send_to(&buffer[..transmit.size], server);
                buffer.clear();
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while connection.poll().is_some() {}
            let is_late = begun.elapsed() > GIVEN_UP;
            let is_over = connection.is_closed() || is_up || is_late;
            if is_over {
                done += usize::from(is_up);
                failed += usize::from(!is_up);
                // It is not closed: the server keeps it as long as it likes.
                endpoint.handle_event(*handle, quinn_proto::EndpointEvent::drained());
            }
            !is_over
        });
    }
    println!("{done} handshakes, and {failed} that failed");
}

fn boast(at: SocketAddr, own: &KeyPair, client: PublicKey) {
    let socket = UdpSocket::bind(at).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let most = 1 << 60;
    let settings = HostSettings {
        is_server: true,
        paths: vec![ConnectionSettings::lasting(1200)],
        eager: false,
        linger: Time::from_secs(60),
        bundles_of_a_key: usize::MAX,
        congestion: CongestionSettings {
            controller: Selection::named("cubic"),
            recovery: None,
            paced: None,
            initial_window: 10,
            max_burst: 1 << 16,
        },
        scheduler: Selection::named("minrtt"),
        limits: Limits { window: most, stream_window: most, streams: most },
        buffer: 1 << 20,
        reinjection: false,
        lateness: Time::from_millis(1),
    };
    let start = Instant::now();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let mut host = Host::new(settings, own, &[client], start, &rng).unwrap();
    let mut packet = [0; 2048];
    println!("boasting");
    loop {
        let came = socket.recv_from(&mut packet);
        let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
        if let Ok((length, from)) = came {
            host.on_packet(now, 0, Addresses::to(from), &packet[..length]);
        }
        host.work(now, |_, to, bytes, size| {
            for part in bytes.chunks(size) {
                let _ = socket.send_to(part, to.peer);
            }
        });
        while host.poll_event().is_some() {}
    }
}
