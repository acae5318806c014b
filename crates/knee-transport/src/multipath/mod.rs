//! A connection over several TCP subflows, similar to MPTCP (RFC 8684).
//!
//! `knee-multipath` implements the connection itself: its sequence space,
//! shared receive window, reinjection, duplication and the suspicion of silent
//! paths. [`MultipathSender`] and [`MultipathReceiver`] run it over one
//! [`Sender`](crate::Sender) and [`Receiver`](crate::Receiver) for each path,
//! each with its own controller, RTT and loss recovery.
//!
//! As in MPTCP a subflow delivers in its own order, including data that has
//! meanwhile arrived on another path. Left out: keys and tokens, checksums,
//! fallback to TCP, and MP_FAIL. Joining takes a handshake of the subflow after
//! the first one is established; address advertisement takes no time.

mod mapping;
mod receiver;
mod sender;
mod transmit;
mod views;

use crate::config::ReceiveWindow;
use knee_multipath::SharedWindow;

pub use mapping::Mapping;
pub use receiver::{MultipathArrival, MultipathReceiver};
pub use sender::{MultipathSender, PathTimers};
pub use transmit::MultipathTransmit;

/// The peer's acknowledgement of the connection's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataAck {
    /// Next byte of the connection expected (data ACK, RFC 8684, section 3.3.2).
    pub next: u64,
    /// First byte beyond the shared receive window.
    pub window_end: u64,
}

fn shared_window(config: ReceiveWindow) -> SharedWindow {
    match config {
        ReceiveWindow::Unlimited => SharedWindow::fixed(ReceiveWindow::LARGEST_BYTES),
        ReceiveWindow::Fixed(bytes) => SharedWindow::fixed(bytes),
        ReceiveWindow::Auto { max } => SharedWindow::tuned(max),
    }
}
