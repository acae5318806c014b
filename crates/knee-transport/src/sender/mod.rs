//! The sending end of a connection over one path.
//!
//! The caller drives it: [`Sender::poll_transmit`] until there is nothing more
//! to send now, [`Sender::on_ack`] for each ACK, [`Sender::on_timer`] when
//! [`Sender::timer`] is due. It follows Linux's TCP with SACK, timestamps,
//! RACK-TLP, PRR, F-RTO and undo, and sends bursts as segmentation offload
//! does. Left out: TCP Small Queues (they limit what a host hands to its own
//! network card), Nagle's algorithm, keep-alive, and repacketisation: the
//! boundaries of a segment never change, so sequence numbers count segments.
//! Segments are retransmitted one by one, and subflows do not defer bursts:
//! there the connection decides.

mod acknowledge;
mod burst;
mod busy;
mod recover;
mod requests;
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
use crate::prefetch;
use crate::prr::Reduction;
use crate::rack::Rack;
use crate::rate::RateSampler;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::wire::EcnBytes;
use busy::Busy;
use knee_cc::{Connection, Controller, Decision, Event, Needs, Recovery, RecoveryPeriod};
use knee_units::{Ecn, Rate, Time};
use requests::Attention;
use std::collections::VecDeque;
use timer::Timer;

/// The sender's counters since the start; bytes are payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub sent_segments: u64,
    /// Bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Data segments retransmitted.
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
    /// Adds the counters of another sender.
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

/// State for undoing a reduction (Linux's `undo_marker`, `undo_retrans` and
/// `retrans_stamp`). A tail loss probe does not count as a retransmission here.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// Whether there is a reduction that can be undone.
    possible: bool,
    /// Whether undoing it restores the window: not if an echo had reduced it before
    /// (Linux's `prior_ssthresh`).
    restores: bool,
    /// First segment outstanding when it was made; segments before it were not
    /// retransmitted because of it.
    first: u32,
    /// Retransmissions not reported as duplicates; negative before there is any.
    unconfirmed: i32,
    /// Whether there was any retransmission since the reduction, or one of before is out.
    retransmitted: bool,
    /// When the first retransmission was sent.
    first_at: Time,
}

impl Undo {
    /// Returns `out` retransmissions as the count of those unconfirmed (`tcp_init_undo`).
    fn unconfirmed(out: u32) -> i32 {
        if out == 0 { -1 } else { out as i32 }
    }

    /// Notes a retransmission that is no probe (`tcp_retransmit_skb`).
    fn on_retransmitted(&mut self, now: Time) {
        if !self.retransmitted {
            self.retransmitted = true;
            self.first_at = now;
        }
        self.unconfirmed = self.unconfirmed.max(0) + 1;
    }
}

/// A tail loss probe in progress (RFC 8985, section 7).
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Next new segment when it was sent.
    high: u32,
    /// Whether it repeated the last segment instead of sending a new one.
    retransmission: bool,
}

impl Probe {
    /// Whether it carried segment `number`.
    fn carried(self, number: u32) -> bool {
        number.wrapping_add(1) == self.high
    }
}

/// The sending end of a connection over one path.
#[derive(Clone, Debug)]
// Aligned to cache lines: thousands of senders do not fit into the cache, and each that
// straddled one would load a line more for each event.
#[repr(align(64))]
pub struct Sender {
    board: Scoreboard,
    sampler: RateSampler,
    rtt: RttEstimator,
    pacer: Pacer,
    /// Window, burst and codepoint that the controller decided, and the codepoint in use. The
    /// window is a segment at least (RFC 5681, section 3.1; Linux counts whole packets):
    /// otherwise nothing would be sent any more, and no ACK would change it.
    allowed: u64,
    send_quantum: u64,
    asked_codepoint: Ecn,
    codepoint: Ecn,
    controller: Box<dyn Controller>,
    /// Total bytes written by the application; `u64::MAX` for an endless stream.
    written: u64,
    receive_window: u64,
    mss: u32,
    max_burst: u32,
    /// Segments per burst.
    quantum: u32,
    needs: Needs,
    paced: bool,
    ecn: bool,
    handshake: Handshake,
    recovery: Recovery,
    recovery_period: RecoveryPeriod,
    /// Whether `reduction` is in force.
    reducing: bool,
    /// Whether sent segments are recorded, for the reduction or for the controller.
    notes_sent: bool,
    /// Whether the controller held back in its last decision, or has special requests.
    alert: bool,
    /// Determines the request to the receiver.
    ack_frequency: Option<AckFrequency>,
    ack_request: AckRequest,
    window_limited: bool,
    /// Whether to announce the reduced window on the next new segment.
    announce_reduction: bool,
    /// F-RTO (RFC 5682): whether the timeout may still turn out spurious.
    timeout_in_doubt: bool,
    /// Whether to send only new data, and no lost data, until the next ACK.
    only_new_data: bool,
    reduction: Reduction,
    /// Next new segment when recovery began (RecoveryPoint).
    high: u32,
    /// Transmissions when recovery began, used by QUIC's recovery.
    period_start: u64,
    /// Next new segment when it was last determined whether the window limits.
    usage_end: u32,
    timer: Timer,
    /// When the controller is to be woken, or its failure to be noticed.
    wake: Time,
    attention: Option<Box<Attention>>,
    timeouts_in_a_row: u32,
    probe: Option<Probe>,
    /// Whether a probe has to be sent.
    probe_due: bool,
    /// Whether the first segment has to be sent again because of a timeout.
    first_due: bool,
    /// Segments sent up to and including the last probe.
    probed: u64,
    undo: Undo,
    rack: Rack,
    /// Segments to retransmit, in the order of marking.
    lost: VecDeque<u32>,
    /// One past the highest segment selectively acknowledged.
    highest_sacked: u32,
    previous_sack: [(u32, u32); crate::SACK_BLOCKS_MAX],
    counters: Counters,
    busy: Busy,
    /// Bytes reported by the receiver, by ECN codepoint.
    arrived: EcnBytes,
    header: u32,
}

impl Sender {
    /// Creates a sender that has sent nothing.
    pub fn new(config: &Config, controller: Box<dyn Controller>) -> Sender {
        let needs = controller.needs();
        let decision = controller.decision();
        let mut sender = Sender {
            board: Scoreboard::default(),
            sampler: RateSampler::new(config.sampler),
            rtt: RttEstimator::new(config.min_rto),
            pacer: Pacer::new(config.mss),
            allowed: 0,
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
            first_due: false,
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
        sender.serve_requests(Time::ZERO);
        sender
    }

    /// Adds `bytes` bytes from the application to send; `u64::MAX` for an endless stream.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Stops the application: nothing is sent beyond the segments already cut.
    pub fn stop(&mut self) {
        self.written = self.board.sent_bytes();
    }

    /// Whether everything written is acknowledged.
    pub fn is_complete(&self) -> bool {
        self.handshake == Handshake::Done && self.board.acknowledged_bytes() == self.written
    }

    /// Whether the connection is open.
    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Done
    }

    /// Returns when [`on_timer`](Self::on_timer) is due; [`Time::MAX`] for never.
    #[inline]
    pub fn timer(&self) -> Time {
        self.timer.deadline.min(self.wake)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the RTT estimates.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the controller, for its state.
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// Begins to load what the next ACK needs beyond the sender itself into the cache.
    pub fn prefetch_parts(&self) {
        prefetch(self.controller.as_ref());
        self.board.prefetch_ends();
    }

    /// Returns the bytes in flight.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Returns the bytes acknowledged cumulatively.
    pub fn acknowledged(&self) -> u64 {
        self.board.acknowledged_bytes()
    }

    /// Returns the bytes delivered, including selectively acknowledged ones.
    pub fn delivered(&self) -> u64 {
        self.sampler.delivered - self.sampler.needless
    }

    /// Returns when bytes were last delivered; zero if none were.
    pub fn last_delivery(&self) -> Time {
        self.sampler.last_delivery()
    }

    /// Returns the segments delivered, including selectively acknowledged ones.
    pub fn delivered_segments(&self) -> u64 {
        let cut = self.counters.sent_segments - self.counters.retransmitted_segments;
        cut - u64::from(self.board.missing_segments())
    }

    /// Returns the ACKs that showed reordering; those at one instant count once.
    pub fn reorderings(&self) -> u64 {
        self.rack.reorderings()
    }

    /// Whether the application limited the sample that
    /// [`delivery_rate`](Self::delivery_rate) is based on.
    pub fn rate_was_app_limited(&self) -> bool {
        self.sampler.rate_was_app_limited()
    }

    /// Returns the payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Returns the current window: the controller's, or that of a reduction in progress.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.reducing { self.reduction.window } else { self.allowed }
    }

    /// Returns the current pacing rate; `None` if not paced.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Returns the segments of the current burst.
    pub fn burst(&self) -> u32 {
        self.pacer.burst()
    }

    /// Whether the segment sent last was a tail loss probe.
    pub fn sent_probe_last(&self) -> bool {
        self.counters.probes > 0 && self.probed == self.counters.sent_segments
    }

    /// Returns the purpose of [`timer`](Self::timer).
    pub fn timer_kind(&self) -> TimerKind {
        if self.wake < self.timer.deadline {
            TimerKind::Controller
        } else if self.handshake == Handshake::Done {
            self.timer.kind
        } else {
            TimerKind::Handshake
        }
    }

    /// Returns the state of loss recovery.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Returns the ECN codepoint for segments sent now.
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
        self.allowed = decision.window.max(u64::from(self.mss));
        if decision.ecn != self.asked_codepoint {
            self.asked_codepoint = decision.ecn;
            self.codepoint = codepoint(self.ecn, decision.ecn);
        }
    }

    fn tell(&mut self, now: Time, event: Event) {
        let connection = self.connection(now);
        let decision = self.controller.on_event(event, &connection);
        self.apply(decision);
        self.serve_requests(now);
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
            reordering: self.rack.degree(),
            recovery: self.recovery,
            window_limited: self.window_limited,
            app_limited: self.sampler.app_limited(),
            paced: self.paced,
            next_departure: self.pacer.next(),
        }
    }
}

/// Returns the codepoint of sent segments, with or without negotiated ECN: if
/// the controller requests none, it is the classic one.
fn codepoint(negotiated: bool, asked: Ecn) -> Ecn {
    debug_assert!(!asked.is_marked(), "a sender does not mark");
    match (negotiated, asked) {
        (false, _) => Ecn::NotCapable,
        (true, Ecn::NotCapable) => Ecn::Ect0,
        (true, capable) => capable,
    }
}

/// Returns the sender's clock in microseconds, wrapping (RFC 7323).
#[inline]
fn timestamp(now: Time) -> u32 {
    now.as_micros() as u32
}
