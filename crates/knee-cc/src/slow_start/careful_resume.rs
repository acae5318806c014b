//! Careful Resume (RFC 9959): a connection continues with half the window that an earlier one had
//! on the same path, and retreats if that was too much.
//!
//! ```text
//!                 initial window acknowledged,       acknowledgement of what
//!                 RTT as saved                       the jump sent
//!   reconnaissance ----------------> unvalidated ------------------> validating ---> normal
//!                                        |                               |             ^
//!                                        +----- loss or mark: half of ---+             |
//!                                               what arrived                           |
//!                                                    v           recovery ends         |
//!                                              safe retreat ---------------------------+
//! ```
//! PipeSize is what has been shown to fit: the bytes in flight before the jump and all that is
//! acknowledged since, in the retreat without retransmissions.
//!
//! The transport must pace, and recovery is without proportional rate reduction, because the
//! retreat is immediate. What is saved comes from the scenario and never expires. The limits of
//! the unvalidated phase are checked at acknowledgements. Slow start is the standard one before
//! and after the jump.

use super::flight::Flight;
use crate::pacing::EXACTLY;
use crate::window::{UNLIMITED, Window};
use crate::{Connection, Init, Sample};
use knee_units::Time;

/// Part of the saved window to which it jumps (section 3.3).
const JUMP_PART: u64 = 2;

/// Part of PipeSize that is left as window in the retreat, and as threshold after it (section 3.5,
/// Beta).
const RETREAT_PART: u64 = 2;

/// Bounds of the RTT: at most half the saved one (section 3.2), or more than ten times that
/// (section 4.2.1), is another path.
const SHORTER: u64 = 2;
const LONGER: u64 = 10;

/// Smallest window in segments after congestion (RFC 9002, section 7.2).
const SMALLEST: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Reconnaissance,
    Unvalidated,
    Validating,
    SafeRetreat,
    Normal,
}

#[derive(Clone, Debug)]
pub(crate) struct CarefulResume {
    /// What an earlier connection measured: saved_cwnd in bytes, and saved_rtt, if known.
    saved_window: u64,
    saved_rtt: Option<Time>,
    initial_window: u64,
    stage: Stage,
    /// PipeSize in bytes.
    pipe: u64,
    /// When the jump was made, and the first byte sent after it.
    jumped_at: Time,
    first: u64,
    /// One past the last byte sent in the unvalidated phase.
    last: u64,
    /// What was in flight when the retreat began.
    flight: Flight,
}

impl CarefulResume {
    /// Creates it with the window, in segments, and the RTT that were saved.
    pub(crate) fn new(window: u64, rtt: Option<Time>, init: &Init) -> CarefulResume {
        CarefulResume {
            saved_window: window.saturating_mul(u64::from(init.mss)),
            saved_rtt: rtt,
            initial_window: init.initial_window,
            stage: Stage::Reconnaissance,
            pipe: 0,
            jumped_at: Time::ZERO,
            first: 0,
            last: 0,
            flight: Flight::default(),
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
            Stage::Normal => return,
            Stage::Reconnaissance => return self.reconnoitre(window, connection),
            Stage::Unvalidated | Stage::Validating | Stage::SafeRetreat => {}
        }
        let acked = match self.stage {
            Stage::SafeRetreat => self.flight.take(sample, connection).0,
            _ => sample.newly_acked,
        };
        self.pipe = self.pipe.saturating_add(acked);
        if self.stage == Stage::Unvalidated && self.jump_is_over(window, connection) {
            self.validate(window, connection);
        } else if self.stage == Stage::Validating && connection.acknowledged >= self.last {
            self.stage = Stage::Normal;
        }
    }

    /// Section 3.2: waits until the initial window has arrived and more than the window allows is
    /// to be sent.
    fn reconnoitre(&mut self, window: &mut Window, connection: &Connection) {
        if window.threshold != UNLIMITED || self.is_other_path(connection.min_rtt) {
            self.stage = Stage::Normal;
        } else if connection.acknowledged >= self.initial_window && connection.window_limited {
            self.jump(window, connection);
        }
    }

    fn is_other_path(&self, rtt: Time) -> bool {
        let Some(saved) = self.saved_rtt else { return false };
        rtt != Time::ZERO && (rtt <= saved / SHORTER || rtt > saved * LONGER)
    }

    fn jump(&mut self, window: &mut Window, connection: &Connection) {
        let segments = segments(self.saved_window / JUMP_PART, connection);
        if segments <= window.segments {
            self.stage = Stage::Normal;
            return;
        }
        self.stage = Stage::Unvalidated;
        self.pipe = connection.in_flight;
        self.jumped_at = connection.now;
        self.first = connection.sent;
        window.set(segments);
    }

    /// Section 3.3: the window is used up, what was sent first has arrived, or an RTT has passed.
    fn jump_is_over(&self, window: &Window, connection: &Connection) -> bool {
        let used = connection.in_flight >= u64::from(window.segments) * u64::from(connection.mss);
        let arrived = connection.acknowledged > self.first;
        used || arrived || connection.now.saturating_sub(self.jumped_at) > connection.srtt
    }

    /// Continues with what is in flight, if that is more than has been shown to fit.
    fn validate(&mut self, window: &mut Window, connection: &Connection) {
        let flight = connection.in_flight;
        self.last = connection.sent;
        let (bytes, next) = if flight < self.initial_window || flight <= self.pipe {
            (self.pipe.max(self.initial_window), Stage::Normal)
        } else {
            (flight, Stage::Validating)
        };
        self.stage = next;
        window.set(segments(bytes, connection).min(window.segments));
    }

    /// Grows the window, except in the unvalidated phase; returns the rest of `acked` if that
    /// reaches the threshold.
    #[inline]
    pub(crate) fn grow(&self, window: &mut Window, acked: u32) -> u32 {
        if self.stage == Stage::Unvalidated { 0 } else { window.slow_start(acked) }
    }

    /// Begins the retreat (section 3.5); returns false if there was no jump.
    pub(crate) fn on_congestion(&mut self, window: &mut Window, connection: &Connection) -> bool {
        if !matches!(self.stage, Stage::Unvalidated | Stage::Validating) {
            self.stage = Stage::Normal;
            return false;
        }
        self.stage = Stage::SafeRetreat;
        self.flight = Flight::begin(connection, connection.lost);
        window.set(self.retreat(connection).min(window.segments));
        window.threshold = window.segments;
        true
    }

    fn retreat(&self, connection: &Connection) -> u32 {
        segments(self.pipe / RETREAT_PART, connection).max(SMALLEST)
    }

    /// Ends the retreat; returns PipeSize in segments.
    pub(crate) fn on_recovery_end(
        &mut self,
        window: &mut Window,
        connection: &Connection,
    ) -> Option<u32> {
        if self.stage != Stage::SafeRetreat {
            return None;
        }
        self.stage = Stage::Normal;
        window.threshold = self.retreat(connection).max(window.segments);
        Some(segments(self.pipe, connection).max(SMALLEST))
    }

    /// Limits the threshold after a timeout that follows the jump.
    pub(crate) fn on_timeout(&mut self, window: &mut Window, connection: &Connection) {
        if !matches!(self.stage, Stage::Reconnaissance | Stage::Normal) {
            window.threshold = window.threshold.min(self.retreat(connection));
        }
        self.stage = Stage::Normal;
    }

    /// Ends it after a reduction that is undone.
    pub(crate) fn stop(&mut self) {
        self.stage = Stage::Normal;
    }

    /// Returns the percentage of the window per RTT at which to pace, if it differs from the
    /// transport's usual one (section 4.3).
    #[inline]
    pub(crate) fn pacing(&self) -> Option<u64> {
        (self.stage == Stage::Unvalidated).then_some(EXACTLY)
    }

    /// Returns the name of the phase, as in draft-ietf-tsvwg-careful-resume-qlog-02.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        match self.stage {
            Stage::Reconnaissance => Some("reconnaissance"),
            Stage::Unvalidated => Some("unvalidated"),
            Stage::Validating => Some("validating"),
            Stage::SafeRetreat => Some("safe_retreat"),
            Stage::Normal => None,
        }
    }
}

fn segments(bytes: u64, connection: &Connection) -> u32 {
    (bytes / u64::from(connection.mss.max(1))).min(u64::from(UNLIMITED)) as u32
}
