//! Tests of `knee-transport` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acks;
mod attention;
mod ecn;
mod multipath;
mod order;
mod quick_acks;
mod recovery;
mod scoreboard;
mod shared_window;
