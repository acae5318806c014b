//! Tests of `knee-steer` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forecast;
mod simulated;
