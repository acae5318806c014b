//! Congestion controllers as pure state machines: the rate sampler stands
//! outside, the algorithm inside.
//!
//! A [`Controller`] gets one [`Sample`] for each acknowledgement and a few
//! [`Event`]s, each with the state of its [`Connection`], and answers with a
//! [`Decision`]. Units are bytes (payload, without headers, unless said) and
//! integer nanoseconds.
//!
//! What this crate never does: I/O, read a clock, allocate per
//! acknowledgement, know the ground it runs on.

use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use std::fmt::Debug;

/// What one acknowledgement tells, with the meaning of Linux's `struct
/// rate_sample` (draft-ietf-ccwg-bbr, "delivery rate samples").
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Bytes delivered over [`interval`](Self::interval).
    pub delivered: u64,
    /// [`Connection::delivered`] when the sampled segment was sent.
    pub prior_delivered: u64,
    /// The longer of the send and the ACK interval; zero when this
    /// acknowledgement gives no valid rate sample.
    pub interval: Time,
    /// Time over which the sampled flight was sent.
    pub send_interval: Time,
    /// Time over which the sampled flight was acknowledged.
    pub ack_interval: Time,
    /// Round-trip time of the segment acknowledged that was sent last; none
    /// when only retransmitted segments were acknowledged (Karn's rule).
    pub rtt: Option<Time>,
    /// The sampled segment was sent while the application limited the rate,
    /// or the controller itself did ([`Decision::holds_back`]).
    pub app_limited: bool,
    /// The receiver may have held this acknowledgement back (it covers only
    /// one segment that was the last one outstanding).
    pub ack_delayed: bool,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub newly_acked: u64,
    /// Bytes that this acknowledgement showed to be lost. What a timer finds
    /// is in [`Connection::lost`] alone, and told by [`Controller::on_loss`].
    pub newly_lost: u64,
    /// When the sampled segment was sent.
    pub sent_at: Time,
    /// Bytes newly reported as marked with Congestion Experienced.
    pub newly_marked: u64,
    /// Bytes newly reported as having arrived with ECT(0), and with ECT(1).
    /// The receiver reports them with the marks, and whenever it has something
    /// else to say beside the cumulative acknowledgement.
    pub newly_ect: [u64; 2],
    /// Bytes in flight before this acknowledgement was processed.
    pub prior_in_flight: u64,
    /// Bytes in flight right after the sampled segment was sent.
    pub in_flight_at_send: u64,
    /// Bytes marked lost since the sampled segment was sent.
    pub lost_since_send: u64,
}

/// A segment that was marked lost, and what was so when it was sent last
/// (draft-ietf-ccwg-bbr-06, per-packet state: `tx_in_flight`, `delivered`,
/// `lost`, `is_app_limited`).
///
/// The [`Connection`] that comes with it counts this loss and those told
/// before it: `connection.lost - loss.lost_at_send` is what the draft calls
/// `rs.lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Payload bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes in flight right after it was sent, itself included.
    pub in_flight_at_send: u64,
    /// [`Connection::delivered`] then.
    pub delivered_at_send: u64,
    /// [`Connection::lost`] then.
    pub lost_at_send: u64,
    /// The application limited the rate, or the controller itself
    /// ([`Decision::holds_back`]).
    pub app_limited: bool,
}

/// A segment that has just left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// Payload bytes.
    pub bytes: u64,
    /// It was sent before.
    pub retransmission: bool,
}

/// Loss recovery as the transport sees it; Linux's `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Selective acknowledgements arrived, nothing is marked lost yet.
    Disorder,
    /// The window is being reduced after an ECN echo (RFC 3168).
    WindowReduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// State of the connection (of the path, on a multipath connection) after
/// the acknowledgement or at the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// The current time.
    pub now: Time,
    /// Payload bytes of a full segment. It may differ from one call to the
    /// next (path MTU discovery, RFC 8899): who counts segments converts.
    pub mss: u32,
    /// IP bytes of a full segment: [`mss`](Self::mss) and its headers.
    pub mtu: u32,
    /// Bytes sent and neither acknowledged nor marked lost.
    pub in_flight: u64,
    /// Bytes delivered in all, selectively acknowledged ones included.
    pub delivered: u64,
    /// Bytes marked lost in all.
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
    /// State of loss recovery.
    pub recovery: Recovery,
    /// The window, not the application, limited sending in the last round
    /// (Linux's `tcp_is_cwnd_limited`).
    pub window_limited: bool,
    /// The application limits the rate now (a bubble is in the pipe), or the
    /// controller itself does ([`Decision::holds_back`]).
    pub app_limited: bool,
    /// The transport paces what it sends.
    pub paced: bool,
    /// Earliest time at which pacing lets the next segment leave (Linux's
    /// `tcp_wstamp_ns`); [`now`](Self::now) or earlier when nothing holds it.
    pub next_departure: Time,
}

/// What happens besides acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: [`Connection::srtt`] and
    /// [`Connection::min_rtt`] hold its RTT, nothing was sent yet.
    Established,
    /// A segment is about to be sent and nothing was in flight before it.
    SentAfterIdle,
    /// Fast recovery begins: segments were marked lost.
    RecoveryStart,
    /// The receiver echoed a mark (RFC 3168), at most once per window.
    CongestionEcho,
    /// Recovery, or the reduction after an echo or a timeout, is complete
    /// ([`RecoveryPeriod`]).
    RecoveryEnd,
    /// The retransmission timer fired: all outstanding data counts as lost.
    /// [`Connection::recovery`] is `Open` when this begins a new episode of
    /// loss, `Loss` when the episode already cost its reduction: then only
    /// the window falls (to the bytes in flight and one segment), not the
    /// slow-start threshold.
    Timeout,
    /// The loss that began the current recovery turned out to be spurious
    /// (Eifel, DSACK): the reduction is undone.
    SpuriousRecovery,
    /// On a multipath connection this path holds the others up: halve the
    /// window (penalisation, Raiciu et al., NSDI 2012, section 4.2).
    Penalised,
}

/// What a coupled controller shows to those of the connection's other paths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peer {
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed RTT; zero before the first sample: the path does not count.
    pub srtt: Time,
    /// Bytes acknowledged between the last two losses, or since the last one
    /// if that is more (OLIA's l).
    pub loss_interval: u64,
}

/// What a controller allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Congestion window in bytes; [`Decision::NO_WINDOW`]: pacing alone
    /// limits, and what the receiver offers.
    pub window: u64,
    /// Pacing rate; none: the controller has no opinion yet, do not pace. In
    /// payload bytes, like Linux's `sk_pacing_rate` since 4.20: the pacer
    /// charges a segment with its payload, headers not counted.
    pub pacing_rate: Option<Rate>,
    /// Bytes that may leave at once, a multiple of the segment size.
    pub send_quantum: u64,
    /// Codepoint for the segments sent from now on; never [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The controller sends less than the path bears, on purpose (PROBE_RTT):
    /// until it ends, what is in flight and what is sent says no more of the
    /// path than what the application limits. Looked at after each
    /// acknowledgement, as when Linux's BBR sets `tp->app_limited`.
    pub holds_back: bool,
}

impl Decision {
    /// In place of a window.
    pub const NO_WINDOW: u64 = u64::MAX;
}

/// What a controller shows of itself, for the records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Phase of the algorithm, in the words of its source: `startup`,
    /// `drain`, `probe_bw_up`, `slow_start`, `congestion_avoidance` … A name
    /// that is made at run time becomes static by [`intern_phase`].
    pub phase: &'static str,
    /// Estimate of the bottleneck bandwidth.
    pub bandwidth: Option<Rate>,
    /// Estimate of the path's minimum RTT.
    pub min_rtt: Option<Time>,
    /// Slow-start threshold in bytes.
    pub slow_start_threshold: Option<u64>,
    /// Pacing gain in force.
    pub pacing_gain: Option<f64>,
    /// Estimate of the share of bytes that the path marks (DCTCP's alpha).
    pub marked_share: Option<f64>,
}

/// How long the answer to one loss lasts: until it is over, further losses
/// cost no further reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryPeriod {
    /// TCP's: until all that was sent before it began is acknowledged (RFC
    /// 6582, section 3.2; RFC 6675, section 5). It lasts as long as holes are
    /// left, over several losses of the same segment too.
    #[default]
    Tcp,
    /// QUIC's: until something sent after it began is acknowledged, one round
    /// trip (RFC 9002, section 7.3.2). Holes may be left; only the loss of
    /// what was sent after its begin begins the next.
    Quic,
}

/// What a controller needs of its transport, fixed for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Segments must be paced; otherwise pacing is the scenario's choice.
    pub pacing: bool,
    /// The transport reduces the window in recovery by PRR towards
    /// [`Decision::window`]; otherwise that window holds as it is.
    pub proportional_rate_reduction: bool,
    /// Marks are to be reported byte by byte (DCTCP, Prague), not once per
    /// window by [`Event::CongestionEcho`].
    pub accurate_ecn: bool,
    /// The controllers of a connection's paths act together: each is shown
    /// the others by [`Controller::on_peers`] before an acknowledgement.
    pub coupled: bool,
    /// How recovery ends, unless the scenario says it.
    pub recovery_period: RecoveryPeriod,
    /// Losses are told one by one by [`Controller::on_loss`].
    pub losses: bool,
    /// Each segment that leaves is told by [`Controller::on_sent`].
    pub sends: bool,
    /// [`Controller::wake_at`] is asked for after each call.
    pub wakes: bool,
    /// The controller may fail: [`Controller::failure`] is asked for after
    /// each call. (A program in another language may.)
    pub may_fail: bool,
}

/// What a controller is born with.
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
/// subflow that begins again) gets another one.
///
/// Whatever is `Clone` besides can be copied behind its box.
pub trait Controller: CloneController + Debug + Send {
    /// Processes one acknowledgement.
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision;
    /// Processes an event.
    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision;
    /// A segment was marked lost, if [asked for](Needs::losses): at once,
    /// whether an acknowledgement or a timer showed it, and before the event
    /// or the sample that follows from it.
    fn on_loss(&mut self, _loss: &Loss, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// A segment has left, if [asked for](Needs::sends); the handshake does
    /// not count.
    fn on_sent(&mut self, _sent: &Transmission, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// When [`on_wake`](Self::on_wake) is to be called, if [asked
    /// for](Needs::wakes); [`Time::MAX`]: not. A time at or before the last
    /// waking is not waited for.
    fn wake_at(&self) -> Time {
        Time::MAX
    }
    /// The time that [`wake_at`](Self::wake_at) named has come.
    fn on_wake(&mut self, _connection: &Connection) -> Decision {
        self.decision()
    }
    /// The decision in force.
    fn decision(&self) -> Decision;
    /// What the controller shows of itself.
    fn state(&self) -> State;
    /// What the controller needs of its transport.
    fn needs(&self) -> Needs;
    /// Why the controller cannot go on; none: it can. What it decides after
    /// that is of no account: the run ends with this text.
    fn failure(&self) -> Option<String> {
        None
    }
    /// What the controller shows to its peers; `srtt` is its transport's to
    /// fill.
    fn peer(&self) -> Peer {
        Peer { window: self.decision().window, ..Peer::default() }
    }
    /// All controllers of the connection, `own` among them.
    fn on_peers(&mut self, _peers: &[Peer], _own: usize) {}
}

/// Copies a controller behind its box; whatever is `Clone` has it.
pub trait CloneController {
    /// A copy, which goes on from the same state.
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
mod held_back;
mod hystart_plus_plus;
mod ledbat;
mod lia;
mod loss_based;
pub mod model;
mod olia;
mod pacing;
mod phase;
mod prague;
mod registry;
pub mod remycc;
mod reno;
mod split_mix;
mod vegas;
mod vivace;
mod window;

pub use held_back::HeldBack;
pub use knee_registry::{Kind, Parameter, Preset, Selection, SelectionError, Settings, Value};
pub use knee_units::Ecn;
pub use phase::intern as intern_phase;
pub use registry::{Build, Entry, Registry, build, check, controllers, not_in_kernel, settings};
