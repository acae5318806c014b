//! The bundle: streams and messages over several paths under a scheduler.
//!
//! Order of sending: acknowledgements, control frames, probes, messages, then pieces of streams in
//! the order of [`Sending`]: pieces that a path lost or holds while it is silent, pieces that the
//! scheduler chooses, reinjection.
//!
//! The congestion controller of a path is below, in the connection that carries its datagrams; the
//! bundle sees only what a [`knee_multipath::sched::Path`] says. The numbers of a path continue
//! when it comes back, so that an acknowledgement from before is ignored.

mod overflow;
mod receive;
mod send;

pub use send::message_max;

use crate::PATHS_MAX;
use crate::control::{Control, Controls};
use crate::frame::Malformed;
use crate::message::Messages;
use crate::path::{ACK_DELAY, Arrivals, Fate, NeverSent, Outstanding, Rtt};
use crate::spans::Spans;
use crate::stream::{
    Class, Piece, ReceiveStream, Receiving, SendStream, Shares, StreamId, Streams, own_part,
};
use bytes::Bytes;
use knee_multipath::sched::{Path, Scheduler};
use knee_multipath::{MultipathCounters, Release, Sending, SilenceRule};
use knee_units::Time;
use overflow::Overflow;
use receive::is_needed;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a datagram that every path must carry: an ACK and the longest other frame. QUIC's
/// datagrams have about twice as many (RFC 9000, section 14).
pub const DATAGRAM_MIN: u16 = 600;
/// Datagrams by which one must be overtaken until its path reorders widely.
const MANY: u64 = 32;
/// Bytes that a stream buffers without much need.
const SHARE: u64 = 1 << 16;

/// Limits that an end sets for its peer, and for itself whatever the peer allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all streams, sent and not yet read.
    pub window: u64,
    /// Bytes of one stream, sent and not yet read, that it may always have: more of `window` is
    /// shared.
    pub stream_window: u64,
    /// Streams that the client may have open.
    pub streams: u64,
}

impl Limits {
    /// Makes limits in which the windows of all streams together leave at least half of `window` to
    /// be shared; `None` if there are too many streams for that.
    pub fn sharing(window: u64, streams: u64) -> Option<Limits> {
        let limits = Limits { window, stream_window: own_part(window, streams), streams };
        limits.leaves_a_share().then_some(limits)
    }

    /// Returns the limits that a client with these accepts of those that its server announces, which
    /// then hold for both: no larger windows, and no more streams than leave a share; `None` if the
    /// windows are larger.
    pub fn accept(&self, announced: Limits) -> Option<Limits> {
        let Limits { window, stream_window, streams } = announced;
        let most = match self.leaves_a_share() {
            true => window / 2 / stream_window.max(1),
            false => self.streams,
        };
        let fits = window <= self.window && stream_window <= window && most > 0;
        fits.then_some(Limits { window, stream_window, streams: streams.min(most) })
    }

    /// Returns whether the windows of all streams together leave at least half of that of all.
    pub fn leaves_a_share(&self) -> bool {
        self.stream_window.saturating_mul(self.streams) <= self.window / 2
    }
}

/// Settings of a bundle. The ends have exchanged their limits (JOINED).
#[derive(Clone, Debug)]
pub struct BundleSettings {
    /// Whether this end is the server.
    pub is_server: bool,
    /// Largest datagram that a path may carry at any time, bytes.
    pub datagram: u16,
    /// Limits for the peer.
    pub limits: Limits,
    /// Bytes of a stream that may be written and not acknowledged, or twice those in flight if that
    /// is more.
    pub buffer: u64,
    /// Whether a fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// Maximum lateness of this host's clock and timers.
    pub lateness: Time,
}

/// Event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream.
    Opened(StreamId),
    /// A stream has data to read, or its end. Repeated only after everything that was there has
    /// been read.
    Readable(StreamId),
    /// A stream accepts bytes again.
    Writable(StreamId),
    /// The peer reset a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Error code.
        code: u64,
    },
    /// Content that nobody reads leaves little of the window for other streams.
    Crowded {
        /// Streams with content that was not read.
        streams: usize,
        /// Bytes of it.
        bytes: u64,
    },
    /// The peer no longer reads a stream, which is reset.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// Error code.
        code: u64,
    },
    /// A message of a flow arrived.
    Message {
        /// The flow.
        flow: u64,
        /// Content.
        bytes: Bytes,
    },
    /// The peer accepts no more streams.
    GoAway,
    /// The peer closed the bundle.
    Closed {
        /// Error code.
        code: u64,
        /// Explanation for a person.
        reason: String,
    },
}

/// Violation of the protocol by the peer, whose connections must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A datagram is malformed.
    Malformed(Malformed),
    /// An ACK of a datagram that was never sent.
    NeverSent,
    /// Data beyond the credit or beyond the end of a stream.
    Beyond(StreamId),
    /// A stream beyond the limit, or one that only this end may open.
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

/// Counts since the start of the bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Datagrams declared lost.
    pub lost: u64,
    /// Datagrams declared lost that arrived late.
    pub late: u64,
    /// Datagrams with only acknowledgements.
    pub acknowledgements: u64,
    /// Probes of silent paths.
    pub probes: u64,
    /// Messages dropped before sending.
    pub messages_dropped: u64,
}

/// Content of a datagram that asks for an acknowledgement.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// A whole chunk of the connection.
    Chunk(u64, Piece),
    /// A part of a chunk, because the path carries smaller datagrams than others.
    Part(u64, Piece),
    /// A control datagram, by its number in [`Controls`].
    Control(u64),
    /// A probe without content.
    Probe,
    /// A message.
    Message,
}

/// How an end wants a path to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathUse {
    /// Send only what is needed.
    pub quiet: bool,
    /// The path is used when no cheaper one works.
    pub cost: u8,
    /// The path is used as well when all cheaper ones have been full for two seconds.
    pub overflows: bool,
}

/// State of a path.
#[derive(Clone, Debug, Default)]
struct PathState {
    is_up: bool,
    /// A PING must leave, because the path just came up.
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
        let cost = own.cost.max(peer.cost);
        // An end to which the path is dear must agree.
        let agrees = |end: PathUse| end.cost == 0 || end.overflows;
        let overflows = cost > 0 && agrees(own) && agrees(peer);
        PathUse { quiet: own.quiet || peer.quiet, cost, overflows }
    }
}

/// Streams and messages over several paths.
pub struct Bundle {
    settings: BundleSettings,
    paths: [PathState; PATHS_MAX],
    sending: Sending<Streams>,
    overflow: Overflow,
    receiving: Receiving,
    is_crowded: bool,
    /// Time of the last call with a time.
    now: Time,
    controls: Controls,
    messages: Messages,
    /// Whether the last datagram with data carried a message.
    message_was_last: bool,
    /// Parts of chunks that wait for their path, and the chunks that they belong to.
    parts: VecDeque<(usize, u64, Piece)>,
    cut_up: BTreeMap<u64, Piece>,
    /// Streams that this end has opened, and may open.
    opened: u64,
    openable: u64,
    /// Initial credit of a stream at the peer.
    peer_stream_window: u64,
    /// Numbers of the peer's streams so far, and how many of them are over.
    accepted: Spans,
    accepted_done: u64,
    granted_streams: u64,
    /// For all streams together: bytes consumed, sum of the highest bytes, and credit granted.
    consumed: u64,
    highest: u64,
    granted: u64,
    /// How streams share what may be written and not acknowledged.
    buffers: Shares,
    /// Streams whose writer must wait for room, those of which something arrived since the last look
    /// at them, and the room of a stream at the last look at all of them.
    refused: BTreeSet<StreamId>,
    arrived: BTreeSet<StreamId>,
    room_seen: u64,
    events: VecDeque<Event>,
    goes_away: Option<u64>,
    peer_goes_away: bool,
    closing: Option<(u64, String)>,
    is_closed: bool,
    /// Buffer for the paths as the scheduler sees them: to fill an array of eight for each datagram
    /// costs a hundredth of all work over two paths.
    view: Vec<Path>,
    /// Buffer for the result of an ACK, empty between calls.
    fates: Vec<(Fate, Content)>,
    /// Numbers of datagrams that arrived on paths that reorder widely.
    arrived_on: Vec<(usize, u64)>,
    /// Number of the last datagram written, if it asks for an acknowledgement.
    asked: Option<u64>,
    counters: BundleCounters,
}

impl Bundle {
    /// Makes a bundle without paths. `peer` are the limits that the peer has announced.
    pub fn new(settings: BundleSettings, peer: Limits, scheduler: Box<dyn Scheduler>) -> Bundle {
        let Limits { window, stream_window, streams } = settings.limits;
        let receiving = Shares::within(window, stream_window, streams);
        // As much as a single stream needs to buffer all it may (it gets two thirds of five sixths),
        // or the peer's window, but not more of it than this end would allow.
        let all = (settings.buffer / 5 * 9).max(peer.window.min(window));
        let own = own_part(all.max(SHARE * 256), streams);
        let buffers = Shares::beside(all, own);
        let mut streams = Streams::with_own(own);
        streams.set_datagram(settings.datagram);
        let sending = knee_multipath::Settings {
            mss: settings.datagram,
            window: peer.window,
            reinjection: settings.reinjection,
            release: Release::OnDelivery,
            silence: SilenceRule {
                ack_delay: ACK_DELAY,
                floor: settings.lateness,
                timeouts_halves: 3,
            },
        };
        Bundle {
            paths: Default::default(),
            sending: Sending::new(sending, streams, scheduler),
            overflow: Overflow::default(),
            receiving: Receiving::new(receiving),
            is_crowded: false,
            now: Time::ZERO,
            controls: Controls::default(),
            messages: Messages::default(),
            message_was_last: false,
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
            buffers,
            refused: BTreeSet::new(),
            arrived: BTreeSet::new(),
            room_seen: 0,
            events: VecDeque::new(),
            goes_away: None,
            peer_goes_away: false,
            closing: None,
            is_closed: false,
            view: Vec::new(),
            fates: Vec::new(),
            arrived_on: Vec::new(),
            asked: None,
            counters: BundleCounters::default(),
            settings,
        }
    }

    // Paths.

    /// Makes a path available.
    pub fn on_path_up(&mut self, path: usize) {
        let state = &mut self.paths[path];
        (state.is_up, state.greets) = (true, true);
        state.rtt = Rtt::default();
        self.sending.on_path_up(path);
        self.repeat_controls();
    }

    /// Removes a path, with everything that it held.
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

    /// Notes that the connection below received a packet on the path; `more_outstanding` says
    /// whether more that was sent still waits for an answer.
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        let returns = self.sending.is_suspect(path);
        self.sending.on_heard(now, path, more_outstanding);
        if returns {
            self.repeat_controls();
        }
    }

    /// Makes the control frames due that silent paths hold: they leave on another path.
    fn repeat_controls(&mut self) {
        for path in (0..PATHS_MAX).filter(|path| self.sending.is_suspect(*path)) {
            let (receiving, streams) = (&self.receiving, self.sending.source());
            for content in self.paths[path].sent.held() {
                if let Content::Control(number) = content {
                    self.controls.repeat(number, |control| is_needed(control, receiving, streams));
                }
            }
        }
    }

    /// Notes that a path was added or removed, or that its status changed.
    pub fn on_paths_changed(&mut self, paths: &[Path]) {
        self.sending.on_paths_changed(paths);
    }

    /// Sets how this end wants a path to be used, and tells the peer.
    pub fn set_use(&mut self, path: usize, path_use: PathUse) {
        self.paths[path].own_use = path_use;
        self.controls.queue(Control::Status(path));
    }

    /// Sets how both ends want a path to be used, as exchanged when the path was made, before this
    /// layer knew it.
    pub fn on_use(&mut self, path: usize, own: PathUse, peer: PathUse) {
        (self.paths[path].own_use, self.paths[path].peer_use) = (own, peer);
    }

    /// Returns how this end wants a path to be used.
    pub fn own_use(&self, path: usize) -> PathUse {
        self.paths[path].own_use
    }

    /// Returns how both ends together want a path to be used: quiet if either wants it, at the higher
    /// cost, and helping others as the end with the higher cost wants.
    pub fn path_use(&self, path: usize) -> PathUse {
        self.paths[path].both()
    }

    /// Returns whether a path helps at present because all cheaper ones are full.
    pub fn overflows(&self, path: usize) -> bool {
        let PathUse { cost, overflows, .. } = self.paths[path].both();
        overflows && self.overflow.is_on(cost)
    }

    /// Returns whether the path was silent for too long and has not answered since.
    pub fn is_suspect(&self, path: usize) -> bool {
        self.sending.is_suspect(path)
    }

    /// Returns the RTT of a path as measured by this layer.
    pub fn rtt(&self, path: usize) -> &Rtt {
        &self.paths[path].rtt
    }

    /// Takes a path whose window is to be halved because it holds others up.
    pub fn take_penalty(&mut self) -> Option<usize> {
        self.sending.take_penalty()
    }

    /// Returns the number, on its path, of the datagram that was written last, if it asks for an
    /// acknowledgement.
    pub fn asked(&self) -> Option<u64> {
        self.asked
    }

    /// Returns whether datagrams of a path, in either direction, overtake others by a large part of an
    /// RTT, or many of them. Then [`take_arrived`](Self::take_arrived) has those that are acknowledged.
    pub fn reorders_widely(&self, path: usize) -> bool {
        self.paths[path].sent.reorders_widely() || self.behind(path) >= MANY
    }

    /// Returns by how many numbers a datagram of a path came behind the largest one, at most, in either
    /// direction.
    pub fn behind(&self, path: usize) -> u64 {
        let PathState { sent, arrivals, .. } = &self.paths[path];
        sent.behind().max(arrivals.behind())
    }

    /// Replaces `numbers` by those of datagrams that were acknowledged on a path that reorders widely,
    /// and returns the path; `None` if there are no more.
    pub fn take_arrived(&mut self, numbers: &mut Vec<u64>) -> Option<usize> {
        let path = self.arrived_on.last()?.0;
        numbers.clear();
        let of_path = self.arrived_on.iter().filter(|(of, _)| *of == path);
        numbers.extend(of_path.map(|(_, number)| number));
        self.arrived_on.retain(|(of, _)| *of != path);
        Some(path)
    }

    // Streams.

    /// Opens a stream, or returns `None` if the peer or the own limit allows no more now. Only a
    /// client may.
    pub fn open(&mut self, class: Class) -> Option<StreamId> {
        let may = !self.settings.is_server
            && self.opened < self.openable
            && self.receiving.open() < self.settings.limits.streams;
        if self.peer_goes_away || self.closing.is_some() || !may {
            return None;
        }
        let id = StreamId::new(self.opened, class, self.settings.is_server);
        self.opened += 1;
        self.insert(id);
        Some(id)
    }

    fn insert(&mut self, id: StreamId) {
        self.sending.source_mut().insert(id, SendStream::new(self.peer_stream_window));
        self.receiving.insert(self.now, id);
        self.grant_stream(id, true);
    }

    /// Writes bytes to a stream, as many as there is room for, and returns how many. If not all,
    /// [`Event::Writable`] follows.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let most = self.buffer_of(id);
        let taken = self.sending.source_mut().change(id, |stream| stream.write(bytes, most));
        let taken = taken.unwrap_or(0);
        if taken < bytes.len() {
            self.refused.insert(id);
        }
        taken
    }

    /// Returns the bytes that a stream may buffer now: twice what is in flight, so that the
    /// application does not limit the paths, within its share. Streams whose readers stopped must
    /// neither fill the memory nor keep other streams from writing.
    fn buffer_of(&self, id: StreamId) -> u64 {
        let streams = self.sending.source();
        let own = streams.get(id).map_or(0, SendStream::held);
        let share = self.buffers.most(streams.beyond() - self.buffers.beyond(own));
        let in_flight: u64 = self.paths.iter().map(|state| state.sent.in_flight()).sum();
        self.settings.buffer.max(2 * in_flight).min(share)
    }

    /// Ends the sending direction of a stream.
    pub fn finish(&mut self, id: StreamId) {
        if self.sending.source_mut().change(id, SendStream::finish) == Some(true) {
            self.controls.queue(Control::End(id));
        }
    }

    /// Resets the sending direction of a stream. Returns whether it was not reset before.
    pub fn reset(&mut self, id: StreamId, code: u64) -> bool {
        let is_new =
            self.sending.source_mut().change(id, |stream| stream.reset(code)) == Some(true);
        if is_new {
            self.refused.remove(&id);
            // Bytes that were not given to a path never leave, and take no credit. The end belonged
            // to the bytes written, which are forgotten.
            let given = self.sending.source().get(id).map_or(0, SendStream::given_end);
            self.sending.withdraw(|piece| piece.stream == id && piece.offset >= given);
            self.controls.withdraw(Control::End(id));
            self.controls.queue(Control::Reset(id));
            self.wake_writers();
        }
        is_new
    }

    /// Asks the peer to reset a stream that nobody reads any more.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        let stop = |stream: &mut ReceiveStream| {
            let before = stream.consumed();
            stream.stop(code).then(|| stream.consumed() - before)
        };
        if let Some(discarded) = self.receiving.change(id, stop).flatten() {
            self.consumed += discarded;
            self.controls.queue(Control::Stop(id));
            self.grant();
            self.note_fullness();
            self.retire(id);
        }
    }

    /// Reads bytes of a stream in order, at most `most`, and not always all that are available;
    /// `None` if there are none now. They share the memory of a block, so they should be copied if
    /// they are kept.
    pub fn read(&mut self, id: StreamId, most: usize) -> Option<Bytes> {
        let bytes = self.receiving.read(id, most)?;
        self.consumed += bytes.len() as u64;
        self.grant_stream(id, false);
        self.grant();
        self.note_fullness();
        self.retire(id);
        Some(bytes)
    }

    /// Returns whether all of a stream was read, including its end.
    pub fn is_read_to_end(&self, id: StreamId) -> bool {
        self.receiving.get(id).is_none_or(ReceiveStream::is_done)
    }

    /// Returns whether the stream exists: some of it is yet to be sent, acknowledged or read.
    pub fn has(&self, id: StreamId) -> bool {
        self.receiving.get(id).is_some()
    }

    /// Queues a message of a flow, which is never repeated. `duplicate` sends it over all paths.
    pub fn send(&mut self, flow: u64, bytes: Bytes, duplicate: bool) {
        self.messages.push(flow, bytes, duplicate);
    }

    /// Accepts no more streams of the peer; existing ones continue.
    pub fn go_away(&mut self) {
        if self.goes_away.is_none() {
            self.goes_away = Some(self.accepted.iter().map(|span| span.end - span.start).sum());
            self.controls.queue(Control::GoAway);
        }
    }

    /// Returns whether no stream is left and no control frame is due.
    pub fn is_drained(&self) -> bool {
        self.receiving.is_empty() && !self.controls.is_due()
    }

    /// Closes the bundle, and tells the peer if a path carries it.
    ///
    /// # Panics
    /// If the reason has more than [`REASON_MAX`](crate::REASON_MAX) bytes.
    pub fn close(&mut self, code: u64, reason: &str) {
        assert!(reason.len() <= crate::REASON_MAX, "a reason of {} bytes", reason.len());
        if self.closing.is_none() {
            self.closing = Some((code, reason.to_string()));
            self.controls.queue(Control::Close);
        }
    }

    /// Returns whether the peer closed the bundle, or knows that this end did.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether the peer's credit keeps data from being sent although earlier data has not
    /// arrived: what is lost or on its way holds the credit, not a reader that pauses.
    pub fn waits_for_credit(&self) -> bool {
        self.sending.source().wait_for_credit(self.sending.is_blocked())
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the counts since the start.
    pub fn counters(&self) -> BundleCounters {
        BundleCounters { messages_dropped: self.messages.dropped(), ..self.counters }
    }

    /// Returns the counters of the parts shared with the simulator.
    pub fn multipath_counters(&self) -> &MultipathCounters {
        self.sending.counters()
    }

    /// Returns the bytes of content held: written and not acknowledged, or received and not read.
    pub fn held(&self) -> u64 {
        self.sending.source().held() + self.receiving.held()
    }

    /// Returns the number of streams that hold content which was not read and the bytes of it, if it
    /// leaves little of the window for other streams.
    pub fn unread(&self) -> Option<(usize, u64)> {
        self.is_crowded.then(|| (self.receiving.holding(), self.receiving.held()))
    }

    /// Returns the number of streams whose bytes wait because the peer's application does not read
    /// them.
    pub fn waiting_for_peer(&self) -> usize {
        self.sending.source().unread()
    }
}
