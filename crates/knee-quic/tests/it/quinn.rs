//! A bundle over another QUIC library: quinn, with its own congestion control. `knee-bundle` must
//! need nothing of a library but what every one with DATAGRAM frames (RFC 9221) offers: how large a
//! datagram may be, whether one more may be handed over, and the RTT.

use bytes::BytesMut;
use knee_bundle::{Bundle, BundleSettings, Class, Event, Limits, StreamId};
use knee_multipath::sched::{Path, Selection, Status};
use knee_quic::KeyPair;
use knee_units::Time;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    ServerConfig, TransportConfig,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Delay of a path in each direction, and its queue, bytes.
const ONE_WAY: Time = Time::from_millis(10);
const QUEUE: u64 = 64_000;

/// One end of a path.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    is_up: bool,
    /// When the link has sent what it holds.
    free: Time,
    /// Bytes per second of the link.
    rate: u64,
    carried: u64,
}

struct World {
    now: Time,
    start: Instant,
    /// Ends by path, client and server.
    paths: Vec<[End; 2]>,
    bundles: [Bundle; 2],
    /// Packets on the links, with the number of their path and their destination.
    flying: BTreeMap<(Time, u64), (usize, usize, Vec<u8>)>,
    count: u64,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4433))
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.mtu_discovery_config(None).datagram_send_buffer_size(1 << 20);
    Arc::new(config)
}

fn bundle(is_server: bool) -> Bundle {
    let limits = Limits { window: 1 << 20, stream_window: 1 << 20, streams: 4 };
    let settings = BundleSettings {
        is_server,
        datagram: 1100,
        limits,
        buffer: 1 << 20,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    Bundle::new(
        settings,
        limits,
        knee_multipath::sched::build(&Selection::named("minrtt")).unwrap(),
    )
}

impl World {
    /// Makes a world with a path for each rate, Mbit/s.
    fn new(rates: &[u64]) -> World {
        let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
        let start = Instant::now();
        let path = |mbit: &u64| {
            let mut server = keys[1].server(&[keys[0].public()]).unwrap();
            let mut client = keys[0].client(&[keys[1].public()]).unwrap();
            server.alpn_protocols = vec![b"test".to_vec()];
            client.alpn_protocols = vec![b"test".to_vec()];
            let crypto = QuicServerConfig::try_from(server).unwrap();
            let mut server = ServerConfig::with_crypto(Arc::new(crypto));
            server.transport_config(transport());
            let crypto = QuicClientConfig::try_from(client).unwrap();
            let mut client = ClientConfig::new(Arc::new(crypto));
            client.transport_config(transport());
            let config = Arc::new(EndpointConfig::default());
            let mut endpoint = Endpoint::new(config.clone(), None, false, None);
            let connection = endpoint.connect(start, client, address(1), "knee").unwrap();
            let end = |endpoint, connection| End {
                endpoint,
                connection,
                is_up: false,
                free: Time::ZERO,
                rate: mbit * 125_000,
                carried: 0,
            };
            let server = Endpoint::new(config, Some(Arc::new(server)), false, None);
            [end(endpoint, Some(connection)), end(server, None)]
        };
        World {
            now: Time::ZERO,
            start,
            paths: rates.iter().map(path).collect(),
            bundles: [bundle(false), bundle(true)],
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now.as_nanos())
    }

    /// Sends a packet over a link with a queue.
    fn send(&mut self, path: usize, from: usize, packet: Vec<u8>) {
        let end = &mut self.paths[path][from];
        let len = packet.len() as u64;
        let free = end.free.max(self.now);
        let queued = (free - self.now).as_nanos() * end.rate / 1_000_000_000;
        if queued + len > QUEUE {
            return;
        }
        end.free = free + Time::from_nanos(len * 1_000_000_000 / end.rate);
        end.carried += len;
        self.flying.insert((end.free + ONE_WAY, self.count), (path, 1 - from, packet));
        self.count += 1;
    }

    /// Returns the paths as the scheduler of an end sees them.
    fn views(&mut self, end: usize) -> Vec<Path> {
        let view = |ends: &mut [End; 2]| {
            let End { is_up, connection, .. } = &mut ends[end];
            let Some((_, connection)) = connection.as_mut().filter(|_| *is_up) else {
                return Path { status: Status::Down, ..Path::default() };
            };
            let window = connection.stats().path.cwnd;
            let srtt = Time::from_nanos(connection.rtt().as_nanos() as u64);
            // What waits in the connection cannot go over another path, so little may.
            let waits = (1 << 20) - connection.datagrams().send_buffer_space();
            let status = Status::Active;
            Path { status, ready: waits < 3000, srtt, window, ..Path::default() }
        };
        self.paths.iter_mut().map(view).collect()
    }

    /// Lets an end send all it may.
    fn work(&mut self, end: usize) {
        let (now, instant) = (self.now, self.instant());
        loop {
            let views = self.views(end);
            let max: Vec<u16> = (self.paths.iter_mut())
                .map(|ends| ends[end].connection.as_mut())
                .map(|one| {
                    one.and_then(|(_, one)| one.datagrams().max_size()).unwrap_or(1100) as u16
                })
                .collect();
            let mut bytes = BytesMut::new();
            let path = self.bundles[end].poll_datagram(now, &views, &max, &mut bytes);
            if let Some(path) = path {
                let (_, connection) = self.paths[path][end].connection.as_mut().unwrap();
                connection.datagrams().send(bytes.freeze(), false).unwrap();
            }
            for at in 0..self.paths.len() {
                let mut packet = Vec::new();
                while let Some((_, connection)) = &mut self.paths[at][end].connection
                    && connection.poll_transmit(instant, 1, &mut packet).is_some()
                {
                    self.send(at, end, std::mem::take(&mut packet));
                }
            }
            if path.is_none() {
                break;
            }
        }
    }

    /// Processes what a connection tells.
    fn hear(&mut self, path: usize, end: usize) {
        let End { endpoint, connection, is_up, .. } = &mut self.paths[path][end];
        let Some((handle, connection)) = connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => {
                    *is_up = true;
                    self.bundles[end].on_path_up(path);
                }
                quinn_proto::Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        while let Some(bytes) = connection.datagrams().recv() {
            self.bundles[end].on_heard(self.now, path, true);
            self.bundles[end].on_datagram(self.now, path, &bytes).unwrap();
        }
    }

    /// Delivers a packet.
    fn deliver(&mut self, path: usize, end: usize, packet: &[u8]) {
        let instant = self.instant();
        let End { endpoint, connection, .. } = &mut self.paths[path][end];
        let mut answer = Vec::new();
        let bytes = BytesMut::from(packet);
        match endpoint.handle(instant, address(1 - end), None, None, bytes, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = endpoint.accept(incoming, instant, &mut answer, None);
                *connection = Some(accepted.map_err(|error| error.cause).unwrap());
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                connection.as_mut().unwrap().1.handle_event(event);
            }
            Some(DatagramEvent::Response(_)) => self.send(path, end, answer),
            None => {}
        }
        self.hear(path, end);
    }

    /// Runs everything up to the next event.
    fn step(&mut self) {
        (0..2).for_each(|end| self.work(end));
        let mut at = self.flying.keys().next().map_or(Time::MAX, |key| key.0);
        for end in 0..2 {
            let views = self.views(end);
            at = at.min(self.bundles[end].timer(&views));
            for ends in &mut self.paths {
                let timeout = ends[end].connection.as_mut().and_then(|(_, one)| one.poll_timeout());
                let timeout = timeout.map(|at| (at - self.start).as_nanos() as u64);
                at = at.min(timeout.map_or(Time::MAX, Time::from_nanos));
            }
        }
        assert!(at < Time::from_secs(60), "it stands still at {:?}", self.now);
        self.now = self.now.max(at);
        while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= self.now)
        {
            let (path, end, packet) = first.remove();
            self.deliver(path, end, &packet);
        }
        let instant = self.instant();
        for end in 0..2 {
            for path in 0..self.paths.len() {
                if let Some((_, connection)) = &mut self.paths[path][end].connection
                    && connection.poll_timeout().is_some_and(|at| at <= instant)
                {
                    connection.handle_timeout(instant);
                }
                self.hear(path, end);
            }
            let views = self.views(end);
            self.bundles[end].on_timer(self.now, &views);
        }
    }

    /// Downloads a file of so many bytes. Returns the time that it takes.
    fn download(&mut self, size: usize) -> Time {
        let id: StreamId = self.bundles[0].open(Class::Normal).unwrap();
        self.bundles[0].write(id, b"GET");
        self.bundles[0].finish(id);
        let content: Vec<u8> = (0..size).map(|at| (at * 31 + at / 251) as u8).collect();
        let (mut written, mut read) = (0, Vec::new());
        while !self.bundles[0].is_read_to_end(id) {
            while let Some(event) = self.bundles[1].poll_event() {
                if matches!(event, Event::Opened(_) | Event::Writable(_)) && written < size {
                    written += self.bundles[1].write(id, &content[written..]);
                    if written == size {
                        self.bundles[1].finish(id);
                    }
                }
                while self.bundles[1].read(id, 1000).is_some() {}
            }
            self.step();
            while let Some(bytes) = self.bundles[0].read(id, 1 << 16) {
                read.extend_from_slice(&bytes);
            }
            while self.bundles[0].poll_event().is_some() {}
        }
        assert!(read == content, "{} bytes", read.len());
        self.now
    }
}

/// Two links of 10 Mbit/s under quinn's CUBIC: no faster than both can be, and clearly faster than
/// one.
#[test]
fn a_bundle_runs_over_another_library() {
    let size = 4_000_000;
    let one = World::new(&[10]).download(size);
    let mut world = World::new(&[10, 10]);
    let two = world.download(size);
    let least = |links: u64| Time::from_nanos(size as u64 * 800 / links);
    assert!(one >= least(1) && two >= least(2), "{one:?}, {two:?}");
    assert!(one.as_nanos() >= two.as_nanos() * 3 / 2, "{one:?} by one, {two:?} by two");
    for path in &world.paths {
        assert!(path[1].carried > size as u64 / 3, "{} bytes", path[1].carried);
    }
}
