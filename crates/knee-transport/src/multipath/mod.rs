//! A connection over several TCP subflows, in the manner of MPTCP (RFC 8684).
//!
//! The connection itself is `knee-multipath`'s: its sequence space, shared
//! receive window, reinjection, duplication and the suspicion of silent paths.
//! [`MultipathSender`] and [`MultipathReceiver`] run it over one
//! [`Sender`](crate::Sender) and [`Receiver`](crate::Receiver) for each path,
//! each with its own controller, RTT and loss recovery.
//!
//! As in MPTCP a subflow delivers in its own order, also what another path
//! has brought meanwhile. Left out: keys and tokens, checksums, fallback to
//! TCP, and MP_FAIL. Joining takes a handshake of the subflow once the first
//! one is established; address advertisement takes no time.

mod receiver;
mod sender;

use crate::config::ReceiveWindow;
use knee_multipath::SharedWindow;

pub use receiver::{MultipathArrival, MultipathReceiver};
pub use sender::{MultipathSender, MultipathTransmit};

/// What the peer acknowledges of the connection's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataAck {
    /// Next byte of the connection expected (data ACK, RFC 8684, 3.3.2).
    pub next: u64,
    /// First byte that the shared receive window does not let through.
    pub window_end: u64,
}

fn shared_window(config: ReceiveWindow) -> SharedWindow {
    match config {
        ReceiveWindow::Unlimited => SharedWindow::fixed(ReceiveWindow::LARGEST_BYTES),
        ReceiveWindow::Fixed(bytes) => SharedWindow::fixed(bytes),
        ReceiveWindow::Auto { max } => SharedWindow::tuned(max),
    }
}
