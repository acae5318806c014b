//! The sending end of a connection over one path.
//!
//! Driven from outside: [`Sender::poll_transmit`] until it has nothing more
//! to send now, [`Sender::on_ack`] for each ACK, [`Sender::on_timer`] when
//! [`Sender::timer`] is due. It follows Linux's TCP with SACK, timestamps,
//! RACK-TLP, PRR, F-RTO and undo, and sends in bursts as segmentation offload
//! does. Left out: TCP Small Queues (they shape what a host hands to its own
//! network card), Nagle's algorithm, keep-alive, and repacketisation: a segment
//! keeps its cut for life, so sequence numbers count segments. Segments are
//! sent again one by one, and subflows defer no burst: there the connection
//! decides.

mod acknowledge;
mod attend;
mod burst;
mod busy;
mod recover;
mod subflow;
mod timer;
mod transmit;

pub use burst::Burst;
pub use subflow::Room;
pub use timer::TimerKind;
pub use transmit::{Transmit, Wait};

use crate::ack_request::AckRequest;
use crate::config::{AckFrequency, Config, Pacing, ReceiveWindow};
use crate::pacing::Pacer;
use crate::prr::Reduction;
use crate::rack::Rack;
use crate::rate::RateSampler;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::wire::EcnBytes;
use attend::Attention;
use busy::Busy;
use knee_cc::{Connection, Controller, Decision, Event, Needs, Recovery, RecoveryPeriod};
use knee_units::{Ecn, Rate, Time};
use std::collections::VecDeque;
use timer::Timer;

/// What the sender counts. All since the start, payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub sent_segments: u64,
    /// Bytes sent again.
    pub retransmitted_bytes: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Bytes marked lost.
    pub lost_bytes: u64,
    /// Bytes that the receiver reported as marked with Congestion
    /// Experienced.
    pub marked_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Recoveries and timeouts undone as spurious.
    pub spurious_recoveries: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Segments that the receiver reported as duplicates (D-SACK, RFC 2883).
    pub duplicates: u64,
}

impl Counters {
    /// Adds another sender's.
    pub fn add(&mut self, other: &Counters) {
        self.sent_bytes += other.sent_bytes;
        self.sent_segments += other.sent_segments;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.retransmitted_segments += other.retransmitted_segments;
        self.lost_bytes += other.lost_bytes;
        self.marked_bytes += other.marked_bytes;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.spurious_recoveries += other.spurious_recoveries;
        self.probes += other.probes;
        self.duplicates += other.duplicates;
    }
}

/// Whether the connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// The SYN has to be sent.
    SynDue,
    /// The SYN was sent.
    SynSent,
    /// Data may flow.
    Done,
}

/// What is remembered for undoing a reduction (Linux's `undo_marker`,
/// `undo_retrans` and `retrans_stamp`).
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// There is a reduction that can be undone.
    possible: bool,
    /// First segment outstanding when it was made; what lies before it was
    /// not retransmitted for it.
    first: u32,
    /// Retransmissions not reported as duplicates.
    unconfirmed: u32,
    /// Any retransmission was sent.
    retransmitted: bool,
    /// Timestamp of the first retransmission.
    first_timestamp: u32,
}

/// A tail loss probe under way (RFC 8985, section 7).
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Next new segment when it was sent.
    high: u32,
    /// It repeated the last segment instead of sending a new one.
    retransmission: bool,
}

impl Probe {
    /// It carried segment `number`.
    fn carried(self, number: u32) -> bool {
        number.wrapping_add(1) == self.high
    }
}

/// The sending end of a connection over one path.
#[derive(Clone, Debug)]
pub struct Sender {
    board: Scoreboard,
    sampler: RateSampler,
    rtt: RttEstimator,
    pacer: Pacer,
    /// What the controller allows; the codepoint that it asks for, and that of
    /// what is sent.
    allowed: u64,
    send_quantum: u64,
    asked_codepoint: Ecn,
    codepoint: Ecn,
    controller: Box<dyn Controller>,
    /// Bytes that the application gave in all; `u64::MAX`: no end.
    written: u64,
    receive_window: u64,
    mss: u32,
    max_burst: u32,
    /// Segments of one burst.
    quantum: u32,
    needs: Needs,
    paced: bool,
    ecn: bool,
    handshake: Handshake,
    recovery: Recovery,
    recovery_period: RecoveryPeriod,
    /// The reduction in force, while `reducing`.
    reducing: bool,
    /// What leaves is noted: by the reduction, or for the controller.
    notes_sent: bool,
    /// The controller held back when it decided last, or asks for more than
    /// others.
    alert: bool,
    /// Says what the receiver is asked for.
    ack_frequency: Option<AckFrequency>,
    ack_request: AckRequest,
    window_limited: bool,
    /// Announce the reduced window on the next new segment.
    announce_reduction: bool,
    /// F-RTO (RFC 5682): the timeout may yet turn out spurious.
    timeout_in_doubt: bool,
    /// Until the next ACK new data leaves, and nothing that was lost.
    only_new_data: bool,
    reduction: Reduction,
    /// Next new segment when recovery began (RecoveryPoint).
    high: u32,
    /// Transmissions when recovery began; QUIC's looks at these.
    period_start: u64,
    /// Next new segment when the window was last found limiting or not.
    usage_end: u32,
    timer: Timer,
    /// The controller wants to be woken, or to be heard, then.
    wake: Time,
    attention: Option<Box<Attention>>,
    timeouts_in_a_row: u32,
    probe: Option<Probe>,
    /// A probe has to be sent.
    probe_due: bool,
    /// Segments sent up to the last probe.
    probed: u64,
    undo: Undo,
    rack: Rack,
    /// Segments to send again, in the order of their marking.
    lost: VecDeque<u32>,
    /// One past the highest segment selectively acknowledged.
    highest_sacked: u32,
    previous_sack: [(u32, u32); crate::SACK_BLOCKS_MAX],
    counters: Counters,
    busy: Busy,
    /// What the receiver reported, by ECN codepoint.
    arrived: EcnBytes,
    header: u32,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(config: &Config, controller: Box<dyn Controller>) -> Sender {
        let needs = controller.needs();
        let decision = controller.decision();
        let mut sender = Sender {
            board: Scoreboard::default(),
            sampler: RateSampler::new(config.sampler),
            rtt: RttEstimator::new(config.min_rto),
            pacer: Pacer::new(config.mss),
            allowed: decision.window,
            send_quantum: decision.send_quantum,
            asked_codepoint: decision.ecn,
            codepoint: codepoint(config.ecn, decision.ecn),
            controller,
            written: 0,
            receive_window: match config.receive_window {
                ReceiveWindow::Fixed(bytes) => bytes,
                ReceiveWindow::Unlimited | ReceiveWindow::Auto { .. } => {
                    ReceiveWindow::LARGEST_BYTES
                }
            },
            mss: config.mss,
            max_burst: config.max_burst,
            quantum: 0,
            needs,
            paced: match config.pacing {
                Pacing::Auto => needs.pacing,
                Pacing::On => true,
                Pacing::Off => false,
            },
            ecn: config.ecn,
            handshake: Handshake::SynDue,
            recovery: Recovery::Open,
            recovery_period: config.recovery.unwrap_or(needs.recovery_period),
            reducing: false,
            notes_sent: needs.sends,
            alert: Attention::to(&needs).is_some() || config.ack_frequency.is_some(),
            ack_frequency: config.ack_frequency,
            ack_request: AckRequest::NONE,
            window_limited: false,
            announce_reduction: false,
            timeout_in_doubt: false,
            only_new_data: false,
            reduction: Reduction::default(),
            high: 0,
            period_start: 0,
            usage_end: 0,
            timer: Timer::DISARMED,
            wake: Time::MAX,
            attention: Attention::to(&needs),
            timeouts_in_a_row: 0,
            probe: None,
            probe_due: false,
            probed: 0,
            undo: Undo::default(),
            rack: Rack::default(),
            lost: VecDeque::new(),
            highest_sacked: 0,
            previous_sack: Default::default(),
            counters: Counters::default(),
            busy: Busy::default(),
            arrived: EcnBytes::default(),
            header: config.header,
        };
        sender.apply(decision);
        sender.attend(Time::ZERO);
        sender
    }

    /// The application gives so many bytes more to send; it never ends with
    /// `u64::MAX`.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// The application sends nothing after what was already cut.
    pub fn stop(&mut self) {
        self.written = self.board.sent_bytes();
    }

    /// All that was written is acknowledged.
    pub fn is_complete(&self) -> bool {
        self.handshake == Handshake::Done && self.board.acknowledged_bytes() == self.written
    }

    /// The connection is open.
    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Done
    }

    /// When [`on_timer`](Self::on_timer) is due; [`Time::MAX`]: never.
    #[inline]
    pub fn timer(&self) -> Time {
        self.timer.deadline.min(self.wake)
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// RTT estimates.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The controller, for its state.
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// Bytes in flight.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Bytes acknowledged cumulatively.
    pub fn acknowledged(&self) -> u64 {
        self.board.acknowledged_bytes()
    }

    /// Bytes delivered, selectively acknowledged ones included.
    pub fn delivered(&self) -> u64 {
        self.sampler.delivered
    }

    /// Segments delivered, selectively acknowledged ones included.
    pub fn delivered_segments(&self) -> u64 {
        let cut = self.counters.sent_segments - self.counters.retransmitted_segments;
        let missing = self.board.segments() - self.board.sacked_segments;
        cut - u64::from(missing)
    }

    /// ACKs that showed the path to reorder; those at one instant are one.
    pub fn reorderings(&self) -> u64 {
        self.rack.reorderings()
    }

    /// The application limited the sample that
    /// [`delivery_rate`](Self::delivery_rate) is from.
    pub fn rate_was_app_limited(&self) -> bool {
        self.sampler.rate_was_app_limited()
    }

    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// The window in force: the controller's, or that of a reduction under
    /// way.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.reducing { self.reduction.window } else { self.allowed }
    }

    /// Pacing rate in force; none: not paced.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Segments that the current burst may have.
    pub fn burst(&self) -> u32 {
        self.pacer.burst()
    }

    /// The segment sent last was a tail loss probe.
    pub fn sent_probe_last(&self) -> bool {
        self.counters.probes > 0 && self.probed == self.counters.sent_segments
    }

    /// What [`timer`](Self::timer) is for.
    pub fn timer_kind(&self) -> TimerKind {
        if self.wake < self.timer.deadline {
            TimerKind::Controller
        } else if self.handshake == Handshake::Done {
            self.timer.kind
        } else {
            TimerKind::Handshake
        }
    }

    /// State of loss recovery.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// ECN codepoint for what is sent now.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        self.codepoint
    }

    #[inline]
    fn apply(&mut self, decision: Decision) {
        if self.paced {
            self.pacer.set_rate(decision.pacing_rate);
        }
        if decision.send_quantum != self.send_quantum || self.quantum == 0 {
            self.send_quantum = decision.send_quantum;
            let burst = decision.send_quantum.min(u64::from(self.max_burst));
            self.quantum = (burst / u64::from(self.mss)).max(1) as u32;
        }
        self.allowed = decision.window;
        if decision.ecn != self.asked_codepoint {
            self.asked_codepoint = decision.ecn;
            self.codepoint = codepoint(self.ecn, decision.ecn);
        }
    }

    fn tell(&mut self, now: Time, event: Event) {
        let connection = self.connection(now);
        let decision = self.controller.on_event(event, &connection);
        self.apply(decision);
        self.attend(now);
    }

    #[inline]
    fn connection(&self, now: Time) -> Connection {
        Connection {
            now,
            mss: self.mss,
            mtu: self.mss + self.header,
            in_flight: self.board.in_flight(),
            delivered: self.sampler.delivered,
            lost: self.counters.lost_bytes,
            acknowledged: self.board.acknowledged_bytes(),
            sent: self.board.sent_bytes(),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.minimum(),
            recovery: self.recovery,
            window_limited: self.window_limited,
            app_limited: self.sampler.app_limited(),
            paced: self.paced,
            next_departure: self.pacer.next(),
        }
    }
}

/// The codepoint of what is sent where ECN was negotiated or not: a controller
/// that asks for none has the classic one.
fn codepoint(negotiated: bool, asked: Ecn) -> Ecn {
    debug_assert!(!asked.is_marked(), "a sender does not mark");
    match (negotiated, asked) {
        (false, _) => Ecn::NotCapable,
        (true, Ecn::NotCapable) => Ecn::Ect0,
        (true, capable) => capable,
    }
}

/// The sender's clock in microseconds, wrapping (RFC 7323).
#[inline]
fn timestamp(now: Time) -> u32 {
    now.as_micros() as u32
}
