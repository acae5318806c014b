//! Tests of `knee-scenario` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod after;
mod cached;
mod common;
mod pauses;
mod properties;
mod reference;
mod right;
mod schema;
mod swapped;
mod wrong;
