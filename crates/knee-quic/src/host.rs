//! One end host: its QUIC endpoints, one for each path, and the bundles over them. It
//! does no I/O and reads no clock, so that it runs over simulated links as over sockets.

use crate::congestion::{CongestionControl, CongestionSettings, Coupling};
use crate::keys::{KeyError, KeyPair, PublicKey};
use crate::link::{Factory, Link, SEND_BUFFER};
use bytes::BytesMut;
use knee_bundle::{
    Bundle, BundleCounters, BundleSettings, DATAGRAM_MIN, Join, Limits, VERSION, Violation,
};
use knee_cc::SelectionError;
use knee_sched::{PATHS_MAX, Path, Selection, Status};
use knee_units::Time;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, FourTuple, ServerConfig, StreamEvent, Transmit,
    TransportConfig, VarInt,
};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of a bundle: random, made by the client.
pub type BundleId = [u8; 16];

/// Packets that leave in one call at most (UDP segmentation offload).
const SEGMENTS_MAX: NonZeroUsize = NonZeroUsize::new(10).expect("it is not zero");
/// The name that servers go by; who they are says their key.
const SERVER_NAME: &str = "knee";
/// Bytes that QUIC puts around a datagram at most: its header with a packet number of four
/// bytes (RFC 9000, section 17.3.1), the tag, and the frame's type and length.
const AROUND_DATAGRAM: u16 = 1 + 8 + 4 + 16 + 1 + 8;
/// Room for what arrives before its bundle is known.
const RECEIVE_BUFFER: usize = 16 << 20;

/// What a host is set to.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// It accepts connections, and does not open any.
    pub is_server: bool,
    /// Bytes of a packet on each path, as UDP's payload.
    pub packets: Vec<u16>,
    /// What each path's congestion control is set to.
    pub congestion: CongestionSettings,
    /// The scheduler.
    pub scheduler: Selection,
    /// What each end takes of the other, of a bundle.
    pub limits: Limits,
    /// Bytes that a stream keeps which are written and not acknowledged.
    pub buffer: u64,
    /// A fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// How late this host's clock and timers may be.
    pub lateness: Time,
    /// Paths that are used only when no other is left, by their number in a bundle.
    pub backup: Vec<usize>,
}

/// A host could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Its controller or scheduler.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A connection cannot be opened.
    #[error("cannot open a connection: {0}")]
    Connect(#[from] noq_proto::ConnectError),
}

/// What the owner of a host is to know.
#[derive(Debug)]
pub enum HostEvent {
    /// A client has joined with the first path of a bundle.
    Accepted(BundleId),
    /// A path of a bundle can be used.
    Joined(BundleId, usize),
    /// A connection ended, and why.
    Lost(Option<BundleId>, String),
    /// The peer broke the rules of the bundle.
    Broken(BundleId, Violation),
}

/// A bundle with its paths.
struct Bond {
    bundle: Bundle,
    /// By number in the bundle: the host's path and the connection.
    links: Vec<Option<LinkKey>>,
    coupling: Coupling,
    closing: bool,
}

type LinkKey = (usize, usize);

/// An end host.
pub struct Host {
    settings: HostSettings,
    start: Instant,
    endpoints: Vec<Endpoint>,
    factories: Vec<Arc<Factory>>,
    clients: Vec<ClientConfig>,
    links: BTreeMap<LinkKey, Link>,
    bonds: BTreeMap<BundleId, Bond>,
    events: Vec<HostEvent>,
    /// What endpoints answer by themselves.
    answers: Vec<(usize, Transmit, Vec<u8>)>,
    buffer: Vec<u8>,
    datagram: Vec<u8>,
}

impl Host {
    /// A host without connections, which takes peers of the key `peer` alone. Time zero
    /// is `start`.
    ///
    /// # Errors
    /// Keys cannot be used; controller or scheduler are not known.
    pub fn new(
        settings: HostSettings,
        keys: &KeyPair,
        peer: &PublicKey,
        start: Instant,
        rng: &ChaCha8Rng,
    ) -> Result<Host, HostError> {
        knee_sched::build(&settings.scheduler)?;
        let mut host = Host {
            start,
            endpoints: Vec::new(),
            factories: Vec::new(),
            clients: Vec::new(),
            links: BTreeMap::new(),
            bonds: BTreeMap::new(),
            events: Vec::new(),
            answers: Vec::new(),
            buffer: Vec::new(),
            datagram: Vec::new(),
            settings,
        };
        let pins = std::slice::from_ref(peer);
        for (path, packet) in host.settings.packets.clone().into_iter().enumerate() {
            let mut rng = rng.clone();
            rng.set_stream((path as u64) << 32);
            let factory =
                Arc::new(Factory::new(host.settings.congestion.clone(), start, rng.clone())?);
            let transport = Arc::new(transport(packet, factory.clone()));
            let mut config = EndpointConfig::default();
            config.rng_seed(Some(rng.get_seed()));
            // The only error is a size below that of any QUIC packet.
            let _ = config.max_udp_payload_size(packet.max(1200));
            let server = if host.settings.is_server {
                let mut server = ServerConfig::with_crypto(Arc::new(keys.server(pins)?));
                server.transport_config(transport);
                Some(Arc::new(server))
            } else {
                let mut client = ClientConfig::new(Arc::new(keys.client(pins)?));
                client.transport_config(transport);
                host.clients.push(client);
                None
            };
            host.endpoints.push(Endpoint::new(Arc::new(config), server, false));
            host.factories.push(factory);
        }
        Ok(host)
    }

    fn instant(&self, now: Time) -> Instant {
        self.start + Duration::from_nanos(now.as_nanos())
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.start).as_nanos() as u64)
    }

    /// Opens a bundle over some of the host's paths, each to an address of the peer.
    ///
    /// # Errors
    /// An address that cannot be connected to.
    pub fn open(
        &mut self,
        now: Time,
        id: BundleId,
        paths: &[(usize, SocketAddr)],
    ) -> Result<(), HostError> {
        self.insert(id, paths.len());
        for (number, (path, to)) in paths.iter().enumerate() {
            let config = self.clients[*path].clone();
            let at = self.instant(now);
            let (handle, connection) =
                self.endpoints[*path].connect(at, config, *to, SERVER_NAME)?;
            let key = self.add(*path, handle, connection);
            self.join(key, id, number);
        }
        Ok(())
    }

    #[expect(clippy::expect_used, reason = "the scheduler was built before")]
    fn insert(&mut self, id: BundleId, paths: usize) {
        let HostSettings { is_server, limits, buffer, reinjection, lateness, .. } = self.settings;
        let packet = self.settings.packets.iter().min().copied().unwrap_or_default();
        let datagram = packet.saturating_sub(AROUND_DATAGRAM).max(DATAGRAM_MIN);
        let settings =
            BundleSettings { is_server, datagram, limits, buffer, reinjection, lateness };
        let scheduler = knee_sched::build(&self.settings.scheduler).expect("it was built before");
        let bond = Bond {
            bundle: Bundle::new(settings, limits, scheduler),
            links: vec![None; paths],
            coupling: Coupling::default(),
            closing: false,
        };
        self.bonds.insert(id, bond);
    }

    #[expect(clippy::expect_used, reason = "the library builds one for each connection")]
    fn add(
        &mut self,
        path: usize,
        handle: ConnectionHandle,
        connection: noq_proto::Connection,
    ) -> LinkKey {
        let control = self.factories[path].take().expect("a connection has a controller");
        let key = (path, handle.0);
        self.links.insert(key, Link::new(connection, handle, control));
        key
    }

    fn join(&mut self, key: LinkKey, id: BundleId, number: usize) {
        let (Some(link), Some(bond)) = (self.links.get_mut(&key), self.bonds.get_mut(&id)) else {
            return;
        };
        link.joined = Some((id, number));
        link.control.couple(&bond.coupling);
        if bond.links.len() <= number {
            bond.links.resize(number + 1, None);
        }
        bond.links[number] = Some(key);
    }

    /// The bundle of a name; none: it is closed, or was never there.
    pub fn bundle(&mut self, id: &BundleId) -> Option<&mut Bundle> {
        self.bonds.get_mut(id).map(|bond| &mut bond.bundle)
    }

    /// Congestion control of a bundle's paths, by their number; none: the path has not
    /// joined.
    pub fn controls(&self, id: &BundleId) -> Vec<Option<CongestionControl>> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let control = |key: &Option<LinkKey>| Some(self.links.get(&(*key)?)?.control.clone());
        bond.links.iter().map(control).collect()
    }

    /// Counters of a bundle.
    pub fn counters(&self, id: &BundleId) -> BundleCounters {
        self.bonds.get(id).map(|bond| bond.bundle.counters()).unwrap_or_default()
    }

    /// Ends a bundle and its connections.
    pub fn close(&mut self, now: Time, id: &BundleId) {
        let at = self.instant(now);
        let Some(bond) = self.bonds.get_mut(id) else { return };
        bond.closing = true;
        for key in bond.links.iter().flatten() {
            if let Some(link) = self.links.get_mut(key) {
                link.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            }
        }
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        if self.events.is_empty() { None } else { Some(self.events.remove(0)) }
    }

    /// A packet came on a path.
    pub fn on_packet(&mut self, now: Time, path: usize, from: SocketAddr, bytes: &[u8]) {
        let at = self.instant(now);
        let mut answer = Vec::new();
        let network = FourTuple::new(from, None);
        let data = BytesMut::from(bytes);
        let event = self.endpoints[path].handle(at, network, None, data, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(link) = self.links.get_mut(&(path, handle.0)) {
                    link.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoints[path].accept(incoming, at, &mut answer, None) {
                    Ok((handle, connection)) => {
                        self.add(path, handle, connection);
                    }
                    Err(error) => {
                        self.events.push(HostEvent::Lost(None, error.cause.to_string()));
                        self.answers
                            .extend(error.response.map(|transmit| (path, transmit, answer)));
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.answers.push((path, transmit, answer)),
            None => {}
        }
    }

    /// When [`work`](Self::work) is due although nothing came; [`Time::MAX`]: never.
    pub fn timer(&mut self, now: Time) -> Time {
        let mut at = Time::MAX;
        for link in self.links.values() {
            at = at.min(link.connection.poll_timeout().map_or(Time::MAX, |at| self.time(at)));
            at = at.min(link.control.timer(now));
        }
        for id in self.bonds.keys().copied().collect::<Vec<_>>() {
            let paths = self.views(now, &id);
            if let Some(bond) = self.bonds.get(&id) {
                at = at.min(bond.bundle.timer(&paths));
            }
        }
        at
    }

    /// Does all that is due, and sends what may leave: `send` is given the path, where to,
    /// the bytes, and how many of them are a packet.
    pub fn work(&mut self, now: Time, mut send: impl FnMut(usize, SocketAddr, &[u8], usize)) {
        for (path, transmit, bytes) in std::mem::take(&mut self.answers) {
            let size = transmit.size.min(bytes.len());
            send(path, transmit.destination, &bytes[..size], size);
        }
        for key in self.links.keys().copied().collect::<Vec<_>>() {
            self.attend(now, key);
        }
        self.forget();
        for id in self.bonds.keys().copied().collect::<Vec<_>>() {
            let paths = self.views(now, &id);
            if let Some(bond) = self.bonds.get_mut(&id) {
                bond.bundle.on_timer(now, &paths);
            }
        }
        loop {
            let mut moved = false;
            for id in self.bonds.keys().copied().collect::<Vec<_>>() {
                moved |= self.pump(now, &id);
            }
            self.transmit(now, &mut send);
            if !moved {
                break;
            }
        }
    }

    /// Timers and events of a connection.
    fn attend(&mut self, now: Time, key: LinkKey) {
        let at = self.instant(now);
        let Some(link) = self.links.get_mut(&key) else { return };
        if link.connection.poll_timeout().is_some_and(|due| due <= at) {
            link.connection.handle_timeout(at);
        }
        link.control.on_timer(now);
        while let Some(event) = link.connection.poll_endpoint_events() {
            let answer: Option<ConnectionEvent> =
                self.endpoints[key.0].handle_event(link.handle, event);
            if let Some(answer) = answer {
                link.connection.handle_event(answer);
            }
        }
        while let Some(event) = self.links.get_mut(&key).and_then(|link| link.connection.poll()) {
            self.on_event(now, key, event);
        }
        self.receive(now, key);
    }

    fn on_event(&mut self, now: Time, key: LinkKey, event: Event) {
        let Some(link) = self.links.get_mut(&key) else { return };
        match event {
            Event::Connected => {
                let rtt = Time::from_nanos(link.rtt().as_nanos() as u64);
                link.control.on_established(now, rtt);
                if let Some((id, number)) = link.joined {
                    introduce(link, id, number);
                    self.up(key);
                }
            }
            Event::ConnectionLost { reason } => {
                link.lost = true;
                let joined = link.joined;
                if let Some((id, number)) = joined
                    && let Some(bond) = self.bonds.get_mut(&id)
                {
                    if link.up {
                        bond.bundle.on_path_down(number);
                    }
                    bond.links[number] = None;
                }
                link.up = false;
                self.events.push(HostEvent::Lost(joined.map(|(id, _)| id), reason.to_string()));
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni } | StreamEvent::Readable { .. }) => {
                self.take_join(key);
            }
            _ => {}
        }
    }

    /// Reads what a client says first: which bundle its connection belongs to.
    fn take_join(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let stream = noq_proto::StreamId::new(noq_proto::Side::Client, Dir::Uni, 0);
        link.connection.streams().accept(Dir::Uni);
        let mut stream = link.connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = chunks.next(256) {
            bytes.extend_from_slice(&chunk.bytes);
        }
        let _ = chunks.finalize();
        let Ok(Some(join)) = Join::read(&bytes) else { return };
        let number: Option<usize> = join.label.parse().ok().filter(|path| *path < PATHS_MAX);
        let Some(number) = number else { return };
        let id = join.bundle;
        if !self.bonds.contains_key(&id) {
            self.insert(id, number + 1);
            self.events.push(HostEvent::Accepted(id));
        }
        self.join(key, id, number);
        self.up(key);
    }

    /// A path of a bundle can be used from now on.
    fn up(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.joined else { return };
        link.up = true;
        if let Some(bond) = self.bonds.get_mut(&id) {
            bond.bundle.on_path_up(number);
            self.events.push(HostEvent::Joined(id, number));
        }
    }

    /// Hands what arrived to the bundle.
    fn receive(&mut self, now: Time, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.joined.filter(|_| link.up) else { return };
        let Some(bond) = self.bonds.get_mut(&id) else { return };
        if let Some(more) = link.take_heard() {
            bond.bundle.on_heard(now, number, more);
        }
        while let Some(bytes) = link.connection.datagrams().recv() {
            if let Err(violation) = bond.bundle.on_datagram(now, number, &bytes) {
                self.events.push(HostEvent::Broken(id, violation));
                let at = self.start + Duration::from_nanos(now.as_nanos());
                link.connection.close(at, VarInt::from_u32(1), bytes::Bytes::new());
                return;
            }
        }
    }

    /// What the scheduler of a bundle is shown of its paths.
    fn views(&mut self, now: Time, id: &BundleId) -> Vec<Path> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let mut paths = Vec::with_capacity(bond.links.len());
        for (number, key) in bond.links.iter().enumerate() {
            let link = key.and_then(|key| self.links.get_mut(&key)).filter(|link| link.up);
            let status = if bond.bundle.is_suspect(number) {
                Status::Suspect
            } else if self.settings.backup.contains(&number) {
                Status::Backup
            } else {
                Status::Active
            };
            let down = Path { status: Status::Down, ..Path::default() };
            paths.push(link.map_or(down, |link| link.view(now, status)));
        }
        paths
    }

    /// Hands what a bundle has to its connections; whether there was anything.
    fn pump(&mut self, now: Time, id: &BundleId) -> bool {
        let mut paths = self.views(now, id);
        let Some(bond) = self.bonds.get_mut(id).filter(|bond| !bond.closing) else { return false };
        let mut max = [DATAGRAM_MIN; PATHS_MAX];
        for (max, key) in max.iter_mut().zip(&bond.links) {
            let link = key.and_then(|key| self.links.get_mut(&key)).filter(|link| link.up);
            *max = link.map_or(*max, |link| link.datagram_max().max(DATAGRAM_MIN));
        }
        let max = &max[..paths.len()];
        let mut moved = false;
        while let Some(number) = bond.bundle.poll_datagram(now, &paths, max, &mut self.datagram) {
            let Some(link) = bond.links[number].and_then(|key| self.links.get_mut(&key)) else {
                break;
            };
            link.send(now, &self.datagram);
            paths[number] = link.view(now, paths[number].status);
            if let Some(held) = bond.bundle.take_penalty()
                && let Some(held) = bond.links[held].and_then(|key| self.links.get_mut(&key))
            {
                held.control.penalise(now);
            }
            moved = true;
        }
        for (key, path) in bond.links.iter().zip(&paths) {
            if path.ready
                && let Some(link) = key.and_then(|key| self.links.get_mut(&key))
            {
                link.note_application_limited();
            }
        }
        moved
    }

    fn transmit(&mut self, now: Time, send: &mut impl FnMut(usize, SocketAddr, &[u8], usize)) {
        let at = self.instant(now);
        for ((path, _), link) in &mut self.links {
            loop {
                self.buffer.clear();
                let transmit = link.connection.poll_transmit(at, SEGMENTS_MAX, &mut self.buffer);
                let Some(transmit) = transmit else { break };
                let packet = transmit.segment_size.unwrap_or(transmit.size);
                send(*path, transmit.destination, &self.buffer[..transmit.size], packet);
            }
        }
    }

    /// Drops connections that are over, and bundles without any.
    fn forget(&mut self) {
        let over: Vec<LinkKey> = self
            .links
            .iter()
            .filter(|(_, link)| link.connection.is_drained())
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            self.links.remove(&key);
            for bond in self.bonds.values_mut() {
                bond.links
                    .iter_mut()
                    .filter(|link| **link == Some(key))
                    .for_each(|link| *link = None);
            }
        }
        self.bonds.retain(|_, bond| !bond.closing || bond.links.iter().any(Option::is_some));
    }
}

/// Says which bundle a connection belongs to, and as which path.
fn introduce(link: &mut Link, bundle: BundleId, number: usize) {
    let join = Join {
        version: VERSION,
        bundle,
        cost: 0,
        backup: false,
        quiet: false,
        label: number.to_string(),
    };
    let mut bytes = Vec::new();
    join.write(&mut bytes);
    if let Some(stream) = link.connection.streams().open(Dir::Uni) {
        // A new stream takes so few bytes at once.
        let _ = link.connection.send_stream(stream).write(&bytes);
        let _ = link.connection.send_stream(stream).finish();
    }
}

fn transport(packet: u16, factory: Arc<Factory>) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(factory)
        .initial_mtu(packet)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .datagram_send_buffer_size(SEND_BUFFER)
        .ack_frequency_config(None::<AckFrequencyConfig>);
    config
}
