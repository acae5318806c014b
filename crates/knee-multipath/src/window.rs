//! The receive window shared by all paths of a connection.

use knee_units::Time;

/// Initial size of an auto-tuned window: 64 KiB, half of Linux's default
/// receive buffer (`tcp_rmem[1]`).
const INITIAL: u64 = 65_536;

/// The shared window: a buffer that begins at the next byte that the
/// application has not read. It includes data out of order.
///
/// Auto-tuning is Linux's dynamic right-sizing (`mptcp_rcv_space_adjust`): once per
/// round trip of the slowest path the buffer grows to twice what the application
/// read in it, so that the sender can double its rate. The round trip is the
/// sender's estimate, provided by the ground; a Linux receiver measures its own.
#[derive(Clone, Copy, Debug)]
pub struct SharedWindow {
    bytes: u64,
    /// Largest size; `None` if the size is constant.
    max: Option<u64>,
    /// Start of the round, and bytes read by then.
    round: (Time, u64),
}

impl SharedWindow {
    /// Creates a window of constant size, in bytes.
    pub fn fixed(bytes: u64) -> SharedWindow {
        SharedWindow { bytes, max: None, round: (Time::ZERO, 0) }
    }

    /// Creates an auto-tuned window of at most `max` bytes.
    pub fn tuned(max: u64) -> SharedWindow {
        SharedWindow { bytes: INITIAL.min(max), max: Some(max), round: (Time::ZERO, 0) }
    }

    /// Returns its size in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether its size follows what is read.
    #[inline]
    pub fn is_tuned(&self) -> bool {
        self.max.is_some()
    }

    /// Called when the application has read `read` bytes in total; `rtt` is
    /// that of the slowest path.
    #[inline]
    pub fn on_read(&mut self, now: Time, read: u64, rtt: Time) {
        let Some(max) = self.max else { return };
        if rtt == Time::ZERO || now < self.round.0 + rtt {
            return;
        }
        let copied = read - self.round.1;
        self.bytes = self.bytes.max(copied * 2).min(max);
        self.round = (now, read);
    }
}
