//! A connection over several paths, in the manner of MPTCP (RFC 8684).
//!
//! ```text
//!   application ─▶ Sending ─▶ scheduler ─▶ path ═══▶ path ─▶ Reassembly ─▶ application
//!                     ▲                     path ═══▶ path       │
//!                     └──────── data ACK, shared window ◀────────┘
//! ```
//!
//! [`Sending`] and [`Reassembly`] are the connection itself: its sequence
//! space, acknowledgement, shared receive window, reinjection, duplication and
//! the suspicion of silent paths. They know nothing of TCP.
//! [`MultipathSender`] and [`MultipathReceiver`] run them over TCP subflows:
//! one [`Sender`](crate::Sender) and [`Receiver`](crate::Receiver) for each
//! path, each with its own controller, RTT and loss recovery.
//!
//! As in MPTCP a subflow delivers in its own order, also what another path
//! has brought meanwhile. Left out: keys and tokens, checksums, fallback to
//! TCP, and MP_FAIL. Joining takes a handshake of the subflow once the first
//! one is established; address advertisement takes no time.

mod chunks;
mod reassembly;
mod receiver;
mod runs;
mod sender;
mod sending;
mod silence;
mod window;

pub use reassembly::{Reassembled, Reassembly};
pub use receiver::{MultipathArrival, MultipathReceiver};
pub use sender::{MultipathSender, MultipathTransmit};
pub use sending::{Assignment, DataAck, MultipathCounters, Sending};
pub use window::SharedWindow;
