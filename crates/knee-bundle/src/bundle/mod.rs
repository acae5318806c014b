//! The bundle: streams and messages over several paths under a scheduler.
//!
//! What leaves first: acknowledgements, what the peer must be told, probes, messages,
//! then pieces of streams in the order of [`Sending`]: what a path lost or holds while
//! it is silent, what the scheduler chooses, reinjection.
//!
//! A path has its congestion controller below, in the connection that carries its
//! datagrams; the bundle sees of it what a [`knee_sched::Path`] says. Numbers of a path
//! go on when it comes back, so that an acknowledgement of its former life means nothing
//! else now.

mod receive;
mod send;

use crate::control::{Control, Controls};
use crate::frame::Malformed;
use crate::message::Messages;
use crate::path::{ACK_DELAY, Arrivals, Fate, NeverSent, Outstanding, Rtt};
use crate::spans::Spans;
use crate::stream::{Class, Piece, ReceiveStream, SendStream, StreamId, Streams};
use bytes::Bytes;
use knee_multipath::{MultipathCounters, Release, Sending, SilenceRule};
use knee_sched::{PATHS_MAX, Path, Scheduler};
use knee_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a datagram that every path must carry: an ACK and the longest frame beside
/// it. QUIC's datagrams have about twice as many (RFC 9000, section 14).
pub const DATAGRAM_MIN: u16 = 600;
/// Bytes that a stream may keep whatever the others do.
const SHARE: u64 = 1 << 16;

/// What an end takes of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all streams that were sent and that nobody has read.
    pub window: u64,
    /// The same of one stream.
    pub stream_window: u64,
    /// Streams that the other may have open.
    pub streams: u64,
}

/// What a bundle is set to. Both ends have told each other their limits (JOINED).
#[derive(Clone, Debug)]
pub struct BundleSettings {
    /// This end is the server.
    pub is_server: bool,
    /// Bytes of the largest datagram that a path may come to carry.
    pub datagram: u16,
    /// What this end takes of the peer.
    pub limits: Limits,
    /// Bytes that a stream keeps which are written and not acknowledged.
    pub buffer: u64,
    /// A fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// How late this host's clock and timers may be.
    pub lateness: Time,
}

/// What the application is to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream.
    Opened(StreamId),
    /// A stream has something to read, or its end. It comes again only after all that was
    /// there has been read.
    Readable(StreamId),
    /// A stream takes bytes again.
    Writable(StreamId),
    /// The peer ended a stream at once.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        code: u64,
    },
    /// The peer wants no more of a stream: it is reset.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// Why.
        code: u64,
    },
    /// A message of a flow arrived.
    Message {
        /// The flow.
        flow: u64,
        /// Content.
        bytes: Bytes,
    },
    /// The peer takes no more streams.
    GoAway,
    /// The peer ended the bundle.
    Closed {
        /// Why.
        code: u64,
        /// The same for a person.
        reason: String,
    },
}

/// The peer broke the rules: its connections are to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A datagram cannot be read.
    Malformed(Malformed),
    /// It acknowledges what was never sent.
    NeverSent,
    /// It sent beyond its credit, or beyond the end of a stream.
    Beyond(StreamId),
    /// It opened more streams than it may, or one in this end's name.
    Stream(u64),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::Malformed(malformed) => malformed.fmt(f),
            Violation::NeverSent => NeverSent.fmt(f),
            Violation::Beyond(id) => {
                write!(f, "the peer sends beyond the credit or the end of stream {}", id.value())
            }
            Violation::Stream(id) => write!(f, "the peer may not open stream {id}"),
        }
    }
}

impl std::error::Error for Violation {}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that came, each counted once.
    pub received: u64,
    /// Datagrams that count as lost.
    pub lost: u64,
    /// Of these, those that turned out to be late.
    pub late: u64,
    /// Datagrams with acknowledgements alone.
    pub acknowledgements: u64,
    /// Probes of paths that were not heard.
    pub probes: u64,
    /// Messages that were not sent.
    pub messages_dropped: u64,
}

/// What a datagram carried that asks for an acknowledgement.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// A chunk of the connection, whole.
    Chunk(u64, Piece),
    /// A part of one, since the path carries smaller datagrams than others.
    Part(u64, Piece),
    /// The number of what [`Controls`] told.
    Control(u64),
    /// A probe that tells nothing.
    Probe,
    /// A message.
    Message,
}

/// What an end thinks of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathUse {
    /// Nothing is to be sent without need.
    pub quiet: bool,
    /// It is used when no cheaper one works.
    pub cost: u8,
}

/// One path.
#[derive(Clone, Debug, Default)]
struct PathState {
    is_up: bool,
    /// A PING is to leave: it came up just now.
    greets: bool,
    /// A PING came: it is answered on this path.
    answers: bool,
    sent: Outstanding<Content>,
    rtt: Rtt,
    arrivals: Arrivals,
    own_use: PathUse,
    peer_use: PathUse,
}

impl PathState {
    fn both(&self) -> PathUse {
        let (own, peer) = (self.own_use, self.peer_use);
        PathUse { quiet: own.quiet || peer.quiet, cost: own.cost.max(peer.cost) }
    }
}

/// Streams and messages over several paths.
pub struct Bundle {
    settings: BundleSettings,
    paths: [PathState; PATHS_MAX],
    sending: Sending<Streams>,
    receiving: BTreeMap<StreamId, ReceiveStream>,
    controls: Controls,
    messages: Messages,
    /// Parts of chunks that wait for their path, and what these chunks are.
    parts: VecDeque<(usize, u64, Piece)>,
    cut_up: BTreeMap<u64, Piece>,
    /// Streams that this end has opened, and may have.
    opened: u64,
    openable: u64,
    /// Credit of the peer's streams at their start.
    peer_stream_window: u64,
    /// Numbers of the peer's streams so far, and how many of them are over.
    accepted: Spans,
    accepted_done: u64,
    granted_streams: u64,
    /// Bytes read or thrown away of all streams, highest bytes, and what was granted.
    consumed: u64,
    highest: u64,
    granted: u64,
    /// Bytes that all streams keep which are written and not acknowledged, but for a share
    /// of each: as many as the peer lets through.
    buffer_of_all: u64,
    /// Streams whose writer was refused.
    refused: BTreeSet<StreamId>,
    events: VecDeque<Event>,
    goes_away: Option<u64>,
    peer_goes_away: bool,
    closing: Option<(u64, String)>,
    is_closed: bool,
    /// Room for what an ACK shows; empty in between.
    fates: Vec<(Fate, Content)>,
    counters: BundleCounters,
}

impl Bundle {
    /// A bundle without a path. `peer` is what the peer takes, as it has told.
    pub fn new(settings: BundleSettings, peer: Limits, scheduler: Box<dyn Scheduler>) -> Bundle {
        let mut streams = Streams::default();
        streams.set_datagram(settings.datagram);
        let sending = knee_multipath::Settings {
            mss: settings.datagram,
            window: peer.window,
            reinjection: settings.reinjection,
            release: Release::OnDelivery,
            silence: SilenceRule {
                ack_delay: ACK_DELAY,
                floor: settings.lateness,
                timeouts_percent: 150,
            },
        };
        Bundle {
            paths: Default::default(),
            sending: Sending::new(sending, streams, scheduler),
            receiving: BTreeMap::new(),
            controls: Controls::default(),
            messages: Messages::default(),
            parts: VecDeque::new(),
            cut_up: BTreeMap::new(),
            opened: 0,
            openable: peer.streams,
            peer_stream_window: peer.stream_window,
            accepted: Spans::default(),
            accepted_done: 0,
            granted_streams: settings.limits.streams,
            consumed: 0,
            highest: 0,
            granted: settings.limits.window,
            buffer_of_all: settings.buffer.max(peer.window),
            refused: BTreeSet::new(),
            events: VecDeque::new(),
            goes_away: None,
            peer_goes_away: false,
            closing: None,
            is_closed: false,
            fates: Vec::new(),
            counters: BundleCounters::default(),
            settings,
        }
    }

    // Paths.

    /// A path can be used from now on.
    pub fn on_path_up(&mut self, path: usize) {
        let state = &mut self.paths[path];
        (state.is_up, state.greets) = (true, true);
        state.rtt = Rtt::default();
        self.sending.on_path_up(path);
    }

    /// A path is gone, with all that it held.
    pub fn on_path_down(&mut self, path: usize) {
        let state = &mut self.paths[path];
        state.is_up = false;
        state.arrivals.forget_due();
        let fates = &mut self.fates;
        state.sent.abandon(|content| fates.push((Fate::Lost, content)));
        self.parts.retain(|(of, ..)| *of != path);
        self.on_fates(path);
        self.sending.on_path_down(path);
    }

    /// The connection below heard the path, by whatever packet; more that was sent may
    /// still wait for an answer.
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        self.sending.on_heard(now, path, more_outstanding);
    }

    /// The set of paths, or the status of one, is not what it was.
    pub fn on_paths_changed(&mut self, paths: &[Path]) {
        self.sending.on_paths_changed(paths);
    }

    /// What this end thinks of a path; the peer is told.
    pub fn set_use(&mut self, path: usize, path_use: PathUse) {
        self.paths[path].own_use = path_use;
        self.controls.tell(Control::Status(path));
    }

    /// What both ends think of a path as they told each other when it was made, before
    /// this layer had it.
    pub fn on_use(&mut self, path: usize, own: PathUse, peer: PathUse) {
        (self.paths[path].own_use, self.paths[path].peer_use) = (own, peer);
    }

    /// What this end thinks of a path.
    pub fn own_use(&self, path: usize) -> PathUse {
        self.paths[path].own_use
    }

    /// What a path is to both ends together: quiet if one of them wants it, and as dear
    /// as the dearer says.
    pub fn path_use(&self, path: usize) -> PathUse {
        self.paths[path].both()
    }

    /// The path was silent for too long and has not answered since.
    pub fn is_suspect(&self, path: usize) -> bool {
        self.sending.is_suspect(path)
    }

    /// The RTT of a path as this layer measures it.
    pub fn rtt(&self, path: usize) -> &Rtt {
        &self.paths[path].rtt
    }

    /// A path whose window is to be halved now because it holds others up.
    pub fn take_penalty(&mut self) -> Option<usize> {
        self.sending.take_penalty()
    }

    // Streams.

    /// Opens a stream; none: the peer takes no more now.
    pub fn open(&mut self, class: Class) -> Option<StreamId> {
        if self.peer_goes_away || self.closing.is_some() || self.opened >= self.openable {
            return None;
        }
        let id = StreamId::new(self.opened, class, self.settings.is_server);
        self.opened += 1;
        self.insert(id);
        Some(id)
    }

    fn insert(&mut self, id: StreamId) {
        self.sending.source_mut().insert(id, SendStream::new(self.peer_stream_window));
        self.receiving.insert(id, ReceiveStream::new(self.settings.limits.stream_window));
    }

    /// Takes bytes of a stream, as many as there is room for; returns how many. After
    /// fewer, [`Event::Writable`] comes.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let most = self.buffer_of(id);
        let taken = self.sending.source_mut().change(id, |stream| stream.write(bytes, most));
        let taken = taken.unwrap_or(0);
        if taken < bytes.len() {
            self.refused.insert(id);
        }
        taken
    }

    /// Bytes that a stream may keep now: streams whose readers stopped must not fill the
    /// memory, nor keep the others from writing.
    fn buffer_of(&self, id: StreamId) -> u64 {
        let streams = self.sending.source();
        let own = streams.get(id).map_or(0, SendStream::held);
        let left = self.buffer_of_all.saturating_sub(streams.held());
        self.settings.buffer.min((own + left).max(SHARE))
    }

    /// Nothing more is written to a stream.
    pub fn finish(&mut self, id: StreamId) {
        if self.sending.source_mut().change(id, SendStream::finish) == Some(true) {
            self.controls.tell(Control::End(id));
        }
    }

    /// Ends the sending half of a stream at once. Returns whether that is new.
    pub fn reset(&mut self, id: StreamId, code: u64) -> bool {
        let is_new =
            self.sending.source_mut().change(id, |stream| stream.reset(code)) == Some(true);
        if is_new {
            self.refused.remove(&id);
            // What no path was given never leaves, and takes no credit. The end was that of
            // what was written, which is forgotten.
            let given = self.sending.source().get(id).map_or(0, SendStream::given_end);
            self.sending.withdraw(|piece| piece.stream == id && piece.offset >= given);
            self.controls.withdraw(Control::End(id));
            self.controls.tell(Control::Reset(id));
            self.wake_writers();
        }
        is_new
    }

    /// Nobody wants more of a stream: the peer is asked to end it.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.receiving.get_mut(&id) else { return };
        let before = stream.consumed();
        if stream.stop(code) {
            self.consumed += stream.consumed() - before;
            self.controls.tell(Control::Stop(id));
            self.grant();
        }
    }

    /// What arrived of a stream in order, at most so much; none: nothing now.
    pub fn read(&mut self, id: StreamId, most: usize) -> Option<Bytes> {
        let stream = self.receiving.get_mut(&id)?;
        let bytes = stream.read(most)?;
        self.consumed += bytes.len() as u64;
        if stream.raise_limit(self.settings.limits.stream_window) {
            self.controls.tell(Control::MaxStreamData(id));
        }
        self.grant();
        self.retire(id);
        Some(bytes)
    }

    /// All of a stream was read, to its end.
    pub fn is_read_to_end(&self, id: StreamId) -> bool {
        self.receiving.get(&id).is_none_or(ReceiveStream::is_done)
    }

    /// The stream is there: not all of it was sent, acknowledged and read.
    pub fn has(&self, id: StreamId) -> bool {
        self.receiving.contains_key(&id)
    }

    /// Queues a message of a flow, which is not repeated. `duplicate`: over all paths.
    pub fn send(&mut self, flow: u64, bytes: Bytes, duplicate: bool) {
        self.messages.push(flow, bytes, duplicate);
    }

    /// Takes no more streams of the peer; those that are there go on.
    pub fn go_away(&mut self) {
        if self.goes_away.is_none() {
            self.goes_away = Some(self.accepted.iter().map(|span| span.end - span.start).sum());
            self.controls.tell(Control::GoAway);
        }
    }

    /// No stream is left, and nothing to tell.
    pub fn is_drained(&self) -> bool {
        self.receiving.is_empty() && !self.controls.is_due()
    }

    /// Ends the bundle. The peer is told, as far as a path carries it.
    ///
    /// # Panics
    /// If the reason has more than [`REASON_MAX`](crate::REASON_MAX) bytes.
    pub fn close(&mut self, code: u64, reason: &str) {
        assert!(reason.len() <= crate::REASON_MAX, "a reason of {} bytes", reason.len());
        if self.closing.is_none() {
            self.closing = Some((code, reason.to_string()));
            self.controls.tell(Control::Close);
        }
    }

    /// The peer ended the bundle, or knows that this end did.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What the application is to know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counts since the start.
    pub fn counters(&self) -> BundleCounters {
        BundleCounters { messages_dropped: self.messages.dropped(), ..self.counters }
    }

    /// Those of the parts that the simulator has too.
    pub fn multipath_counters(&self) -> &MultipathCounters {
        self.sending.counters()
    }

    /// Bytes of content that it holds: written and not acknowledged, arrived and not
    /// read.
    pub fn held(&self) -> u64 {
        let received: u64 = self.receiving.values().map(ReceiveStream::held).sum();
        self.sending.source().held() + received
    }
}
