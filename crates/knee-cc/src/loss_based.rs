//! The frame of controllers that answer to loss: a window in segments, slow
//! start, one reduction per loss event, undo. What differs between them,
//! how the window grows and how far it shrinks, is a [`Growth`].
//!
//! ```text
//!              ACK                        RecoveryStart, CongestionEcho
//!   slow start ----> congestion avoidance ----------------------------+
//!       ^                    ^                                        |
//!       | Timeout            | RecoveryEnd                            v
//!       +--------------------+------------------------------ window reduced
//! ```
//!
//! The arithmetic is Linux's: the window counts segments, growth below one
//! segment is saved as credit (`tcp_slow_start`, `tcp_cong_avoid_ai`). Left
//! out is the decay of a window that a busy application does not fill
//! (RFC 7661, Linux's `tcp_cwnd_application_limited`): growth without use
//! is already prevented by [`Connection::window_limited`].

use crate::pacing::{SendQuantum, rate_of_window};
use crate::{Connection, Controller, Decision, Ecn, Event, Init, Needs, Recovery, Sample, State};
use knee_units::Time;

/// "Infinity" of the slow-start threshold, in segments (Linux's
/// `TCP_INFINITE_SSTHRESH`).
const UNLIMITED: u32 = 0x7fff_ffff;

/// Slowest timer that may restart the window, above the RTT: Linux's
/// smallest retransmission timeout is the smoothed RTT and 200 ms.
const RESTART_AFTER: Time = Time::from_millis(200);

/// A congestion window in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The window.
    pub(crate) segments: u32,
    /// Segments acknowledged that have not yet grown the window.
    credit: u32,
    /// Slow-start threshold.
    pub(crate) threshold: u32,
}

impl Window {
    fn new(segments: u32) -> Window {
        Window { segments: segments.max(1), credit: 0, threshold: UNLIMITED }
    }

    /// Below the threshold (RFC 5681, section 3.1).
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// Grows by what was acknowledged, up to the threshold; returns the rest.
    #[inline]
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.segments.saturating_add(acked).min(self.threshold);
        let rest = acked - (grown - self.segments);
        self.segments = grown;
        rest
    }

    /// Grows by one segment for each `per_segment` acknowledged.
    #[inline]
    pub(crate) fn additive(&mut self, per_segment: u32, acked: u32) {
        let per_segment = per_segment.max(1);
        // Credit saved at a larger interval is applied gently.
        if self.credit >= per_segment {
            self.credit = 0;
            self.segments += 1;
        }
        self.credit += acked;
        if self.credit >= per_segment {
            let steps = self.credit / per_segment;
            self.credit -= steps * per_segment;
            self.segments = self.segments.saturating_add(steps).min(UNLIMITED);
        }
    }

    fn set(&mut self, segments: u32) {
        self.segments = segments.max(1);
        self.credit = 0;
    }
}

/// What distinguishes one loss-based controller from another.
pub(crate) trait Growth: Send {
    /// Looks at a sample before the window grows by it.
    fn observe(&mut self, _window: &mut Window, _sample: &Sample, _connection: &Connection) {}
    /// Grows the window by `acked` segments acknowledged.
    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection);
    /// The threshold after a congestion event, in segments.
    fn reduced(&mut self, window: &Window) -> u32;
    /// Forgets what a timeout makes void.
    fn reset(&mut self, _connection: &Connection) {}
    /// Nothing was sent from `since` until now.
    fn idle(&mut self, _since: Time, _connection: &Connection) {}
}

/// Where loss recovery stands, in so far as the window depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// After a loss or an echo, until recovery ends.
    Reduced,
    /// After a timeout, until recovery ends.
    TimedOut,
}

/// A loss-based controller.
pub(crate) struct LossBased<G> {
    growth: G,
    window: Window,
    phase: Phase,
    /// Window and threshold before the last reduction, for its undo.
    before: Window,
    mss: u32,
    initial_segments: u32,
    /// Bytes acknowledged that do not make a segment yet.
    partial: u64,
    acknowledged: u64,
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
            last_sent: Time::ZERO,
            quantum: SendQuantum::default(),
            decision: Decision {
                window: 0,
                pacing_rate: None,
                send_quantum: 0,
                ecn: Ecn::NotCapable,
            },
        };
        controller.decide(&Connection::default());
        controller
    }

    /// Whole segments in `bytes` newly acknowledged; parts are saved up
    /// (appropriate byte counting, RFC 3465).
    #[inline]
    fn count_segments(&mut self, bytes: u64) -> u32 {
        self.partial += bytes;
        let segments = self.partial / u64::from(self.mss);
        self.partial -= segments * u64::from(self.mss);
        segments as u32
    }

    fn reduce(&mut self) {
        self.before = self.window;
        self.window.threshold = self.growth.reduced(&self.window).max(2);
    }

    /// RFC 6582 and RFC 3168: one reduction per window of data.
    fn on_congestion(&mut self) {
        if self.phase == Phase::Open {
            self.reduce();
            self.window.set(self.window.threshold);
        }
        self.phase = Phase::Reduced;
    }

    /// RFC 5681, equation 4, and section 3.1: repeated timeouts for the same
    /// data leave the threshold alone (Linux's `tcp_enter_loss`).
    fn on_timeout(&mut self, connection: &Connection) {
        if connection.recovery != Recovery::Loss {
            self.reduce();
        }
        self.phase = Phase::TimedOut;
        self.window.set((connection.in_flight / u64::from(self.mss)) as u32 + 1);
        self.growth.reset(connection);
    }

    /// The loss was none: back to where the window was, or beyond.
    fn on_spurious(&mut self) {
        self.window.segments = self.window.segments.max(self.before.segments);
        self.window.threshold = self.window.threshold.max(self.before.threshold);
        self.phase = Phase::Open;
    }

    /// RFC 5681, section 4.1, as Linux's `tcp_cwnd_restart`: after each
    /// timeout's worth of idleness the window halves, down to the initial
    /// one. The timeout is not known here; the smallest it can be stands in.
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

    fn on_mtu(&mut self, connection: &Connection) {
        let bytes = u64::from(self.window.segments) * u64::from(self.mss);
        self.mss = connection.mss.max(1);
        self.window.set((bytes / u64::from(self.mss)) as u32);
    }

    fn on_reset(&mut self, connection: &Connection) {
        self.window = Window::new(self.initial_segments);
        self.before = self.window;
        self.phase = Phase::Open;
        self.growth.reset(connection);
    }

    #[inline]
    fn decide(&mut self, connection: &Connection) -> Decision {
        let mss = u64::from(self.mss);
        let outstanding = connection.sent.saturating_sub(connection.acknowledged) / mss;
        let segments = u64::from(self.window.segments).max(outstanding);
        let doubling = self.window.segments < self.window.threshold / 2;
        let rate = rate_of_window(segments, doubling, self.mss, connection.srtt);
        let bytes_per_second = rate.map_or(0, |r| r.as_bytes_per_second());
        let min_rtt = connection.min_rtt;
        let quantum = self.quantum.segments(bytes_per_second, min_rtt, self.mss, 2);
        self.decision.window = u64::from(self.window.segments) * mss;
        self.decision.pacing_rate = rate;
        self.decision.send_quantum = u64::from(quantum) * mss;
        self.decision
    }
}

impl<G: Growth> Controller for LossBased<G> {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let acked = self.count_segments(sample.newly_acked);
        if let Some(rtt) = sample.rtt {
            self.last_sent = connection.now.saturating_sub(rtt);
        }
        self.growth.observe(&mut self.window, sample, connection);
        // Selective acknowledgements alone do not grow the window (Linux's
        // `tcp_may_raise_cwnd`).
        let forward = connection.acknowledged > self.acknowledged;
        self.acknowledged = connection.acknowledged;
        let shrinking = self.phase == Phase::Reduced
            || matches!(connection.recovery, Recovery::Recovery | Recovery::WindowReduced);
        if forward && !shrinking && connection.window_limited && acked > 0 {
            self.growth.grow(&mut self.window, acked, connection);
        }
        self.decide(connection)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => {}
            Event::SentAfterIdle => self.on_idle(connection),
            Event::RecoveryStart | Event::CongestionEcho => self.on_congestion(),
            Event::RecoveryEnd => self.phase = Phase::Open,
            Event::Timeout => self.on_timeout(connection),
            Event::SpuriousRecovery => self.on_spurious(),
            Event::MtuChanged => self.on_mtu(connection),
            Event::PathReset => self.on_reset(connection),
        }
        self.decide(connection)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let phase = match self.phase {
            Phase::Reduced => "recovery",
            _ if self.window.in_slow_start() => "slow_start",
            _ => "congestion_avoidance",
        };
        let threshold = u64::from(self.window.threshold) * u64::from(self.mss);
        State {
            phase,
            slow_start_threshold: (self.window.threshold < UNLIMITED).then_some(threshold),
            ..State::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: false, proportional_rate_reduction: true, accurate_ecn: false }
    }
}
