//! The framework of loss-based controllers: a window in segments, slow start,
//! one reduction per loss event, undo. How the window grows and how far it
//! shrinks is defined by a [`Growth`].
//!
//! ```text
//!              ACK                        RecoveryStart, CongestionEcho
//!   slow start ----> congestion avoidance ----------------------------+
//!       ^                    ^                                        |
//!       | Timeout            | RecoveryEnd                            v
//!       +--------------------+------------------------------ window reduced
//! ```
//!
//! The arithmetic of the [`Window`] is Linux's. Left out is the decay of a
//! window that a busy application does not fill (RFC 7661, Linux's
//! `tcp_cwnd_application_limited`): [`Connection::window_limited`] already
//! prevents growth of an unused window.

use crate::pacing::{EXACTLY, FASTER, SendQuantum, TWICE, rate_of_window, smooth_burst};
use crate::slow_start::SlowStart;
use crate::window::{Sizes, UNLIMITED, Window};
use crate::{
    Connection, Controller, Decision, Ecn, Event, Init, Needs, Peer, Recovery, Sample, State,
};
use knee_units::Time;
use std::fmt::Debug;

/// Time above the RTT after which idleness restarts the window: Linux's
/// smallest retransmission timeout is the smoothed RTT plus 200 ms.
const RESTART_AFTER: Time = Time::from_millis(200);

/// Degree of reordering, in segments, above which what is delivered out of order grows the window
/// (`net.ipv4.tcp_reordering`).
const REORDERING: u32 = 3;

/// What distinguishes one loss-based controller from another.
pub(crate) trait Growth: Clone + Debug + Send + 'static {
    /// Whether the growth depends on the connection's other paths.
    const COUPLED: bool = false;
    /// Codepoint that segments carry if marks are reported byte by byte.
    const MARKS: Option<Ecn> = None;
    /// Whether segments are paced at exactly the window per round trip, in bursts
    /// of at most 250 us; otherwise pacing, if any, is a fifth faster, as in Linux.
    const SMOOTH: bool = false;
    /// Returns the slow start, if the controller lets it be chosen; it observes and grows the window
    /// from [`observe`](Self::observe) and [`grow`](Self::grow).
    fn slow_start(&self) -> Option<&SlowStart> {
        None
    }
    /// Returns the slow start to change.
    fn slow_start_mut(&mut self) -> Option<&mut SlowStart> {
        None
    }
    /// Receives all the connection's paths; `mss` is that of this path.
    fn peers(&mut self, _peers: &[Peer], _own: usize, _mss: u32) {}
    /// Processes a sample before the window grows by it.
    fn observe(&mut self, _window: &mut Window, _sample: &Sample, _connection: &Connection) {}
    /// Whether it currently responds to marks, so that the window does not grow.
    fn holds(&self, _connection: &Connection) -> bool {
        false
    }
    /// Grows the window by `acked` segments acknowledged.
    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection);
    /// Returns the threshold after a congestion event, in segments, at least one.
    fn reduced(&mut self, window: &Window) -> u32;
    /// Discards the state that a timeout invalidates.
    fn reset(&mut self, _connection: &Connection) {}
    /// Called when nothing was sent from `since` until now.
    fn idle(&mut self, _since: Time, _connection: &Connection) {}
    /// Converts what it counts in segments to those of another size.
    fn on_mtu(&mut self, _sizes: Sizes) {}
    /// Returns the estimate of the fraction of marked bytes, if there is one.
    fn marked_share(&self) -> Option<f64> {
        None
    }
}

/// Slow start up to the threshold, then one segment per round trip (RFC 5681,
/// section 3.1).
#[inline]
pub(crate) fn reno_growth(window: &mut Window, acked: u32) {
    let rest = if window.in_slow_start() { window.slow_start(acked) } else { acked };
    if rest > 0 {
        window.additive(window.segments, rest);
    }
}

/// State of loss recovery, as far as the window depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// After a loss or an echo, until recovery ends.
    Reduced,
    /// After a timeout, until recovery ends.
    TimedOut,
}

/// Bytes acknowledged between losses: the reciprocal estimates the loss rate
/// (OLIA, Khalili et al., CoNEXT 2012).
#[derive(Clone, Copy, Debug, Default)]
struct LossIntervals {
    since_last: u64,
    last: u64,
    before_last: u64,
}

impl LossIntervals {
    fn on_loss(&mut self) {
        *self = LossIntervals { since_last: 0, last: self.since_last, before_last: self.last };
    }

    /// Merges the last interval into the current one, after a spurious loss.
    fn undo(&mut self) {
        let since_last = self.since_last + self.last;
        *self = LossIntervals { since_last, last: self.before_last, before_last: 0 };
    }

    /// Returns the last interval, or the current one once it is longer.
    fn longest(&self) -> u64 {
        self.since_last.max(self.last)
    }
}

/// A loss-based controller.
#[derive(Clone, Debug)]
pub(crate) struct LossBased<G> {
    growth: G,
    window: Window,
    phase: Phase,
    /// Window and threshold before the last reduction, for undo.
    before: Window,
    mss: u32,
    initial_segments: u32,
    /// Bytes acknowledged that do not yet make up a segment.
    partial: u64,
    acknowledged: u64,
    losses: LossIntervals,
    /// When the newest segment acknowledged so far was sent.
    last_sent: Time,
    quantum: SendQuantum,
    decision: Decision,
}

impl<G: Growth> LossBased<G> {
    pub(crate) fn new(growth: G, init: &Init) -> LossBased<G> {
        let mss = init.mss.max(1);
        let initial_segments = (init.initial_window / u64::from(mss)).clamp(1, 1 << 20) as u32;
        let window = Window::new(initial_segments);
        let mut controller = LossBased {
            growth,
            window,
            phase: Phase::Open,
            before: window,
            mss,
            initial_segments,
            partial: 0,
            acknowledged: 0,
            losses: LossIntervals::default(),
            last_sent: Time::ZERO,
            quantum: SendQuantum::default(),
            decision: Decision { ecn: G::MARKS.unwrap_or_default(), ..Decision::default() },
        };
        controller.decide(&Connection::default());
        controller
    }

    /// Returns the whole segments in `bytes` newly acknowledged; the remainder
    /// is kept (appropriate byte counting, RFC 3465).
    #[inline]
    fn count_segments(&mut self, bytes: u64) -> u32 {
        self.partial += bytes;
        let segments = self.partial / u64::from(self.mss);
        self.partial -= segments * u64::from(self.mss);
        segments as u32
    }

    fn reduce(&mut self) {
        self.before = self.window;
        self.losses.on_loss();
        self.window.threshold = self.growth.reduced(&self.window);
    }

    /// RFC 6582 and RFC 3168: one reduction per window of data.
    fn on_congestion(&mut self, connection: &Connection) {
        if self.phase == Phase::Open {
            let before = self.window;
            let start = self.growth.slow_start_mut();
            if start.is_some_and(|start| start.on_congestion(&mut self.window, connection)) {
                self.before = before;
                self.losses.on_loss();
            } else {
                self.reduce();
                self.window.set(self.window.threshold);
            }
        }
        self.phase = Phase::Reduced;
    }

    /// If slow start had reduced the window itself, the growth learns what the path holds as if it
    /// had been the window of a usual reduction.
    fn on_recovery_end(&mut self, connection: &Connection) {
        self.phase = Phase::Open;
        let start = self.growth.slow_start_mut();
        let held = start.and_then(|start| start.on_recovery_end(&mut self.window, connection));
        if let Some(segments) = held {
            self.growth.reduced(&Window::new(segments));
        }
    }

    /// RFC 5681, equation 4, and section 3.1: repeated timeouts for the same
    /// data leave the threshold alone (Linux's `tcp_enter_loss`).
    fn on_timeout(&mut self, connection: &Connection) {
        if connection.recovery != Recovery::Loss {
            self.reduce();
        }
        self.phase = Phase::TimedOut;
        if let Some(start) = self.growth.slow_start_mut() {
            start.on_timeout(&mut self.window, connection);
        }
        self.window.set((connection.in_flight / u64::from(self.mss)) as u32 + 1);
        self.growth.reset(connection);
    }

    /// Restores the window after a spurious loss, unless it is larger by now.
    fn on_spurious(&mut self) {
        self.losses.undo();
        if let Some(start) = self.growth.slow_start_mut() {
            start.on_undo();
        }
        self.window.segments = self.window.segments.max(self.before.segments);
        self.window.threshold = self.window.threshold.max(self.before.threshold);
        self.phase = Phase::Open;
    }

    /// RFC 5681, section 4.1, as in Linux's `tcp_cwnd_restart`: for each
    /// timeout period of idleness the window halves, down to the initial one.
    /// The timeout is not known here; its smallest possible value is used.
    fn on_idle(&mut self, connection: &Connection) {
        if self.last_sent == Time::ZERO {
            return;
        }
        self.growth.idle(self.last_sent, connection);
        let timeout = connection.srtt + RESTART_AFTER;
        let mut idle = connection.now.saturating_sub(self.last_sent);
        if idle <= timeout {
            return;
        }
        let floor = self.initial_segments.min(self.window.segments);
        let three_quarters = self.window.segments / 2 + self.window.segments / 4;
        self.window.threshold = self.window.threshold.max(three_quarters);
        while idle > timeout && self.window.segments > floor {
            idle = idle.saturating_sub(timeout);
            self.window.segments /= 2;
        }
        self.window.set(self.window.segments.max(floor));
    }

    #[cold]
    fn on_mtu(&mut self, connection: &Connection) {
        let sizes = Sizes { old: self.mss, new: connection.mss.max(1) };
        self.mss = sizes.new;
        self.window.convert(sizes);
        self.before.convert(sizes);
        self.growth.on_mtu(sizes);
    }

    /// Halves the window, to at least one segment, and the threshold unless it
    /// is still unlimited, as in the MPTCP fork of Linux.
    fn on_penalty(&mut self) {
        if self.window.threshold != UNLIMITED {
            self.window.threshold = (self.window.threshold / 2).max(2);
        }
        self.window.set(self.window.segments / 2);
    }

    #[inline]
    fn decide(&mut self, connection: &Connection) -> Decision {
        let mss = u64::from(self.mss);
        let outstanding = connection.sent.saturating_sub(connection.acknowledged) / mss;
        let segments = u64::from(self.window.segments).max(outstanding);
        let doubling = self.window.segments < self.window.threshold / 2;
        let steady = if G::SMOOTH { EXACTLY } else { FASTER };
        let usual = if doubling { TWICE } else { steady };
        let percent = self.growth.slow_start().and_then(SlowStart::pacing).unwrap_or(usual);
        let rate = rate_of_window(segments, percent, self.mss, connection.srtt);
        let bytes_per_second = rate.map_or(0, |r| r.as_bytes_per_second());
        let quantum = if G::SMOOTH {
            smooth_burst(bytes_per_second, self.mss)
        } else {
            self.quantum.segments(bytes_per_second, connection.min_rtt, self.mss, 2)
        };
        self.decision.window = u64::from(self.window.segments) * mss;
        self.decision.pacing_rate = rate;
        self.decision.send_quantum = u64::from(quantum) * mss;
        self.decision
    }
}

impl<G: Growth> Controller for LossBased<G> {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        if connection.mss != self.mss {
            self.on_mtu(connection);
        }
        let acked = self.count_segments(sample.newly_acked);
        self.losses.since_last += sample.newly_acked;
        if let Some(rtt) = sample.rtt {
            self.last_sent = connection.now.saturating_sub(rtt);
        }
        self.growth.observe(&mut self.window, sample, connection);
        // Selective acknowledgements alone do not grow the window, unless the path reorders
        // (Linux's `tcp_may_raise_cwnd`).
        let forward =
            connection.acknowledged > self.acknowledged || connection.reordering > REORDERING;
        self.acknowledged = connection.acknowledged;
        let shrinking = self.phase == Phase::Reduced
            || matches!(connection.recovery, Recovery::Recovery | Recovery::WindowReduced);
        let shrinking = shrinking || self.growth.holds(connection);
        if forward && !shrinking && connection.window_limited && acked > 0 {
            self.growth.grow(&mut self.window, acked, connection);
        }
        self.decide(connection)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => {
                if let Some(start) = self.growth.slow_start_mut() {
                    start.on_established(&mut self.window, connection);
                }
            }
            Event::SentAfterIdle => self.on_idle(connection),
            Event::RecoveryStart | Event::CongestionEcho => self.on_congestion(connection),
            Event::RecoveryEnd => self.on_recovery_end(connection),
            Event::Timeout => self.on_timeout(connection),
            Event::SpuriousRecovery => self.on_spurious(),
            Event::Penalised => self.on_penalty(),
        }
        self.decide(connection)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let own = self.growth.slow_start().and_then(SlowStart::phase);
        let phase = match self.phase {
            Phase::Reduced => own.unwrap_or("recovery"),
            _ if self.window.in_slow_start() => own.unwrap_or("slow_start"),
            _ => "congestion_avoidance",
        };
        let threshold = u64::from(self.window.threshold) * u64::from(self.mss);
        State {
            phase,
            slow_start_threshold: (self.window.threshold < UNLIMITED).then_some(threshold),
            marked_share: self.growth.marked_share(),
            ..State::default()
        }
    }

    fn needs(&self) -> Needs {
        let recovers = self.growth.slow_start().is_some_and(SlowStart::recovers);
        Needs {
            pacing: G::SMOOTH || recovers,
            proportional_rate_reduction: !recovers,
            coupled: G::COUPLED,
            accurate_ecn: G::MARKS.is_some(),
            ..Needs::default()
        }
    }

    fn peer(&self) -> Peer {
        let loss_interval = self.losses.longest();
        Peer { window: self.decision.window, loss_interval, ..Peer::default() }
    }

    fn on_peers(&mut self, peers: &[Peer], own: usize) {
        self.growth.peers(peers, own, self.mss);
    }
}
