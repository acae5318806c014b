//! Tests of `knee-quic` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "QUIC counts from an instant; the clock is virtual")]

mod links;
mod number_spaces;
mod quinn;
mod reordering;
mod strangers;
mod world;
