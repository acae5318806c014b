//! The receive window that all paths of a connection share.

use crate::config::ReceiveWindow;
use knee_units::Time;

/// What an auto-tuned window begins with: 64 KiB, half of Linux's default
/// receive buffer (`tcp_rmem[1]`).
const INITIAL: u64 = 65_536;

/// The shared window: a buffer that begins at the next byte expected. The
/// application reads at once, so only data out of order takes room in it, and
/// that lies within the window.
///
/// Auto-tuning is Linux's dynamic right-sizing (`mptcp_rcv_space_adjust`):
/// once per round trip of the slowest path the buffer grows to twice what the
/// application got in it, so that the sender can double its rate. The round
/// trip is the sender's estimate, which the ground hands over; a Linux
/// receiver measures its own.
#[derive(Clone, Copy, Debug)]
pub struct SharedWindow {
    bytes: u64,
    /// Largest size; none: the size is fixed.
    max: Option<u64>,
    /// Begin of the round and bytes delivered by then.
    round: (Time, u64),
}

impl SharedWindow {
    /// The window that a connection is set to.
    pub fn new(config: ReceiveWindow) -> SharedWindow {
        let (bytes, max) = match config {
            ReceiveWindow::Unlimited => (ReceiveWindow::LARGEST_BYTES, None),
            ReceiveWindow::Fixed(bytes) => (bytes, None),
            ReceiveWindow::Auto { max } => (INITIAL.min(max), Some(max)),
        };
        SharedWindow { bytes, max, round: (Time::ZERO, 0) }
    }

    /// Its size in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its size follows what is delivered.
    #[inline]
    pub fn is_tuned(&self) -> bool {
        self.max.is_some()
    }

    /// The application has `delivered` bytes in all; `rtt` is that of the
    /// slowest path.
    #[inline]
    pub fn on_delivered(&mut self, now: Time, delivered: u64, rtt: Time) {
        let Some(max) = self.max else { return };
        if rtt == Time::ZERO || now < self.round.0 + rtt {
            return;
        }
        let copied = delivered - self.round.1;
        self.bytes = self.bytes.max(copied * 2).min(max);
        self.round = (now, delivered);
    }
}
