//! Tests of `knee-units` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod statistics;
mod text;
