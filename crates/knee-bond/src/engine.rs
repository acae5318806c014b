//! Runs a host of `knee-quic` over sockets: one task for the host and one for each socket, all on
//! one thread. Users of streams borrow the host only for the length of a call, never over an await.

use crate::flows::FIRST;
use crate::stream::BundleStream;
use bytes::Bytes;
use knee_bundle::{Bundle, Class, Event, StreamId};
use knee_quic::{Addresses, BundleId, Host, HostEvent, Room, Socket};
use knee_units::Time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

/// Batches of packets that a socket receives before it yields to other tasks.
const BATCHES: usize = 8;
/// Messages of a flow that may wait for the reader; more are lost.
const MESSAGES: usize = 256;
/// Datagrams of all flows of a bundle that may wait for the reader; more are lost.
const DATAGRAMS: usize = 1024;
/// Longest sleep between two rounds of work.
const IDLE: Duration = Duration::from_secs(60);

/// Events for the owner of an engine.
#[derive(Debug)]
pub enum EngineEvent {
    /// An event of the host's connections.
    Host(HostEvent),
    /// The peer opened a stream; [`Engine::accept`] takes it.
    Opened(BundleId, StreamId),
    /// The peer accepts no more streams of a bundle.
    GoAway(BundleId),
    /// So many streams of a bundle hold so many bytes that nobody reads here, and leave little for
    /// others.
    Crowded(BundleId, usize, u64),
    /// The peer ended a bundle.
    Closed(BundleId, String),
}

/// State of a stream, for the task that waits on it.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub readable: Notify,
    pub writable: Notify,
    /// The peer reset the stream.
    pub reset: Cell<bool>,
    /// The peer no longer reads the stream.
    pub stopped: Cell<bool>,
    /// The stream's bundle is gone.
    pub gone: Cell<bool>,
}

struct Attached {
    socket: Rc<Socket>,
    reader: JoinHandle<()>,
    /// Last error on sending a packet.
    problem: Option<String>,
}

struct State {
    host: Host,
    sockets: Vec<Option<Attached>>,
    /// Bytes of packets that each endpoint carried in both directions.
    carried: Vec<u64>,
    streams: BTreeMap<(BundleId, StreamId), Rc<Signals>>,
    flows: BTreeMap<(BundleId, u64), mpsc::Sender<Bytes>>,
    datagrams: BTreeMap<BundleId, mpsc::Sender<(u64, Bytes)>>,
    events: mpsc::UnboundedSender<EngineEvent>,
}

/// A running host.
pub struct Engine {
    start: Instant,
    /// Wakes the task of the host.
    kick: Notify,
    state: RefCell<State>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes an engine for a host whose time zero is `start`, and the receiver of its events.
    pub fn new(host: Host, start: Instant) -> (Rc<Engine>, mpsc::UnboundedReceiver<EngineEvent>) {
        let (events, hears) = mpsc::unbounded_channel();
        let (streams, flows, datagrams) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (sockets, carried) = (Vec::new(), Vec::new());
        let state = State { host, sockets, carried, streams, flows, datagrams, events };
        let engine = Engine { start, kick: Notify::new(), state: RefCell::new(state) };
        (Rc::new(engine), hears)
    }

    /// Returns the time since `start`.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Calls `work` with the host, then lets the engine send what results.
    pub fn with<T>(&self, work: impl FnOnce(&mut Host, Time) -> T) -> T {
        let now = self.now();
        let result = work(&mut self.state.borrow_mut().host, now);
        self.kick.notify_one();
        result
    }

    /// Attaches a socket to an endpoint of the host, in place of an earlier one.
    ///
    /// # Errors
    /// Error of the system.
    pub fn attach(self: &Rc<Engine>, endpoint: usize, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let readiness = tokio::net::UdpSocket::from_std(socket.try_clone()?)?;
        let socket = Rc::new(Socket::new(socket)?);
        let reader = spawn_local(self.clone().read_socket(endpoint, socket.clone(), readiness));
        self.detach(endpoint);
        let State { sockets, carried, .. } = &mut *self.state.borrow_mut();
        if sockets.len() <= endpoint {
            sockets.resize_with(endpoint + 1, || None);
            carried.resize(endpoint + 1, 0);
        }
        sockets[endpoint] = Some(Attached { socket, reader, problem: None });
        Ok(())
    }

    /// Detaches the socket of an endpoint.
    pub fn detach(&self, endpoint: usize) {
        let mut state = self.state.borrow_mut();
        if let Some(attached) = state.sockets.get_mut(endpoint).and_then(Option::take) {
            attached.reader.abort();
        }
    }

    /// Returns the bytes that an endpoint sent and received, including IP and UDP headers.
    pub fn carried(&self, endpoint: usize) -> u64 {
        self.state.borrow().carried.get(endpoint).copied().unwrap_or_default()
    }

    /// Returns why packets of an endpoint could not be sent, if so, and clears the error.
    pub fn take_problem(&self, endpoint: usize) -> Option<String> {
        self.state.borrow_mut().sockets.get_mut(endpoint)?.as_mut()?.problem.take()
    }

    async fn read_socket(
        self: Rc<Engine>,
        endpoint: usize,
        socket: Rc<Socket>,
        readiness: tokio::net::UdpSocket,
    ) {
        let mut room = Room::default();
        while readiness.readable().await.is_ok() {
            let now = self.now();
            // The call consumes a pending error, such as one caused by an ICMP message; the next
            // call proceeds.
            let _ = readiness.try_io(Interest::READABLE, || {
                let State { host, carried, .. } = &mut *self.state.borrow_mut();
                for _ in 0..BATCHES {
                    let take = |from: Addresses, bytes: &[u8]| {
                        carried[endpoint] += on_the_wire(&from, bytes.len(), bytes.len());
                        host.on_packet(now, endpoint, from, bytes);
                    };
                    if !socket.receive(&mut room, take)? {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
                Ok(())
            });
            self.kick.notify_one();
            tokio::task::yield_now().await;
        }
    }

    /// Runs the host; never returns.
    pub async fn run(self: Rc<Engine>) {
        loop {
            let due = self.work();
            let now = self.now();
            if due <= now {
                tokio::task::yield_now().await;
                continue;
            }
            let wait = Duration::from_nanos((due - now).as_nanos()).min(IDLE);
            // Tokio's timers tick in milliseconds: what became due meanwhile leaves together.
            let _ = timeout(wait, self.kick.notified()).await;
        }
    }

    /// Does what is due, reports events, and returns the time of the next call.
    fn work(&self) -> Time {
        let now = self.now();
        let mut state = self.state.borrow_mut();
        let State { host, sockets, carried, .. } = &mut *state;
        host.work(now, |endpoint, to, bytes, packet| {
            let Some(attached) = sockets.get_mut(endpoint).and_then(Option::as_mut) else { return };
            carried[endpoint] += on_the_wire(&to, bytes.len(), packet);
            if let Err(error) = attached.socket.send(to, bytes, packet) {
                // EMSGSIZE: an MTU probe larger than the interface takes.
                if error.raw_os_error() != Some(libc::EMSGSIZE) {
                    attached.problem = Some(error.to_string());
                }
            }
        });
        while let Some(event) = state.host.poll_event() {
            if let HostEvent::Ended(id) | HostEvent::Broken(id, _) = &event {
                state.end(id);
            }
            // Fails if the receiver is gone, because the engine is about to end.
            let _ = state.events.send(EngineEvent::Host(event));
        }
        for (id, event) in state.host.take_bundle_events() {
            state.on_event(id, event);
        }
        state.host.timer(now)
    }

    /// Opens a stream, or returns `None` if the peer allows no more now or the bundle is gone.
    pub fn open(self: &Rc<Engine>, id: BundleId, class: Class) -> Option<BundleStream> {
        let mut state = self.state.borrow_mut();
        let stream = state.host.bundle(&id)?.open(class)?;
        let signals = Rc::<Signals>::default();
        state.streams.insert((id, stream), signals.clone());
        Some(BundleStream::new(self.clone(), id, stream, signals))
    }

    /// Takes a stream that the peer opened, or returns `None` if its bundle is gone.
    pub fn accept(self: &Rc<Engine>, id: BundleId, stream: StreamId) -> Option<BundleStream> {
        let signals = self.state.borrow().streams.get(&(id, stream))?.clone();
        Some(BundleStream::new(self.clone(), id, stream, signals))
    }

    /// Calls `work` with a bundle, then lets the engine send; `None` if the bundle is gone.
    pub(crate) fn with_bundle<T>(
        &self,
        id: &BundleId,
        work: impl FnOnce(&mut Bundle) -> T,
    ) -> Option<T> {
        self.with(|host, _| host.bundle(id).map(work))
    }

    /// Ends a bundle whose peer is gone, and tells the owner of the engine.
    pub(crate) fn close(&self, id: &BundleId, reason: &str) {
        self.with(|host, now| host.close(now, id));
        let mut state = self.state.borrow_mut();
        state.end(id);
        let _ = state.events.send(EngineEvent::Closed(*id, reason.to_owned()));
    }

    /// Forgets a stream that its user is done with.
    pub(crate) fn forget(&self, id: BundleId, stream: StreamId) {
        self.state.borrow_mut().streams.remove(&(id, stream));
    }

    /// Subscribes to the messages of a flow, until the receiver is dropped.
    pub fn messages(&self, id: BundleId, flow: u64) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(MESSAGES);
        let flows = &mut self.state.borrow_mut().flows;
        flows.retain(|_, sender| !sender.is_closed());
        flows.insert((id, flow), sender);
        receiver
    }

    /// Subscribes to the messages of all [flows](crate::flows) of a bundle, until the receiver is
    /// dropped.
    pub(crate) fn datagrams(&self, id: BundleId) -> mpsc::Receiver<(u64, Bytes)> {
        let (sender, receiver) = mpsc::channel(DATAGRAMS);
        self.state.borrow_mut().datagrams.insert(id, sender);
        receiver
    }

    /// Sends the messages of a datagram of a flow; `make` gets the largest message that the links
    /// carry.
    pub(crate) fn send_datagram(
        &self,
        id: &BundleId,
        flow: u64,
        duplicate: bool,
        make: impl FnOnce(usize) -> Vec<Bytes>,
    ) {
        self.with(|host, _| {
            let most = host.message_max(id);
            if let Some(bundle) = host.bundle(id) {
                make(most).into_iter().for_each(|message| bundle.send(flow, message, duplicate));
            }
        });
    }
}

/// Returns the size of `bytes` sent in packets of `packet` bytes each, with IP and UDP headers.
fn on_the_wire(ends: &Addresses, bytes: usize, packet: usize) -> u64 {
    let headers = if ends.peer.ip().to_canonical().is_ipv4() { 28 } else { 48 };
    (bytes + bytes.div_ceil(packet.max(1)) * headers) as u64
}

impl State {
    /// Forgets a bundle that is gone, with its streams and flows.
    fn end(&mut self, id: &BundleId) {
        for ((of, _), signals) in &self.streams {
            if of == id {
                signals.gone.set(true);
                signals.readable.notify_one();
                signals.writable.notify_one();
            }
        }
        self.streams.retain(|(of, _), _| of != id);
        self.flows.retain(|(of, _), _| of != id);
        self.datagrams.remove(id);
    }

    fn on_event(&mut self, id: BundleId, event: Event) {
        let signals = |stream: StreamId| self.streams.get(&(id, stream));
        match event {
            Event::Opened(stream) => {
                self.streams.insert((id, stream), Rc::default());
                let _ = self.events.send(EngineEvent::Opened(id, stream));
            }
            Event::Readable(stream) => {
                if let Some(signals) = signals(stream) {
                    signals.readable.notify_one();
                }
            }
            Event::Writable(stream) => {
                if let Some(signals) = signals(stream) {
                    signals.writable.notify_one();
                }
            }
            Event::Reset { stream, .. } => {
                if let Some(signals) = signals(stream) {
                    signals.reset.set(true);
                    signals.readable.notify_one();
                }
            }
            Event::Stopped { stream, .. } => {
                if let Some(signals) = signals(stream) {
                    signals.stopped.set(true);
                    signals.writable.notify_one();
                }
            }
            Event::Message { flow: flow @ FIRST.., bytes } => {
                if let Some(datagrams) = self.datagrams.get(&id) {
                    let _ = datagrams.try_send((flow, bytes));
                }
            }
            Event::Message { flow, bytes } => {
                if let Some(flow) = self.flows.get(&(id, flow)) {
                    // The reader is slow: drop the newest, as a full queue does.
                    let _ = flow.try_send(bytes);
                }
            }
            Event::Crowded { streams, bytes } => {
                let _ = self.events.send(EngineEvent::Crowded(id, streams, bytes));
            }
            Event::GoAway => {
                let _ = self.events.send(EngineEvent::GoAway(id));
            }
            Event::Closed { reason, .. } => {
                self.end(&id);
                let _ = self.events.send(EngineEvent::Closed(id, reason));
            }
        }
    }
}
