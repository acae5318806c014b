//! Measures how long there was data to send, and for how much of that the
//! receiver's window was the limit (`tcp_chrono` in Linux's `tcp_output.c`). Left
//! out: the time limited by the send buffer, which the sender does not have.

use super::Sender;
use knee_units::Time;

/// Two stopwatches: busy time, and time limited by the receiver's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// Total up to the last stop.
    total: Time,
    /// Start of the current period; [`Time::MAX`] if stopped.
    since: Time,
    limited_total: Time,
    /// Start of the period limited by the receiver's window; [`Time::MAX`] if not limited.
    pub limited_since: Time,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy {
            total: Time::ZERO,
            since: Time::MAX,
            limited_total: Time::ZERO,
            limited_since: Time::MAX,
        }
    }
}

fn until(now: Time, total: Time, since: Time) -> Time {
    if since == Time::MAX { total } else { total + now.saturating_sub(since) }
}

impl Sender {
    /// Returns the time so far with data to send or unacknowledged, from the
    /// first transmission after the sender was idle (Linux's `tcpi_busy_time`).
    pub fn busy(&self, now: Time) -> Time {
        until(now, self.busy.total, self.busy.since)
    }

    /// Returns the part of it in which the receiver's window limited the sender
    /// (Linux's `tcpi_rwnd_limited`).
    pub fn receive_limited(&self, now: Time) -> Time {
        until(now, self.busy.limited_total, self.busy.limited_since)
    }

    /// Called when data is sent while nothing was outstanding.
    #[inline]
    pub(super) fn begin_busy(&mut self, now: Time) {
        self.busy.since = self.busy.since.min(now);
    }

    /// Called when everything sent is acknowledged.
    #[cold]
    pub(super) fn end_busy(&mut self, now: Time) {
        if self.written == self.board.sent_bytes() {
            self.busy.total = self.busy(now);
            self.busy.since = Time::MAX;
        }
    }

    /// Called when the receiver's window blocks new data.
    #[cold]
    pub(super) fn begin_receive_limited(&mut self, now: Time) {
        self.busy.limited_since = self.busy.limited_since.min(now);
    }

    /// Called on an ACK: the next poll shows whether the window still blocks.
    #[cold]
    pub(super) fn end_receive_limited(&mut self, now: Time) {
        self.busy.limited_total = self.receive_limited(now);
        self.busy.limited_since = Time::MAX;
    }
}
