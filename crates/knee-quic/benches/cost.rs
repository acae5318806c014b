//! What the adaptor costs a packet, and what a bundle carries beside the QUIC library alone.
//!
//! A client sends to a server over sockets of the loopback device, both ends in one thread, whose
//! processor time counts. The library sends a stream over a connection for each path, the bundle a
//! stream over as many paths; both under CUBIC, the library's own and Knee's, with the same windows.
//! They alternate. The bundle does not reinject, as the library repeats nothing either: behind a
//! window that a core fills in two milliseconds it would repeat an eighth.
//!
//! The adaptor's cost is that of the calls of such a transfer, recorded and replayed, in which an
//! ACK is for hundreds of packets; and that of a flow of 120 Mbit/s over 40 ms with an ACK for every
//! second packet. Under the controller `fixed`, which does nothing, it is the adaptor's own. Run
//! with `cargo bench -p knee-quic`, on a quiet host.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use bytes::BytesMut;
use knee_bundle::{Class, Event, Limits, StreamId};
use knee_multipath::sched::Selection;
use knee_quic::{
    Addresses, BundleId, CongestionControl, CongestionSettings, ConnectionSettings, Host,
    HostSettings, KeyPair, Room, Socket,
};
use knee_units::Time;
use nix::time::{ClockId, clock_gettime};
use noq_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    FourTuple, RttEstimator, ServerConfig, TransportConfig, VarInt,
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::any::Any;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of a transfer, of the window, and of a packet's UDP payload.
const BYTES: u64 = 200_000_000;
const WINDOW: u64 = 1 << 20;
const PACKET: u16 = 1452;
/// Pairs of transfers, and replays of the calls.
const PAIRS: usize = 7;
const REPLAYS: usize = 7;
/// Packets of a system call, as the bundle's host has them.
const SEGMENTS: NonZeroUsize = NonZeroUsize::new(10).unwrap();
const ID: BundleId = [7; 16];

/// Receives the path, the addresses, the bytes, and the size of each packet in them.
type Sending<'a> = dyn FnMut(usize, Addresses, &[u8], usize) + 'a;
type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// One end of a transfer, with its application.
trait End {
    /// Processes a packet that came on a path.
    fn packet(&mut self, now: Time, path: usize, from: Addresses, bytes: &[u8]);
    /// Lets the application write or read, and sends what is due.
    fn work(&mut self, now: Time, send: &mut Sending<'_>);
    /// Returns the bytes that the application has read.
    fn read(&self) -> u64;
}

/// The library alone: a connection with one stream on each path.
struct Bare {
    start: Instant,
    is_server: bool,
    paths: Vec<BarePath>,
    chunk: Vec<u8>,
    buffer: Vec<u8>,
    read: u64,
}

struct BarePath {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<noq_proto::StreamId>,
    left: u64,
    answers: Vec<(Addresses, Vec<u8>)>,
}

fn transport(control: &Factory) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW as u32);
    config
        .congestion_controller_factory(control.clone())
        .initial_mtu(PACKET)
        .mtu_discovery_config(None)
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(2 * WINDOW);
    Arc::new(config)
}

fn endpoint(server: Option<Arc<ServerConfig>>) -> Endpoint {
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[7; 32]);
    let mut config = EndpointConfig::new(Arc::new(secret));
    config.max_udp_payload_size(PACKET).unwrap();
    Endpoint::new(Arc::new(config), server, false)
}

fn bare(start: Instant, to: &[SocketAddr], control: [&Factory; 2]) -> [Box<dyn End>; 2] {
    let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
    let path = |endpoint, connection| BarePath {
        endpoint,
        connection,
        stream: None,
        left: BYTES / to.len() as u64,
        answers: Vec::new(),
    };
    let client = to.iter().map(|to| {
        let tls = keys[0].client(&[keys[1].public()]).unwrap();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(transport(control[0]));
        let mut endpoint = endpoint(None);
        let connection = endpoint.connect(start, config, *to, "knee").unwrap();
        path(endpoint, Some(connection))
    });
    let server = to.iter().map(|_| {
        let tls = keys[1].server(&[keys[0].public()]).unwrap();
        let tls = QuicServerConfig::try_from(tls).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport(control[1]));
        path(endpoint(Some(Arc::new(config))), None)
    });
    let end = |is_server, paths| -> Box<dyn End> {
        let (chunk, buffer) = (vec![0; 1 << 16], Vec::new());
        Box::new(Bare { start, is_server, paths, chunk, buffer, read: 0 })
    };
    [end(false, client.collect()), end(true, server.collect())]
}

impl End for Bare {
    fn packet(&mut self, now: Time, path: usize, from: Addresses, bytes: &[u8]) {
        let at = self.start + Duration::from_nanos(now.as_nanos());
        let path = &mut self.paths[path];
        let mut answer = Vec::new();
        let network = FourTuple::new(from.peer, from.local.filter(|_| self.is_server));
        match path.endpoint.handle(at, network, None, BytesMut::from(bytes), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut path.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = path.endpoint.accept(incoming, at, &mut answer, None);
                path.connection = Some(accepted.map_err(|refused| refused.cause).unwrap());
            }
            Some(DatagramEvent::Response(transmit)) => {
                path.answers.push((Addresses::to(transmit.destination), answer));
            }
            None => {}
        }
    }

    fn work(&mut self, now: Time, send: &mut Sending<'_>) {
        let at = self.start + Duration::from_nanos(now.as_nanos());
        for (number, path) in self.paths.iter_mut().enumerate() {
            for (to, bytes) in path.answers.drain(..) {
                send(number, to, &bytes, bytes.len());
            }
            let Some((handle, connection)) = &mut path.connection else { continue };
            if connection.poll_timeout().is_some_and(|due| due <= at) {
                connection.handle_timeout(at);
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = path.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            while connection.poll().is_some() {}
            if self.is_server {
                path.stream = path.stream.or_else(|| connection.streams().accept(Dir::Uni));
                if let Some(id) = path.stream
                    && let Ok(mut chunks) = connection.recv_stream(id).read(true)
                {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        self.read += chunk.bytes.len() as u64;
                    }
                    let _ = chunks.finalize();
                }
            } else {
                path.stream = path.stream.or_else(|| connection.streams().open(Dir::Uni));
                while path.left > 0
                    && let Some(id) = path.stream
                {
                    let mut stream = connection.send_stream(id);
                    let part = path.left.min(self.chunk.len() as u64) as usize;
                    let Ok(taken) = stream.write(&self.chunk[..part]) else { break };
                    path.left -= taken as u64;
                    if path.left == 0 {
                        stream.finish().unwrap();
                    }
                }
            }
            loop {
                self.buffer.clear();
                let transmit = connection.poll_transmit(at, SEGMENTS, &mut self.buffer);
                let Some(transmit) = transmit else { break };
                let packet = transmit.segment_size.unwrap_or(transmit.size);
                let to = Addresses { peer: transmit.destination, local: transmit.src_ip };
                send(number, to, &self.buffer[..transmit.size], packet);
            }
        }
    }

    fn read(&self) -> u64 {
        self.read
    }
}

/// A host with one stream of one bundle.
struct Bundled {
    host: Host,
    is_server: bool,
    stream: Option<StreamId>,
    left: u64,
    chunk: Vec<u8>,
    read: u64,
}

fn congestion(controller: Selection) -> CongestionSettings {
    CongestionSettings {
        controller,
        recovery: None,
        paced: None,
        initial_window: 10,
        max_burst: 65536,
    }
}

fn bundled(start: Instant, to: &[SocketAddr]) -> [Box<dyn End>; 2] {
    let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
    [0, 1].map(|number| {
        let is_server = number == 1;
        let settings = HostSettings {
            is_server,
            paths: vec![ConnectionSettings::lasting(PACKET); to.len()],
            eager: true,
            linger: Time::MAX,
            bundles_of_a_key: 1,
            congestion: congestion(Selection::named("cubic")),
            scheduler: Selection::named("just-in-time"),
            limits: Limits { window: WINDOW, stream_window: WINDOW, streams: 4 },
            buffer: 2 * WINDOW,
            reinjection: false,
            lateness: Time::from_millis(2),
        };
        let rng = ChaCha8Rng::seed_from_u64(number as u64);
        let peer = keys[1 - number].public();
        let mut host = Host::new(settings, &keys[number], &[peer], start, &rng).unwrap();
        if !is_server {
            let paths: Vec<_> = to.iter().enumerate().map(|(path, to)| (path, *to, 0)).collect();
            host.open(Time::ZERO, ID, &paths).unwrap();
        }
        let chunk = vec![0; 1 << 16];
        let end: Box<dyn End> =
            Box::new(Bundled { host, is_server, stream: None, left: BYTES, chunk, read: 0 });
        end
    })
}

impl End for Bundled {
    fn packet(&mut self, now: Time, path: usize, from: Addresses, bytes: &[u8]) {
        self.host.on_packet(now, path, from, bytes);
    }

    fn work(&mut self, now: Time, send: &mut Sending<'_>) {
        if let Some(bundle) = self.host.bundle(&ID) {
            while let Some(event) = bundle.poll_event() {
                if let Event::Readable(id) = event {
                    while let Some(bytes) = bundle.read(id, usize::MAX) {
                        self.read += bytes.len() as u64;
                    }
                }
            }
            if !self.is_server {
                let id = *self.stream.get_or_insert_with(|| bundle.open(Class::Normal).unwrap());
                while self.left > 0 {
                    let part = self.left.min(self.chunk.len() as u64) as usize;
                    let taken = bundle.write(id, &self.chunk[..part]);
                    self.left -= taken as u64;
                    if self.left == 0 {
                        bundle.finish(id);
                    }
                    if taken < part {
                        break;
                    }
                }
            }
        }
        self.host.work(now, send);
        while self.host.poll_event().is_some() {}
    }

    fn read(&self) -> u64 {
        self.read
    }
}

/// Returns the processor time of this thread so far, s.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::from(time).as_secs_f64()
}

/// Transfers the bytes over `paths` paths between two ends that `make` makes, and returns the
/// processor time, s.
fn transfer(paths: usize, make: impl Fn(Instant, &[SocketAddr]) -> [Box<dyn End>; 2]) -> f64 {
    let sockets = [(); 2].map(|()| {
        let socket = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            Socket::new(socket).unwrap()
        };
        (0..paths).map(socket).collect::<Vec<_>>()
    });
    let to: Vec<_> = sockets[1].iter().map(|socket| socket.local_addr().unwrap()).collect();
    let start = Instant::now();
    let mut ends = make(start, &to);
    let before = processor();
    let mut room = Room::default();
    while ends[1].read() < BYTES {
        for (end, sockets) in ends.iter_mut().zip(&sockets) {
            let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
            for (path, socket) in sockets.iter().enumerate() {
                let take = |from: Addresses, bytes: &[u8]| end.packet(now, path, from, bytes);
                socket.receive(&mut room, take).unwrap();
            }
            end.work(now, &mut |path, to, bytes, packet| {
                sockets[path].send(to, bytes, packet).unwrap();
            });
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{} bytes arrived", ends[1].read());
    }
    processor() - before
}

/// A call of the library.
#[derive(Clone, Copy, Debug)]
enum Call {
    Sent(Instant, u16, u64),
    Ack(Instant, Instant, u64, u64, bool, RttEstimator),
    EndAcks(Instant, u64, bool, Option<u64>),
    Lost(u16, u64, Instant),
    Window,
}

/// Records the calls of the library's controller.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Call>>>);

#[derive(Debug)]
struct Recorded(Box<dyn Controller>, Recorder);

impl Recorder {
    fn note(&self, call: Call) {
        self.0.lock().unwrap().push(call);
    }
}

impl ControllerFactory for Recorder {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::new(CubicConfig::default()).build(now, mtu);
        Box::new(Recorded(inner, (*self).clone()))
    }
}

impl Controller for Recorded {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.1.note(Call::Sent(now, bytes, number));
        self.0.on_packet_sent(now, bytes, number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.1.note(Call::Ack(now, sent, bytes, number, app_limited, *rtt));
        self.0.on_ack(now, sent, bytes, number, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest: Option<u64>) {
        self.1.note(Call::EndAcks(now, in_flight, limited, largest));
        self.0.on_end_acks(now, in_flight, limited, largest);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.1.note(Call::Lost(bytes, number, now));
        self.0.on_packet_lost(bytes, number, now);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        lost: u64,
        largest: u64,
    ) {
        self.0.on_congestion_event(now, sent, is_persistent, is_ecn, lost, largest);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.0.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.1.note(Call::Window);
        self.0.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Recorded(self.0.clone_box(), self.1.clone()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn replay(controller: &mut dyn Controller, calls: &[Call]) {
    for call in calls {
        match call {
            Call::Sent(now, bytes, number) => controller.on_packet_sent(*now, *bytes, *number),
            Call::Ack(now, sent, bytes, number, limited, rtt) => {
                controller.on_ack(*now, *sent, *bytes, *number, *limited, rtt);
            }
            Call::EndAcks(now, in_flight, limited, largest) => {
                controller.on_end_acks(*now, *in_flight, *limited, *largest);
            }
            Call::Lost(bytes, number, now) => controller.on_packet_lost(*bytes, *number, *now),
            Call::Window => {
                std::hint::black_box(controller.window());
            }
        }
    }
}

/// Calls of a flow with an ACK for every second packet.
fn dense(since: Instant, rtt: RttEstimator) -> Vec<Call> {
    const IN_FLIGHT: u64 = 400;
    let sent_at = |number: u64| since + Duration::from_micros(100 * number);
    let calls = (0..100_000_u64).flat_map(|number| {
        let now = sent_at(number);
        let mut calls = vec![Call::Sent(now, PACKET, number), Call::Window];
        if let Some(last) = number.checked_sub(IN_FLIGHT).filter(|last| last % 2 == 1) {
            let ack = |number| Call::Ack(now, sent_at(number), PACKET.into(), number, false, rtt);
            let in_flight = IN_FLIGHT * u64::from(PACKET);
            calls.extend([
                ack(last - 1),
                ack(last),
                Call::EndAcks(now, in_flight, false, Some(last)),
            ]);
            calls.push(Call::Window);
        }
        calls
    });
    calls.collect()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn adaptor() {
    let control: Factory = Arc::new(CubicConfig::default());
    let recorder = Recorder::default();
    let since = Instant::now();
    transfer(1, |start, to| {
        let recording: Factory = Arc::new(recorder.clone());
        bare(start, to, [&recording, &control])
    });
    let calls = std::mem::take(&mut *recorder.0.lock().unwrap());
    let rtt = calls.iter().find_map(|call| match call {
        Call::Ack(.., rtt) => Some(*rtt),
        _ => None,
    });
    let dense = dense(since + Duration::from_secs(60), rtt.unwrap());
    for (what, calls) in [("ACKs of hundreds", calls), ("ACKs of two", dense)] {
        for (name, goal) in [("fixed", ", at most 120"), ("reno", ""), ("cubic", ""), ("bbr", "")] {
            let (nanoseconds, allocations) = cost(name, since, &calls);
            println!(
                "adaptor, {what:<16} {name:<5} {nanoseconds:>6.1} ns a packet{goal}; allocations in \
                 the second half: {allocations}"
            );
        }
    }
}

/// Returns the time that a controller takes for the calls, ns a packet, and how often it allocates
/// in the second half of them.
fn cost(controller: &str, since: Instant, calls: &[Call]) -> (f64, usize) {
    let packets = calls.iter().filter(|call| matches!(call, Call::Sent(..))).count();
    let mut allocations = 0;
    let once = |_| {
        let settings = congestion(Selection::named(controller));
        let rng = ChaCha8Rng::seed_from_u64(1);
        let control = CongestionControl::new(&settings, PACKET, since, rng).unwrap();
        // Before that it ignores ACKs.
        control.on_established(Time::ZERO, Time::from_millis(40));
        let mut controller = control.for_library();
        let began = processor();
        let (first, second) = calls.split_at(calls.len() / 2);
        replay(&mut *controller, first);
        let region = Region::new(ALLOCATOR);
        replay(&mut *controller, second);
        allocations = region.change().allocations + region.change().reallocations;
        (processor() - began) * 1e9 / packets as f64
    };
    let least = (0..REPLAYS).map(once).fold(f64::INFINITY, f64::min);
    (least, allocations)
}

fn bundle(paths: usize) {
    let control: Factory = Arc::new(CubicConfig::default());
    let pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|_| {
            let alone = transfer(paths, |start, to| bare(start, to, [&control; 2]));
            (alone, transfer(paths, bundled))
        })
        .collect();
    let rate = |seconds: f64| BYTES as f64 * 8e-6 / seconds;
    println!(
        "bundle over {paths}: {:.0} Mbit/s a core for both ends, the library alone {:.0}: {:.3}, at \
         least 0.88",
        median(pairs.iter().map(|(_, bundled)| rate(*bundled)).collect()),
        median(pairs.iter().map(|(alone, _)| rate(*alone)).collect()),
        median(pairs.iter().map(|(alone, bundled)| alone / bundled).collect())
    );
}

fn main() {
    adaptor();
    bundle(1);
    bundle(2);
}
