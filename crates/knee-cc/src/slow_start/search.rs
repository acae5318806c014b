//! SEARCH, "slow start exit at right chokepoint" (draft-chung-ccwg-search-09): slow start ends
//! when clearly less arrives than was sent one round trip before.
//!
//! ```text
//!   sent        |-------- ten bins --------|
//!                                          <---- RTT ---->
//!   delivered                  |-------- ten bins --------| now
//! ```
//! While the path has room, the lower window has as many bytes as the upper one. Once the
//! bottleneck is full, what is sent grows on and what arrives does not. A window covers 3.5 times
//! the first RTT, so that variations of the link average out.
//!
//! Runs only in the first slow start. The drain phase after the exit (section 3.2) is left out, as
//! is the compression of bins to 16 bits. A pause of more than a window begins anew, which the
//! draft leaves optional. Between two bins the window that was sent is interpolated backwards: the
//! draft's formula steps forward, into data sent less than one round trip ago.

use crate::Connection;
use knee_units::Time;

/// Bins of a window (W).
const BINS: u64 = 10;

/// Largest number of bins in a round trip (EXTRA_BINS): with a longer RTT, nothing is judged.
const EXTRA_BINS: u64 = 15;

/// Length of a window in tenths of the first RTT (WINDOW_SIZE = 3.5 x the initial RTT).
const WINDOW_TENTHS: u64 = 35;

/// Smallest missing part of the window that ends slow start (THRESH); 0.35 up to version 08, which
/// compared with twice what was delivered before.
const THRESHOLD: f64 = 0.26;

/// Bins of which the bytes delivered are kept, and those sent.
const DELIVERED_KEPT: usize = BINS as usize + 1;
const SENT_KEPT: usize = (BINS + EXTRA_BINS) as usize + 1;

#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Length of a bin; zero before the first RTT sample.
    bin: Time,
    /// Number of the current bin, and when it ends.
    number: u64,
    end: Time,
    /// Total bytes at the beginning of each bin.
    delivered: [u64; DELIVERED_KEPT],
    sent: [u64; SENT_KEPT],
}

impl Search {
    /// Begins anew with the next acknowledgement.
    pub(crate) fn restart(&mut self) {
        self.bin = Time::ZERO;
    }

    /// Processes an acknowledgement in slow start; returns true when the pipe is found full.
    #[inline]
    pub(crate) fn pipe_is_full(&mut self, rtt: Time, connection: &Connection) -> bool {
        if self.bin == Time::ZERO {
            self.begin(rtt, connection);
            return false;
        }
        connection.now > self.end && self.next_bin(connection) && self.delivery_lags(rtt)
    }

    fn begin(&mut self, rtt: Time, connection: &Connection) {
        let window = rtt * WINDOW_TENTHS / 10;
        self.bin = (window / BINS).max(Time::from_micros(1));
        self.number = 0;
        self.end = connection.now + self.bin;
        self.note(connection);
    }

    /// Goes on to the bin of the current time; false if a whole window was missed.
    fn next_bin(&mut self, connection: &Connection) -> bool {
        let late = connection.now - self.end;
        let passed = late.as_nanos() / self.bin.as_nanos() + 1;
        if passed > BINS {
            self.restart();
            return false;
        }
        // Bins without an acknowledgement have the totals of the last one.
        let (delivered, sent) = (self.delivered_at(self.number), self.sent_at(self.number));
        for _ in 1..passed {
            self.number += 1;
            self.set(delivered, sent);
        }
        self.number += 1;
        self.end += self.bin * passed;
        self.note(connection);
        true
    }

    fn note(&mut self, connection: &Connection) {
        self.set(connection.delivered, connection.sent);
    }

    fn set(&mut self, delivered: u64, sent: u64) {
        self.delivered[self.number as usize % DELIVERED_KEPT] = delivered;
        self.sent[self.number as usize % SENT_KEPT] = sent;
    }

    fn delivered_at(&self, number: u64) -> u64 {
        self.delivered[number as usize % DELIVERED_KEPT]
    }

    fn sent_at(&self, number: u64) -> u64 {
        self.sent[number as usize % SENT_KEPT]
    }

    /// Section 3.2: compares the last window of bytes delivered with that of bytes sent one RTT
    /// before.
    fn delivery_lags(&self, rtt: Time) -> bool {
        let (rtt, bin) = (rtt.as_nanos(), self.bin.as_nanos());
        let back = rtt / bin;
        if back >= EXTRA_BINS || self.number <= back + BINS {
            return false;
        }
        let delivered = self.delivered_at(self.number);
        let delivered = delivered.saturating_sub(self.delivered_at(self.number - BINS)) as f64;
        let sent_until = |last: u64| {
            let first = self.sent_at(last - BINS);
            self.sent_at(last).saturating_sub(first) as f64
        };
        let last = self.number - back;
        let earlier = (rtt % bin) as f64 / bin as f64;
        let sent = sent_until(last) * (1.0 - earlier) + sent_until(last - 1) * earlier;
        sent > 0.0 && sent - delivered >= THRESHOLD * sent
    }
}
