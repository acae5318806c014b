//! HyStart (Ha and Rhee, "Taming the elephants", 2011), as in Linux's
//! `tcp_cubic.c`: slow start ends before the first loss, as soon as one of two
//! signs shows that the pipe is full.
//!
//! - *ACK train*: closely spaced acknowledgements of one round have lasted
//!   longer than half the minimum RTT (the whole minimum RTT if the sender
//!   paces): the window covers the path.
//! - *Delay*: the smallest RTT of a round's first eight samples exceeds the
//!   minimum by an eighth: a queue has formed.

use crate::Connection;
use crate::window::Window;
use knee_units::Time;

/// Largest gap between acknowledgements of one train.
const TRAIN_GAP: Time = Time::from_millis(2);

/// RTT samples of a round that are taken before the delay is judged.
const SAMPLES: u8 = 8;

/// Bounds of the increase in delay that ends slow start.
const SMALLEST_INCREASE: Time = Time::from_millis(4);
const LARGEST_INCREASE: Time = Time::from_millis(16);

/// Bytes whose sending time lengthens a train: two bursts of segmentation
/// offload at each end, at twice the rate at which slow start paces.
const BURST_CUSHION: u64 = 4 * 65_536;

/// Upper limit of that time.
const LARGEST_CUSHION: Time = Time::from_millis(1);

#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    low_window: u32,
    found: bool,
    /// Smallest RTT since the start, or since the last timeout; zero before the first sample.
    min_rtt: Time,
    round_start: Time,
    /// Last acknowledgement that continued the train.
    train_end: Time,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    round_rtt: Time,
    samples: u8,
}

impl HyStart {
    pub(crate) fn new(low_window: u32) -> HyStart {
        HyStart {
            low_window,
            found: false,
            min_rtt: Time::ZERO,
            round_start: Time::ZERO,
            train_end: Time::ZERO,
            round_end: 0,
            round_rtt: Time::MAX,
            samples: 0,
        }
    }

    /// Begins again, after a timeout.
    pub(crate) fn restart(&mut self, connection: &Connection) {
        self.found = false;
        self.min_rtt = Time::ZERO;
        self.begin_round(connection);
    }

    fn begin_round(&mut self, connection: &Connection) {
        self.round_start = connection.now;
        self.train_end = connection.now;
        self.round_end = connection.sent;
        self.round_rtt = Time::MAX;
        self.samples = 0;
    }

    /// Processes an RTT sample; sets the threshold when the pipe is found full.
    #[inline]
    pub(crate) fn observe(&mut self, window: &mut Window, rtt: Time, connection: &Connection) {
        let rtt = rtt.max(Time::from_micros(1));
        if self.min_rtt == Time::ZERO || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if window.in_slow_start() && !self.found && self.pipe_is_full(window, rtt, connection) {
            self.found = true;
            window.threshold = window.segments;
        }
    }

    fn pipe_is_full(&mut self, window: &Window, rtt: Time, connection: &Connection) -> bool {
        // Below `low_window` too: rounds have to begin where flights do.
        if connection.acknowledged > self.round_end {
            self.begin_round(connection);
        }
        if window.segments < self.low_window {
            return false;
        }
        let train = self.train_is_long(window, connection);
        let delay = self.delay_has_grown(rtt);
        train || delay
    }

    fn train_is_long(&mut self, window: &Window, connection: &Connection) -> bool {
        let now = connection.now;
        if now.saturating_sub(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        let mut limit = self.min_rtt + cushion(window, connection);
        if !connection.paced {
            limit = limit / 2;
        }
        now.saturating_sub(self.round_start) > limit
    }

    fn delay_has_grown(&mut self, rtt: Time) -> bool {
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let increase = (self.min_rtt / 8).clamp(SMALLEST_INCREASE, LARGEST_INCREASE);
        self.round_rtt > self.min_rtt + increase
    }
}

/// Returns the time by which offload bursts lengthen a train at slow start's
/// pacing rate, two windows per smoothed RTT.
fn cushion(window: &Window, connection: &Connection) -> Time {
    let per_rtt = 2 * u64::from(window.segments) * u64::from(connection.mss);
    let stretch = BURST_CUSHION * connection.srtt.as_micros() / per_rtt.max(1);
    Time::from_micros(stretch).min(LARGEST_CUSHION)
}
