//! Tests of `knee-workload` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bursts;
mod common;
mod dash;
mod files;
mod mix;
mod page;
