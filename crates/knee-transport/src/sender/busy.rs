//! How long there was something to send, and what of it the receiver's window
//! held back (`tcp_chrono` in Linux's `tcp_output.c`). Left out: the time
//! limited by the send buffer, which the sender does not have.

use super::Sender;
use knee_units::Time;

/// Two stopwatches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// Up to the last stop.
    total: Time,
    /// Running since; [`Time::MAX`]: it does not run.
    since: Time,
    limited_total: Time,
    /// Limited by the receiver's window since; [`Time::MAX`]: not limited.
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
    /// Time so far with data to send or unacknowledged, from the first
    /// transmission after the sender was idle (Linux's `tcpi_busy_time`).
    pub fn busy(&self, now: Time) -> Time {
        until(now, self.busy.total, self.busy.since)
    }

    /// What of it the receiver's window held the sender back (Linux's
    /// `tcpi_rwnd_limited`).
    pub fn receive_limited(&self, now: Time) -> Time {
        until(now, self.busy.limited_total, self.busy.limited_since)
    }

    /// Something is sent, and nothing was outstanding.
    #[inline]
    pub(super) fn begin_busy(&mut self, now: Time) {
        self.busy.since = self.busy.since.min(now);
    }

    /// All that was sent is acknowledged.
    #[cold]
    pub(super) fn end_busy(&mut self, now: Time) {
        if self.written == self.board.sent_bytes() {
            self.busy.total = self.busy(now);
            self.busy.since = Time::MAX;
        }
    }

    /// The receiver's window holds new data back.
    #[cold]
    pub(super) fn begin_receive_limited(&mut self, now: Time) {
        self.busy.limited_since = self.busy.limited_since.min(now);
    }

    /// An ACK came: what to send next shows whether it still does.
    #[cold]
    pub(super) fn end_receive_limited(&mut self, now: Time) {
        self.busy.limited_total = self.receive_limited(now);
        self.busy.limited_since = Time::MAX;
    }
}
