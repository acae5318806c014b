//! One connection over several paths: assigns data to paths, repeats and
//! releases it, and restores its order.
//!
//! ```text
//!   Source ─▶ Sending ─▶ scheduler ─▶ path ═══▶ path ─▶ Reassembly ─▶ application
//!                ▲                     path ═══▶ path       │
//!                └──── delivered, lost, acknowledged, ◀─────┘
//!                      credit (SharedWindow)
//! ```
//!
//! The schedulers are in [`sched`]. A path is anything that carries packets, has an RTT and reports
//! their outcome: a TCP subflow that retransmits its own losses, or a QUIC connection with
//! datagrams, which [reports losses](Sending::on_lost).
//!
//! What this crate never does: perform I/O, read a clock, know TCP or QUIC,
//! hold the bytes themselves.

mod capacity;
mod chunks;
mod reassembly;
mod ring;
mod runs;
pub mod sched;
mod sending;
mod silence;
mod source;
mod window;

pub use capacity::CapacityMeter;
pub use reassembly::{Reassembled, Reassembly};
pub use ring::Ring;
pub use sending::{Assignment, MultipathCounters, Release, Sending, Settings};
pub use silence::SilenceRule;
pub use source::{ByteCount, ENDLESS, Source};
pub use window::SharedWindow;
