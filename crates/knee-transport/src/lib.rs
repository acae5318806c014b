//! Both ends of a connection as state machines: SACK scoreboard, RACK-TLP,
//! retransmission timeout, proportional rate reduction, undo of spurious
//! recoveries, delayed ACKs, pacing, delivery-rate sampling, ECN.
//!
//! One [`Sender`] and one [`Receiver`] form a connection over one path. Time is
//! an argument; they return what to send, and when to call again.
//!
//! What this crate never does: perform I/O, read a clock, allocate per packet
//! in steady state, know the ground it runs on.

mod ack_policy;
mod ack_request;
mod config;
mod lies;
pub mod multipath;
mod ns3;
mod pacing;
mod prefetch;
mod prr;
mod quick_acks;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod wire;

pub use ack_request::AckRequest;
pub use config::{AckFrequency, Acks, Config, Pacing, ReceiveWindow, Sampler};
pub use lies::Lies;
pub use pacing::Pacer;
pub use prefetch::prefetch;
pub use prr::Reduction;
pub use rate::RateSampler;
pub use receiver::{Arrival, Receiver};
pub use rtt::RttEstimator;
pub use scoreboard::Sent;
pub use sender::{Burst, Counters, Sender, TimerKind, Transmit, Wait};
pub use wire::{Ack, AckDetails, EcnBytes, SACK_BLOCKS_MAX, Segment, SegmentKind};

/// Whether `a` comes after `b` in wrapping 32-bit order.
#[inline]
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Whether `a` comes before `b` in wrapping 32-bit order.
#[inline]
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
