//! HyStart++ (RFC 9406): slow start that slows down when the RTT of a round
//! rises, and resumes if the rise was temporary.
//!
//! ```text
//!   slow start ----- RTT up by an eighth -----> conservative (a quarter as fast)
//!       ^                                          |               |
//!       +------- RTT below that of its begin ------+               | five rounds
//!                                                                  v
//!                                                        congestion avoidance
//! ```
//! Runs only in the first slow start (section 4.3). The limit L on growth per
//! acknowledgement applies if the sender does not pace.

use crate::window::{UNLIMITED, Window};
use crate::{Connection, Sample};
use knee_units::Time;

/// MIN_RTT_THRESH and MAX_RTT_THRESH.
const SMALLEST_INCREASE: Time = Time::from_millis(4);
const LARGEST_INCREASE: Time = Time::from_millis(16);
/// MIN_RTT_DIVISOR.
const INCREASE_PART: u64 = 8;
/// N_RTT_SAMPLE.
const SAMPLES: u32 = 8;
/// CSS_GROWTH_DIVISOR.
const SLOWER: u32 = 4;
/// CSS_ROUNDS.
const CONSERVATIVE_ROUNDS: u32 = 5;
/// L, for senders that do not pace.
const LARGEST_STEP: u32 = 8;

#[derive(Clone, Debug)]
pub(crate) struct HyStartPlusPlus {
    /// windowEnd.
    round_end: u64,
    /// lastRoundMinRTT and currentRoundMinRTT.
    last_rtt: Time,
    round_rtt: Time,
    samples: u32,
    /// In conservative slow start: cssBaselineMinRtt, and rounds begun in that phase.
    conservative: Option<(Time, u32)>,
    /// Segments acknowledged that have not yet grown the window.
    credit: u32,
}

impl HyStartPlusPlus {
    pub(crate) fn new() -> HyStartPlusPlus {
        HyStartPlusPlus {
            round_end: 0,
            last_rtt: Time::MAX,
            round_rtt: Time::MAX,
            samples: 0,
            conservative: None,
            credit: 0,
        }
    }

    /// Processes an acknowledgement (section 4.2); sets the threshold when the
    /// conservative rounds are over.
    pub(crate) fn observe(
        &mut self,
        window: &mut Window,
        sample: &Sample,
        connection: &Connection,
    ) {
        if window.threshold != UNLIMITED {
            return;
        }
        if connection.acknowledged > self.round_end {
            self.begin_round(window, connection);
        }
        let Some(rtt) = sample.rtt else { return };
        self.round_rtt = self.round_rtt.min(rtt);
        self.samples += 1;
        if self.samples < SAMPLES {
            return;
        }
        match self.conservative {
            None if self.has_risen() => self.conservative = Some((self.round_rtt, 0)),
            Some((baseline, _)) if self.round_rtt < baseline => self.conservative = None,
            _ => {}
        }
    }

    fn begin_round(&mut self, window: &mut Window, connection: &Connection) {
        self.round_end = connection.sent;
        self.last_rtt = std::mem::replace(&mut self.round_rtt, Time::MAX);
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            // The partial round in which the phase began counts as one.
            if *rounds >= CONSERVATIVE_ROUNDS {
                window.threshold = window.segments;
            }
        }
    }

    fn has_risen(&self) -> bool {
        if self.last_rtt == Time::MAX {
            return false;
        }
        let increase = self.last_rtt / INCREASE_PART;
        self.round_rtt >= self.last_rtt + increase.clamp(SMALLEST_INCREASE, LARGEST_INCREASE)
    }

    /// Grows the window up to its threshold; returns the rest.
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) -> u32 {
        if window.threshold != UNLIMITED {
            return window.slow_start(acked);
        }
        let mut step = if connection.paced { acked } else { acked.min(LARGEST_STEP) };
        if self.conservative.is_some() {
            let saved = self.credit + step;
            step = saved / SLOWER;
            self.credit = saved % SLOWER;
        }
        window.slow_start(step)
    }

    /// Returns the name of the phase, if it differs from slow start.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        self.conservative.map(|_| "conservative_slow_start")
    }
}
