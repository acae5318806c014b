//! One connection over several paths: what is sent where, repeated, released
//! and put in order again.
//!
//! ```text
//!   Source ─▶ Sending ─▶ scheduler ─▶ path ═══▶ path ─▶ Reassembly ─▶ application
//!                ▲                     path ═══▶ path       │
//!                └──── delivered, lost, acknowledged, ◀─────┘
//!                      credit (SharedWindow)
//! ```
//!
//! A path is whatever carries packets, has an RTT and says what became of
//! them: a TCP subflow that repeats what it lost itself, or a QUIC connection
//! with datagrams, which [tells of losses](Sending::on_lost).
//!
//! What this crate never does: I/O, read a clock, know TCP or QUIC, hold the
//! bytes themselves.

mod capacity;
mod chunks;
mod reassembly;
mod ring;
mod runs;
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
