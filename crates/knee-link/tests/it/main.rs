//! Tests of `knee-link` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aqm;
mod common;
mod device;
mod dualpi2;
mod ends;
mod links;
mod pauses;
mod properties;
