//! Congestion controllers as pure state machines; rate sampling is done outside.
//!
//! A [`Controller`] receives one [`Sample`] for each acknowledgement and a few
//! [`Event`]s, each with the state of its [`Connection`], and returns a
//! [`Decision`]. Units are bytes (payload without headers, unless stated
//! otherwise) and integer nanoseconds.
//!
//! What this crate never does: perform I/O, read a clock, allocate per
//! acknowledgement, know the ground it runs on.

use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use std::fmt::Debug;

/// Data from one acknowledgement, with the meaning of Linux's
/// `struct rate_sample` (draft-ietf-ccwg-bbr, "delivery rate samples").
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Bytes delivered over [`interval`](Self::interval).
    pub delivered: u64,
    /// [`Connection::delivered`] when the sampled segment was sent.
    pub prior_delivered: u64,
    /// The longer of the send and the ACK interval; zero if this
    /// acknowledgement gives no valid rate sample.
    pub interval: Time,
    /// Time over which the sampled flight was sent.
    pub send_interval: Time,
    /// Time over which the sampled flight was acknowledged.
    pub ack_interval: Time,
    /// Round-trip time of the acknowledged segment that was sent last; `None`
    /// if only retransmitted segments were acknowledged (Karn's rule).
    pub rtt: Option<Time>,
    /// Whether the sampled segment was sent while the application, or the
    /// controller itself ([`Decision::holds_back`]), limited the rate.
    pub app_limited: bool,
    /// Whether the receiver may have delayed this acknowledgement (it covers
    /// only one segment, the last one outstanding).
    pub ack_delayed: bool,
    /// Bytes newly acknowledged, cumulatively or selectively, or reported as received twice.
    pub newly_acked: u64,
    /// Segments of [`newly_acked`](Self::newly_acked), short ones included (Linux's
    /// `acked_sacked`).
    pub newly_acked_segments: u32,
    /// Bytes that this acknowledgement showed to be lost. Losses found by a timer
    /// are only in [`Connection::lost`] and reported by [`Controller::on_loss`].
    pub newly_lost: u64,
    /// When the sampled segment was sent.
    pub sent_at: Time,
    /// Bytes newly reported as marked with Congestion Experienced.
    pub newly_marked: u64,
    /// Bytes newly reported as having arrived with ECT(0), and with ECT(1). The
    /// receiver reports them together with marks, and whenever it reports more
    /// than the cumulative acknowledgement.
    pub newly_ect: [u64; 2],
    /// Bytes in flight before this acknowledgement was processed.
    pub prior_in_flight: u64,
    /// Bytes in flight right after the sampled segment was sent.
    pub in_flight_at_send: u64,
    /// Bytes marked lost since the sampled segment was sent.
    pub lost_since_send: u64,
}

/// A segment that was marked lost, with the state when it was last sent
/// (draft-ietf-ccwg-bbr-06, per-packet state: `tx_in_flight`, `delivered`,
/// `lost`, `is_app_limited`).
///
/// The accompanying [`Connection`] counts this loss and those reported before
/// it: `connection.lost - loss.lost_at_send` is `rs.lost` in the draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Payload bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes in flight right after it was sent, itself included.
    pub in_flight_at_send: u64,
    /// [`Connection::delivered`] at that time.
    pub delivered_at_send: u64,
    /// [`Connection::lost`] at that time.
    pub lost_at_send: u64,
    /// Whether the application, or the controller itself
    /// ([`Decision::holds_back`]), limited the rate.
    pub app_limited: bool,
}

/// A segment that has just been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// Payload bytes.
    pub bytes: u64,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// Loss recovery as the transport sees it; Linux's `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// No sign of loss.
    #[default]
    Open,
    /// Selective acknowledgements have arrived, but nothing is marked lost yet.
    Disorder,
    /// The window is being reduced after an ECN echo (RFC 3168).
    WindowReduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// State of the connection (or of the path, on a multipath connection) after
/// the acknowledgement or at the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// The current time.
    pub now: Time,
    /// Payload bytes of a full segment. It may change between calls (path MTU
    /// discovery, RFC 8899): a controller that counts segments has to convert.
    pub mss: u32,
    /// IP bytes of a full segment: [`mss`](Self::mss) and its headers.
    pub mtu: u32,
    /// Bytes sent and neither acknowledged nor marked lost.
    pub in_flight: u64,
    /// Total bytes delivered, including selectively acknowledged ones, and full segments that were
    /// reported as received twice (D-SACK), as in Linux.
    pub delivered: u64,
    /// Total bytes marked lost.
    pub lost: u64,
    /// Bytes acknowledged cumulatively.
    pub acknowledged: u64,
    /// Highest byte sent.
    pub sent: u64,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Time,
    /// Minimum RTT over the transport's own window (Linux: 300 s); zero
    /// before the first sample.
    pub min_rtt: Time,
    /// Degree of reordering: longest distance, in segments, from a late segment to the highest
    /// that overtook it (Linux's `reordering`); zero if there was none, or the transport does
    /// not tell.
    pub reordering: u32,
    /// State of loss recovery.
    pub recovery: Recovery,
    /// Whether the window, not the application, limited sending in the last
    /// round (Linux's `tcp_is_cwnd_limited`).
    pub window_limited: bool,
    /// Whether the application currently limits the rate (there is a bubble in
    /// the pipe), or the controller itself does ([`Decision::holds_back`]).
    pub app_limited: bool,
    /// Whether the transport paces.
    pub paced: bool,
    /// Earliest time at which pacing allows the next segment (Linux's
    /// `tcp_wstamp_ns`); [`now`](Self::now) or earlier if pacing does not delay it.
    pub next_departure: Time,
}

/// Events other than acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: [`Connection::srtt`] and
    /// [`Connection::min_rtt`] hold its RTT; nothing has been sent yet.
    Established,
    /// A segment is about to be sent and nothing was in flight before it: the application paused
    /// if [`Connection::app_limited`], as in Linux's `CA_EVENT_TX_START`; otherwise the window or the
    /// rate allows less than a segment in each round trip.
    SentAfterIdle,
    /// Fast recovery begins: segments were marked lost.
    RecoveryStart,
    /// The receiver echoed a mark (RFC 3168), at most once per window.
    CongestionEcho,
    /// Recovery, or the reduction after an echo or a timeout, is complete
    /// ([`RecoveryPeriod`]).
    RecoveryEnd,
    /// The retransmission timer fired: all outstanding data counts as lost.
    /// [`Connection::recovery`] is `Open` if this begins a new episode of loss,
    /// and `Loss` if the episode has already caused a reduction: then only the
    /// window falls (to the bytes in flight plus one segment), not the
    /// slow-start threshold.
    Timeout,
    /// The loss that began the current recovery turned out to be spurious
    /// (Eifel, DSACK): the reduction is undone.
    SpuriousRecovery,
    /// On a multipath connection this path holds up the others: halve the
    /// window (penalisation, Raiciu et al., NSDI 2012, section 4.2).
    Penalised,
}

/// State that a coupled controller shows to those of the connection's other paths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peer {
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed RTT; zero before the first sample, when the path does not count.
    pub srtt: Time,
    /// Bytes acknowledged between the last two losses, or since the last one
    /// if that is more (OLIA's l).
    pub loss_interval: u64,
}

/// What a controller allows the transport to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Congestion window in bytes; with [`Decision::NO_WINDOW`], only pacing
    /// and the receive window limit sending.
    pub window: u64,
    /// Pacing rate; `None` before the controller has one, and then nothing is
    /// paced. In payload bytes, like Linux's `sk_pacing_rate` since 4.20: the
    /// pacer charges the payload of a segment without headers.
    pub pacing_rate: Option<Rate>,
    /// Bytes that may be sent at once, a multiple of the segment size.
    pub send_quantum: u64,
    /// Codepoint for the segments sent from now on; never [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Whether the controller deliberately sends less than the path can carry
    /// (PROBE_RTT): until this ends, samples say no more about the path than
    /// application-limited ones. Read after each acknowledgement, as when
    /// Linux's BBR sets `tp->app_limited`.
    pub holds_back: bool,
}

impl Decision {
    /// Value of [`window`](Self::window) if there is no window.
    pub const NO_WINDOW: u64 = u64::MAX;
}

/// State that a controller shows, for the records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Phase of the algorithm, with the names of its source: `startup`,
    /// `drain`, `probe_bw_up`, `slow_start`, `congestion_avoidance` … A name
    /// created at run time becomes static through [`intern_phase`].
    pub phase: &'static str,
    /// Estimate of the bottleneck bandwidth.
    pub bandwidth: Option<Rate>,
    /// Estimate of the path's minimum RTT.
    pub min_rtt: Option<Time>,
    /// Slow-start threshold in bytes.
    pub slow_start_threshold: Option<u64>,
    /// Current pacing gain.
    pub pacing_gain: Option<f64>,
    /// Bytes that BBR's `shrink_window` has removed from the window; `None` if it is off.
    pub shrink: Option<u64>,
    /// Estimate of the fraction of bytes that the path marks (DCTCP's alpha).
    pub marked_share: Option<f64>,
}

/// Duration of the response to a loss: until it is over, further losses cause
/// no further reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryPeriod {
    /// TCP's: until all data sent before it began is acknowledged (RFC 6582,
    /// section 3.2; RFC 6675, section 5). It lasts as long as there are holes,
    /// even if the same segment is lost several times.
    #[default]
    Tcp,
    /// QUIC's: until data sent after it began is acknowledged, one round trip
    /// (RFC 9002, section 7.3.2). Holes may remain; only the loss of data sent
    /// after it began starts the next period.
    Quic,
}

/// What a controller requires of its transport, constant for its lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether segments must be paced; otherwise the scenario decides.
    pub pacing: bool,
    /// Whether the transport reduces the window in recovery by PRR towards
    /// [`Decision::window`]; otherwise that window applies unchanged.
    pub proportional_rate_reduction: bool,
    /// Whether marks are reported byte by byte (DCTCP, Prague) instead of once
    /// per window by [`Event::CongestionEcho`].
    pub accurate_ecn: bool,
    /// Whether the controllers of a connection's paths are coupled: each is
    /// shown the others by [`Controller::on_peers`] before an acknowledgement.
    pub coupled: bool,
    /// How recovery ends, unless the scenario sets it.
    pub recovery_period: RecoveryPeriod,
    /// Whether each loss is reported by [`Controller::on_loss`].
    pub losses: bool,
    /// Whether each segment sent is reported by [`Controller::on_sent`].
    pub sends: bool,
    /// Whether [`Controller::wake_at`] is called after each call.
    pub wakes: bool,
    /// Whether the controller can fail: [`Controller::failure`] is then called
    /// after each call. (A program in another language can.)
    pub may_fail: bool,
}

/// Initial values for a new controller.
#[derive(Clone, Debug)]
pub struct Init {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// IP bytes of a full segment.
    pub mtu: u32,
    /// Initial window in bytes.
    pub initial_window: u64,
    /// The flow's own random stream.
    pub rng: ChaCha8Rng,
}

/// A congestion control algorithm for one path. Another path (a new route, a
/// restarted subflow) gets a controller of its own.
///
/// Controllers that are `Clone` can be copied as trait objects.
pub trait Controller: CloneController + Debug + Send {
    /// Processes one acknowledgement.
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision;
    /// Processes an event.
    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision;
    /// Processes the loss of a segment, if [requested](Needs::losses):
    /// immediately when it is marked lost by an acknowledgement or a timer, and
    /// before the event or sample that follows from it.
    fn on_loss(&mut self, _loss: &Loss, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// Processes the sending of a segment, if [requested](Needs::sends); the
    /// handshake does not count.
    fn on_sent(&mut self, _sent: &Transmission, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// Returns when [`on_wake`](Self::on_wake) is to be called, if
    /// [requested](Needs::wakes); [`Time::MAX`] for never. A time at or before
    /// the last wake-up is ignored.
    fn wake_at(&self) -> Time {
        Time::MAX
    }
    /// Called at the time that [`wake_at`](Self::wake_at) returned.
    fn on_wake(&mut self, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// Returns the current decision.
    fn decision(&self) -> Decision;
    /// Returns the state that the controller shows.
    fn state(&self) -> State;
    /// Returns what the controller requires of its transport.
    fn needs(&self) -> Needs;
    /// Returns why the controller cannot continue; `None` if it can. Decisions
    /// after a failure are ignored: the run ends with this text.
    fn failure(&self) -> Option<String> {
        None
    }
    /// Returns what the controller shows to its peers; the transport fills in `srtt`.
    fn peer(&self) -> Peer {
        Peer { window: self.decision().window, ..Peer::default() }
    }
    /// Receives all controllers of the connection, `own` among them.
    fn on_peers(&mut self, _peers: &[Peer], _own: usize) {}
}

/// Copies a boxed controller; implemented for every controller that is `Clone`.
pub trait CloneController {
    /// Returns a copy with the same state.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Box<dyn Controller> {
        (**self).clone_box()
    }
}

mod balia;
mod bbr;
mod bbr3;
mod copa;
mod coupling;
mod cubic;
mod dctcp;
mod extremes;
mod fixed;
mod gcc;
mod held_back;
mod ledbat;
mod lia;
mod linux;
mod loss_based;
pub mod model;
mod olia;
mod pacing;
mod phase;
mod prague;
mod registry;
pub mod remycc;
mod reno;
mod slow_start;
mod split_mix;
mod vegas;
mod vivace;
mod window;

/// All controllers of this crate by their names, each with its `mod` above.
static ENTRIES: &[Entry] = &[
    balia::ENTRY,
    bbr::ENTRY,
    bbr3::ENTRY,
    copa::ENTRY,
    cubic::ENTRY,
    dctcp::ENTRY,
    fixed::ENTRY,
    gcc::ENTRY,
    ledbat::ENTRY,
    lia::ENTRY,
    olia::ENTRY,
    prague::ENTRY,
    remycc::ENTRY,
    reno::ENTRY,
    vegas::ENTRY,
    vivace::ENTRY,
];

pub use held_back::HeldBack;
pub use knee_units::Ecn;
pub use knee_units::registry::{
    ExternalFactory, Kind, Parameter, Preset, Selection, SelectionError, Settings, Value,
};
pub use linux::{is_in_bpf, is_in_linux};
pub use phase::intern as intern_phase;
pub use registry::{
    Build, Entry, Prepared, Registry, build, check, controllers, not_in_kernel, settings,
};
