//! Tests of `knee-multipath` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capacity;
mod reassembly;
mod sched;
mod sending;
mod window;
