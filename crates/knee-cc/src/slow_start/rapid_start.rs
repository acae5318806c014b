//! Rapid Start (draft-kazuho-ccwg-rapid-start-02): the window triples in each round trip while no
//! queue forms, and the first recovery finds the size of the pipe.
//!
//! ```text
//!   first flight --> RTT near its minimum: 3x --+--> loss or mark: 0.81 of the window (0.88),
//!   (two initial     otherwise:            2x --+    less a part of what is acknowledged
//!    windows, paced)                                 and more of what is lost
//! ```
//! In brackets: with CUBIC's beta of 0.7 instead of Reno's 0.5. When recovery ends, the window is
//! beta times what the path and its queue hold, as after any other recovery.
//!
//! The transport must pace. Recovery is QUIC's, without proportional rate reduction, because the
//! draft lets the sender fall silent first; this holds for later recoveries, too. CUBIC's `w_max`
//! becomes the size found in this way, on which the draft is silent.

use super::flight::Flight;
use crate::extremes::RecentMin;
use crate::pacing::EXACTLY;
use crate::window::{UNLIMITED, Window};
use crate::{Connection, Init, Sample};
use knee_units::Time;

/// Bounds of the RTT above its minimum that allow to triple (Rapid Start Phase).
const LARGEST_INCREASE: Time = Time::from_millis(4);
const INCREASE_PART: u64 = 10;

/// K: the part of the decrease that happens at once.
const AT_ONCE: f64 = 11.0 / 18.0;

/// Percentage of the window per RTT at which the sender paces while the window triples.
const THRICE: u64 = 300;

/// Smallest window in segments (RFC 9002, section 7.2).
const SMALLEST: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Until the first acknowledgement.
    FirstFlight,
    Growing {
        triple: bool,
    },
    /// In the first recovery, with the window in bytes and its lower bound.
    Recovering {
        window: f64,
        floor: f64,
        flight: Flight,
    },
    Over,
}

#[derive(Clone, Debug)]
pub(crate) struct RapidStart {
    beta: f64,
    initial_window: u64,
    stage: Stage,
    /// Smallest RTT of the last round trip (rtt_floor).
    recent: RecentMin,
    /// [`Connection::lost`] at the last acknowledgement.
    lost: u64,
}

impl RapidStart {
    /// Creates it for a controller that multiplies its window by `beta` on loss.
    pub(crate) fn new(beta: f64, init: &Init) -> RapidStart {
        RapidStart {
            beta,
            initial_window: init.initial_window,
            stage: Stage::Growing { triple: false },
            recent: RecentMin::default(),
            lost: 0,
        }
    }

    /// Pacing Requirement: without knowledge of the path, the first flight has at most two initial
    /// windows, paced over one RTT.
    pub(crate) fn on_established(&mut self, window: &mut Window, connection: &Connection) {
        if connection.paced && connection.srtt > Time::ZERO {
            self.stage = Stage::FirstFlight;
            window.set(window.segments.saturating_mul(2));
        }
    }

    #[inline]
    pub(crate) fn observe(
        &mut self,
        window: &mut Window,
        sample: &Sample,
        connection: &Connection,
    ) {
        match self.stage {
            Stage::Over => {}
            Stage::Recovering { window: bytes, floor, mut flight } => {
                let (acked, lost) = flight.take(sample, connection);
                let bytes = self.reduce(bytes, acked, lost).max(floor);
                self.stage = Stage::Recovering { window: bytes, floor, flight };
                let segments = (bytes / f64::from(connection.mss.max(1))) as u32;
                window.set(segments.max(SMALLEST).min(window.segments));
                window.threshold = window.segments;
            }
            Stage::FirstFlight | Stage::Growing { .. } if window.threshold == UNLIMITED => {
                if let Some(rtt) = sample.rtt {
                    let triple = self.queue_is_empty(rtt, connection);
                    self.stage = Stage::Growing { triple };
                }
            }
            // After a timeout.
            Stage::FirstFlight | Stage::Growing { .. } => self.stage = Stage::Over,
        }
        self.lost = connection.lost;
    }

    /// Compares the smallest RTT of the last round trip with the connection's.
    fn queue_is_empty(&mut self, rtt: Time, connection: &Connection) -> bool {
        let min_rtt = connection.min_rtt.min(rtt);
        self.recent.update(min_rtt, connection.now, rtt);
        let limit = min_rtt + LARGEST_INCREASE.min(min_rtt / INCREASE_PART);
        self.recent.get().is_some_and(|floor| floor <= limit)
    }

    /// Congestion Handling: `cwnd -= ack_factor * acked + loss_factor * lost`.
    fn reduce(&self, window: f64, acked: u64, lost: u64) -> f64 {
        let at_once = AT_ONCE * (1.0 - self.beta);
        window - at_once * acked as f64 - (self.beta + at_once) * lost as f64
    }

    /// Grows the window; returns the rest of `acked` if that reaches the threshold.
    #[inline]
    pub(crate) fn grow(&self, window: &mut Window, acked: u32) -> u32 {
        match self.stage {
            Stage::Growing { triple: true } => window.slow_start(acked.saturating_mul(2)) / 2,
            _ => window.slow_start(acked),
        }
    }

    /// Begins the first recovery; returns false in any other.
    pub(crate) fn on_congestion(&mut self, window: &mut Window, connection: &Connection) -> bool {
        let growing = matches!(self.stage, Stage::FirstFlight | Stage::Growing { .. });
        if !growing || window.threshold != UNLIMITED {
            self.stage = Stage::Over;
            return false;
        }
        let mss = f64::from(connection.mss.max(1));
        let before = f64::from(window.segments) * mss;
        let silenced = before * (self.beta + AT_ONCE * (1.0 - self.beta));
        // At most two thirds are lost if the window tripled; and a tiny pipe keeps what classic
        // slow start would leave.
        let floor = (before * self.beta / 3.0).max(self.initial_window as f64 * self.beta);
        let flight = Flight::begin(connection, self.lost);
        self.stage = Stage::Recovering { window: silenced, floor: floor.min(silenced), flight };
        window.set(((silenced / mss) as u32).max(SMALLEST));
        window.threshold = window.segments;
        true
    }

    /// Ends the first recovery; returns the segments that the path and its queue hold.
    pub(crate) fn on_recovery_end(&mut self, window: &Window) -> Option<u32> {
        let Stage::Recovering { .. } = self.stage else { return None };
        self.stage = Stage::Over;
        Some((f64::from(window.segments) / self.beta) as u32)
    }

    /// Ends it after a timeout or a reduction that is undone.
    pub(crate) fn stop(&mut self) {
        self.stage = Stage::Over;
    }

    /// Returns the percentage of the window per RTT at which to pace, if it differs from the
    /// transport's usual one.
    #[inline]
    pub(crate) fn pacing(&self) -> Option<u64> {
        match self.stage {
            Stage::FirstFlight => Some(EXACTLY),
            Stage::Growing { triple: true } => Some(THRICE),
            _ => None,
        }
    }
}
