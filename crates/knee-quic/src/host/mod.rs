//! An end host: its QUIC endpoints, one per path, and the bundles over them. It does no I/O and
//! reads no clock, so it runs over simulated links as well as over sockets.

mod accept;
mod agenda;
mod decisions;
mod join;
mod paths;
mod pins;
mod settings;

pub use self::decisions::{DecisionQueue, Waiting};
pub use self::paths::PathState;
pub use self::settings::{ConnectionSettings, HostSettings};

use self::accept::is_short_of_another_version;
use self::agenda::Agenda;
use self::decisions::RecordingScheduler;
use self::join::{hear, introduce};
use self::pins::{REVOKED, client_config, server_config};
use self::settings::{IpVersion, duration, transport};
use crate::Addresses;
use crate::congestion::Coupling;
use crate::keys::{CLIENT_CONNECTIONS_MAX, CLIENT_ID, KeyError, KeyPair, PublicKey, SERVER_ID};
use crate::link::{Controls, Factory, Link, Member};
use bytes::BytesMut;
use knee_bundle::{Bundle, BundleSettings, DATAGRAM_MIN, Limits, PATHS_MAX, PathUse, Violation};
use knee_cc::SelectionError;
use knee_multipath::sched::{Path, Status};
use knee_units::Time;
use noq_proto::{
    ClientConfig, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    Event, FourTuple, ServerConfig, StreamEvent, Transmit, TransportConfig, VarInt,
};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Id of a bundle, random, chosen by the client.
pub type BundleId = [u8; 16];

/// Maximum number of packets per send call (UDP segmentation offload).
const SEGMENTS_MAX: NonZeroUsize = NonZeroUsize::new(10).expect("it is not zero");
/// Bytes that are allocated at a time for datagrams to send.
const DATAGRAMS: usize = 1 << 16;
/// Server name in the handshake; servers are identified by their keys.
const SERVER_NAME: &str = "knee";
/// Maximum bytes that QUIC adds to a datagram besides the id of the connection: its header with a
/// packet number of four bytes (RFC 9000, section 17.3.1), the tag, and the frame's type and length.
const AROUND_DATAGRAM: u16 = 1 + 4 + 16 + 1 + 8;
/// Number of a client's connections up to which they may have number spaces, each of which takes up to five of
/// the few ids of its socket.
const SPACES_CONNECTIONS_MAX: usize = 64;
/// Error code of a connection whose whole bundle is over, not only this path.
const BUNDLE_OVER: VarInt = VarInt::from_u32(2);

/// Why a host could not be created.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its keys cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Its controller or scheduler is unknown.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A connection cannot be opened.
    #[error("cannot open a connection: {0}")]
    Connect(#[from] noq_proto::ConnectError),
    /// The endpoint has as many connections as it may have.
    #[error("cannot open a connection: there are {CLIENT_CONNECTIONS_MAX} at a time already")]
    Full,
}

/// Events for the owner of a host.
#[derive(Debug)]
pub enum HostEvent {
    /// A client joined with the first path of a bundle.
    Accepted(BundleId, PublicKey),
    /// A path of a bundle is available.
    Joined(BundleId, usize),
    /// The server refused a path, with the reason.
    Refused(BundleId, usize, String),
    /// A connection ended, with the reason: a path of a bundle, or one that had not joined.
    Lost(Option<(BundleId, usize)>, String),
    /// A client has more connections that have not joined than it needs, so its oldest was closed.
    Hoarded(PublicKey),
    /// A bundle had no path for too long, one end closed it, or the peer violated its rules.
    Ended(BundleId),
    /// The peer violated the rules of the bundle, which ends.
    Broken(BundleId, Violation),
}

/// A bundle with its paths.
struct Bond {
    bundle: Bundle,
    /// By number in the bundle: the host's path, and the connection.
    links: Vec<Option<LinkKey>>,
    /// The paths' status that its scheduler knows.
    known: Vec<Status>,
    coupling: Coupling,
    /// Records the decisions of its scheduler on request.
    decisions: DecisionQueue,
    /// Key of the client that owns it; `None` for a bundle of this end.
    owner: Option<PublicKey>,
    /// Since when it has no path; [`Time::MAX`] if it has one.
    alone_since: Time,
    /// How long it is kept without a path.
    linger: Time,
    closing: bool,
}

type LinkKey = (usize, usize);

/// An end host.
pub struct Host {
    settings: HostSettings,
    start: Instant,
    endpoints: Vec<Endpoint>,
    /// The congestion controls of each path's connections.
    controls: Vec<Controls>,
    /// Settings of each path's connections, but for the transport.
    clients: Vec<ClientConfig>,
    servers: Vec<ServerConfig>,
    /// Keys of accepted peers.
    peers: Vec<PublicKey>,
    links: BTreeMap<LinkKey, Link>,
    bonds: BTreeMap<BundleId, Bond>,
    links_at_work: Agenda<LinkKey>,
    bonds_at_work: Agenda<BundleId>,
    events: VecDeque<HostEvent>,
    /// Whether it accepts no more connections.
    is_leaving: bool,
    /// Packets that endpoints send by themselves.
    answers: Vec<(usize, Transmit, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Datagrams are split off it.
    datagram: BytesMut,
    /// Numbers of datagrams that an ACK acknowledges.
    numbers: Vec<u64>,
}

impl Host {
    /// Makes a host without connections, which accepts only peers with the keys `peers`. Time zero
    /// is `start`. The controllers of each path have streams of the key of `rng`, from its own on;
    /// hosts whose streams differ in bits 40 and above draw different numbers.
    ///
    /// # Errors
    /// The keys cannot be used, or controller or scheduler are unknown.
    pub fn new(
        settings: HostSettings,
        keys: &KeyPair,
        peers: &[PublicKey],
        start: Instant,
        rng: &ChaCha8Rng,
    ) -> Result<Host, HostError> {
        let stream = |path: usize| {
            let mut stream = rng.clone();
            stream.set_stream(rng.get_stream().wrapping_add((path as u64) << 32));
            stream
        };
        let streams: Vec<ChaCha8Rng> = (0..settings.paths.len()).map(stream).collect();
        Host::with_streams(settings, keys, peers, start, &streams)
    }

    /// The same with a random stream for each path: that of its first connection's controller. Each
    /// further connection has the next stream of the same key.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_streams(
        settings: HostSettings,
        keys: &KeyPair,
        peers: &[PublicKey],
        start: Instant,
        streams: &[ChaCha8Rng],
    ) -> Result<Host, HostError> {
        knee_multipath::sched::build(&settings.scheduler)?;
        let mut host = Host {
            start,
            endpoints: Vec::new(),
            controls: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            peers: peers.to_vec(),
            links: BTreeMap::new(),
            bonds: BTreeMap::new(),
            links_at_work: Agenda::new(),
            bonds_at_work: Agenda::new(),
            events: VecDeque::new(),
            is_leaving: false,
            answers: Vec::new(),
            buffer: Vec::new(),
            datagram: BytesMut::with_capacity(DATAGRAMS),
            numbers: Vec::new(),
            settings,
        };
        for (settings, rng) in host.settings.paths.clone().into_iter().zip(streams) {
            let controls = Controls::new(host.settings.congestion.clone(), start, rng.clone())?;
            let is_server = host.settings.is_server;
            let mut config = keys.endpoint(is_server)?;
            config.rng_seed(Some(rng.get_seed()));
            // Fails only for sizes below that of any QUIC packet.
            let _ = config.max_udp_payload_size(settings.largest(IpVersion::V4).max(1200));
            let server = if is_server {
                let server = server_config(keys, peers)?;
                host.servers.push(server.clone());
                Some(Arc::new(server))
            } else {
                host.clients.push(client_config(keys, peers)?);
                None
            };
            host.endpoints.push(Endpoint::new(
                Arc::new(config),
                server,
                settings.packet_max.is_some(),
            ));
            host.controls.push(controls);
        }
        Ok(host)
    }

    fn instant(&self, now: Time) -> Instant {
        self.start + Duration::from_nanos(now.as_nanos())
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.start).as_nanos() as u64)
    }

    /// Opens a bundle over some of the host's paths, each to an address of the peer and with its
    /// cost.
    ///
    /// # Errors
    /// An address cannot be connected to.
    pub fn open(
        &mut self,
        now: Time,
        id: BundleId,
        paths: &[(usize, SocketAddr, u8)],
    ) -> Result<(), HostError> {
        for (number, (path, to, cost)) in paths.iter().enumerate() {
            let path_use = PathUse { cost: *cost, ..PathUse::default() };
            let member = Member { bundle: id, number, label: number.to_string(), path_use };
            self.connect(now, *path, *to, member)?;
        }
        Ok(())
    }

    /// Opens a connection from one of the host's paths, as a path of a bundle. The bundle exists
    /// once the first path has joined.
    ///
    /// # Errors
    /// The address cannot be connected to, or the endpoint has too many connections.
    pub fn connect(
        &mut self,
        now: Time,
        path: usize,
        to: SocketAddr,
        member: Member,
    ) -> Result<(), HostError> {
        if self.endpoints[path].open_connections() >= CLIENT_CONNECTIONS_MAX {
            return Err(HostError::Full);
        }
        if self.settings.eager && !self.bonds.contains_key(&member.bundle) {
            self.insert(member.bundle, None, self.settings.limits, Time::MAX);
        }
        let (factory, transport) = self.transport(path, to);
        let mut config = self.clients[path].clone();
        config.transport_config(transport);
        let at = self.instant(now);
        let (handle, connection) = self.endpoints[path].connect(at, config, to, SERVER_NAME)?;
        let key = self.add(path, handle, connection, &factory, Time::MAX);
        if let Some(link) = self.links.get_mut(&key) {
            link.member = Some(member);
        }
        Ok(())
    }

    /// Closes the connection of one path of a bundle.
    pub fn disconnect(&mut self, now: Time, id: &BundleId, number: usize) {
        let at = self.instant(now);
        let is_it = |link: &Link| {
            link.member.as_ref().is_some_and(|m| m.bundle == *id && m.number == number)
        };
        let keys: Vec<LinkKey> =
            self.links.iter().filter(|(_, link)| is_it(link)).map(|(key, _)| *key).collect();
        for key in keys {
            self.links_at_work.wake(key);
            self.down(now, key);
            if let Some(link) = self.links.get_mut(&key) {
                link.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            }
        }
    }

    /// Adds a bundle, both ends of which have these limits.
    fn insert(&mut self, id: BundleId, owner: Option<PublicKey>, limits: Limits, linger: Time) {
        let HostSettings { is_server, buffer, reinjection, lateness, .. } = self.settings;
        let largest = |path: &ConnectionSettings| path.largest(IpVersion::V4);
        let packet = self.settings.paths.iter().map(largest).max().unwrap_or_default();
        // That of the other end.
        let peers_id = if is_server { CLIENT_ID } else { SERVER_ID };
        let datagram = packet.saturating_sub(AROUND_DATAGRAM + peers_id as u16).max(DATAGRAM_MIN);
        let settings =
            BundleSettings { is_server, datagram, limits, buffer, reinjection, lateness };
        let decisions = DecisionQueue::default();
        let scheduler = RecordingScheduler::new(&self.settings.scheduler, decisions.clone());
        let bond = Bond {
            bundle: Bundle::new(settings, limits, Box::new(scheduler)),
            decisions,
            links: Vec::new(),
            known: Vec::new(),
            coupling: Coupling::default(),
            owner,
            alone_since: Time::MAX,
            linger,
            closing: false,
        };
        self.bonds.insert(id, bond);
        self.bonds_at_work.wake(id);
    }

    /// Returns the settings of a new connection of a path to a peer, and its congestion control's
    /// factory.
    fn transport(&mut self, path: usize, peer: SocketAddr) -> (Arc<Factory>, Arc<TransportConfig>) {
        let factory = self.controls[path].next();
        let HostSettings { paths, is_server, .. } = &self.settings;
        let config = transport(paths[path], IpVersion::of(peer), *is_server, factory.clone());
        (factory, Arc::new(config))
    }

    #[expect(clippy::expect_used, reason = "the library builds one for each connection")]
    fn add(
        &mut self,
        path: usize,
        handle: ConnectionHandle,
        connection: noq_proto::Connection,
        factory: &Factory,
        join_by: Time,
    ) -> LinkKey {
        let control = factory.control().expect("a connection has a controller").clone();
        let key = (path, handle.0);
        self.links.insert(key, Link::new(connection, handle, control, join_by));
        self.links_at_work.wake(key);
        key
    }

    /// Makes a connection a path of its bundle, in place of an earlier one.
    fn up(&mut self, now: Time, key: LinkKey) {
        let Some((id, number)) = self.links.get(&key).and_then(Link::place) else { return };
        self.bonds_at_work.wake(id);
        let older = self.bonds.get(&id).and_then(|bond| bond.links.get(number).copied().flatten());
        if let Some(older) = older.filter(|older| *older != key) {
            self.down(now, older);
            self.links_at_work.wake(older);
            let at = self.instant(now);
            if let Some(link) = self.links.get_mut(&older) {
                link.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            }
        }
        let (Some(link), Some(bond)) = (self.links.get_mut(&key), self.bonds.get_mut(&id)) else {
            return;
        };
        if link.up {
            return;
        }
        link.up = true;
        link.control.couple(&bond.coupling, number);
        if bond.links.len() <= number {
            bond.links.resize(number + 1, None);
        }
        bond.links[number] = Some(key);
        bond.alone_since = Time::MAX;
        let said = link.member.as_ref().map(|member| member.path_use).unwrap_or_default();
        let (own, peer) = match self.settings.is_server {
            false => (said, PathUse::default()),
            true => (PathUse::default(), said),
        };
        bond.bundle.on_use(number, own, peer);
        bond.bundle.on_path_up(number);
        self.events.push_back(HostEvent::Joined(id, number));
    }

    /// Removes a connection as a path of its bundle.
    fn down(&mut self, now: Time, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.place() else { return };
        let Some(bond) = self.bonds.get_mut(&id).filter(|_| link.up) else { return };
        link.up = false;
        self.bonds_at_work.wake(id);
        bond.bundle.on_path_down(number);
        bond.coupling.leave(number);
        bond.links[number] = None;
        if bond.links.iter().all(Option::is_none) {
            bond.alone_since = now;
        }
    }

    /// Returns a bundle, or `None` if it is closed or unknown.
    pub fn bundle(&mut self, id: &BundleId) -> Option<&mut Bundle> {
        let bond = self.bonds.get_mut(id)?;
        // Whoever asks for it may change it.
        self.bonds_at_work.wake(*id);
        Some(&mut bond.bundle)
    }

    /// Returns the ids of all bundles.
    pub fn bundles(&self) -> impl Iterator<Item = &BundleId> {
        self.bonds.keys()
    }

    /// Closes a bundle and its connections, also those that have not joined yet: they would begin it
    /// anew.
    pub fn close(&mut self, now: Time, id: &BundleId) {
        let at = self.instant(now);
        self.wake_all_of(id);
        if let Some(bond) = self.bonds.get_mut(id) {
            bond.closing = true;
        }
        for link in self.links.values_mut() {
            if link.place().is_some_and(|(of, _)| of == *id) && !link.connection.is_closed() {
                link.connection.close(at, BUNDLE_OVER, bytes::Bytes::new());
            }
        }
    }

    /// Drops a bundle that the peer no longer knows or whose rules it violated, and its connections.
    fn end(&mut self, now: Time, id: &BundleId) {
        let at = self.instant(now);
        self.wake_all_of(id);
        for link in self.links.values_mut() {
            if link.place().is_some_and(|(of, _)| of == *id) {
                link.up = false;
                link.connection.close(at, BUNDLE_OVER, bytes::Bytes::new());
            }
        }
        if self.bonds.remove(id).is_some() {
            self.events.push_back(HostEvent::Ended(*id));
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// Processes a packet that came on a path.
    pub fn on_packet(&mut self, now: Time, path: usize, ends: Addresses, bytes: &[u8]) {
        let at = self.instant(now);
        if self.settings.is_server && is_short_of_another_version(bytes) {
            return;
        }
        let mut answer = Vec::new();
        // A client has a socket for each link, so the local address adds nothing.
        let local = ends.local.filter(|_| self.settings.is_server);
        let network = FourTuple::new(ends.peer, local);
        let data = BytesMut::from(bytes);
        let event = self.endpoints[path].handle(at, network, None, data, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(link) = self.links.get_mut(&(path, handle.0)) {
                    link.received += bytes.len() as u64;
                    link.connection.handle_event(event);
                }
                self.links_at_work.wake((path, handle.0));
                // Now, so that the next packet reuses this one's memory while it is in the cache.
                self.receive(now, (path, handle.0));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.take_connection(now, path, incoming, answer);
            }
            Some(DatagramEvent::Response(transmit)) => self.answers.push((path, transmit, answer)),
            None => {}
        }
    }

    /// Processes timers and events of a connection.
    fn process_connection(&mut self, now: Time, key: LinkKey) {
        let at = self.instant(now);
        if self.links.get(&key).is_some_and(|link| link.deadline() <= now) {
            return self.dismiss(now, key, "it did not join in time");
        }
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
            // Datagrams were processed when their packet came.
            if !matches!(event, Event::DatagramReceived) {
                self.on_event(now, key, event);
            }
        }
        self.hear(now, key);
        self.receive(now, key);
    }

    /// Tells the bundle that packets of a path were acknowledged, if any were.
    fn hear(&mut self, now: Time, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.place().filter(|_| link.up) else { return };
        let Some(bond) = self.bonds.get_mut(&id) else { return };
        if let Some(more) = link.take_heard() {
            bond.bundle.on_heard(now, number, more);
        }
    }

    fn on_event(&mut self, now: Time, key: LinkKey, event: Event) {
        let Some(link) = self.links.get_mut(&key) else { return };
        match event {
            // What came before this end closed it makes it no path any more.
            Event::Connected | Event::Stream(_) if link.connection.is_closed() => {}
            Event::Connected => {
                let rtt = Time::from_nanos(link.rtt().as_nanos() as u64);
                link.control.on_established(now, rtt);
                link.peer = PublicKey::of_peer(&link.connection);
                if self.settings.is_server {
                    // Its handshake may have begun before its key was revoked.
                    if link.peer.is_none_or(|peer| !self.peers.contains(&peer)) {
                        return self.dismiss(now, key, REVOKED);
                    }
                    if let Some(peer) = link.peer {
                        self.bound_unjoined(now, peer);
                    }
                } else {
                    let resumes = !self.settings.eager
                        && link.place().is_some_and(|(id, _)| self.bonds.contains_key(&id));
                    introduce(link, resumes);
                    if self.settings.eager {
                        self.up(now, key);
                    }
                }
            }
            Event::ConnectionLost { reason } => {
                let place = link.place();
                let is_over = matches!(
                    &reason,
                    ConnectionError::ApplicationClosed(close) if close.error_code == BUNDLE_OVER
                );
                self.down(now, key);
                // An eager client's bundle is its application's, which closes it.
                let ends = is_over && (self.settings.is_server || !self.settings.eager);
                if let Some((id, _)) = place.filter(|_| ends) {
                    self.end(now, &id);
                }
                self.events.push_back(HostEvent::Lost(place, reason.to_string()));
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi } | StreamEvent::Readable { .. }) => {
                let Some(said) = hear(link) else { return };
                if self.settings.is_server {
                    self.take_join(now, key, &said);
                } else {
                    self.take_answer(now, key, &said);
                }
            }
            _ => {}
        }
    }

    /// Passes received datagrams to the bundle.
    fn receive(&mut self, now: Time, key: LinkKey) {
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.place().filter(|_| link.up) else {
            return link.keep_early(self.settings.early_max());
        };
        let Some(bond) = self.bonds.get_mut(&id) else { return };
        while let Some(bytes) = link.next_datagram() {
            if let Err(violation) = bond.bundle.on_datagram(now, number, &bytes) {
                self.events.push_back(HostEvent::Broken(id, violation));
                // The library reports no loss of a connection that this end closes, so nothing else
                // would end the bundle.
                return self.end(now, &id);
            }
        }
        while let Some(number) = bond.bundle.take_arrived(&mut self.numbers) {
            let key = bond.links.get(number).copied().flatten();
            if let Some(link) = key.and_then(|key| self.links.get(&key)) {
                link.control.on_datagrams_arrived(now, &self.numbers);
            }
        }
    }

    /// Passes datagrams of a bundle to its connections. Returns whether there were any.
    fn pump(&mut self, now: Time, id: &BundleId) -> bool {
        let mut paths = self.views(now, id);
        let Some(bond) = self.bonds.get_mut(id).filter(|bond| !bond.closing) else { return false };
        if !paths.iter().map(|path| path.status).eq(bond.known.iter().copied()) {
            bond.known = paths.iter().map(|path| path.status).collect();
            bond.bundle.on_paths_changed(&paths);
        }
        let (mut max, mut around) = ([DATAGRAM_MIN; PATHS_MAX], [0; PATHS_MAX]);
        for (number, key) in bond.links.iter().enumerate() {
            let link = key.and_then(|key| self.links.get_mut(&key)).filter(|link| link.up);
            let (Some(key), Some(link)) = (key, link) else { continue };
            if bond.bundle.reorders_widely(number) {
                link.control.follow_datagrams();
                let count = self.endpoints[key.0].open_connections();
                if self.settings.is_server || count <= SPACES_CONNECTIONS_MAX {
                    link.add_number_spaces(
                        now,
                        self.start + duration(now),
                        bond.bundle.behind(number),
                    );
                }
            }
            max[number] = link.datagram_max().max(DATAGRAM_MIN);
            around[number] = link.around();
        }
        let max = &max[..paths.len()];
        let mut moved = false;
        while let Some(number) = bond.bundle.poll_datagram(now, &paths, max, &mut self.datagram) {
            let Some(link) = bond.links[number].and_then(|key| self.links.get_mut(&key)) else {
                break;
            };
            let datagram = self.datagram.split().freeze();
            let asked = bond.bundle.asked();
            link.send(now, datagram, around[number], asked, &mut paths[number]);
            if let Some(held) = bond.bundle.take_penalty()
                && let Some(link) = bond.links[held].and_then(|key| self.links.get_mut(&key))
            {
                link.control.penalise(now);
                paths[held] = link.view(now, paths[held].status);
            }
            moved = true;
        }
        if !paths.iter().any(|path| path.ready) {
            return moved;
        }
        // As in TCP, a full receive window is no limit by the application, or a start-up with losses
        // would not end; of several paths, each has nothing to send then, as in Multipath TCP.
        let is_used = |(number, path): &(usize, &Path)| {
            path.status == Status::Active || bond.bundle.overflows(*number)
        };
        let is_alone = paths.iter().enumerate().filter(is_used).count() == 1;
        let waits_for_credit = is_alone && bond.bundle.waits_for_credit();
        for (key, path) in bond.links.iter().zip(&paths) {
            if path.ready
                && !waits_for_credit
                && let Some(link) = key.and_then(|key| self.links.get_mut(&key))
            {
                link.note_application_limited();
            }
        }
        moved
    }
}
