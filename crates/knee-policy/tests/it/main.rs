//! Tests of `knee-policy` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod experiment;
mod faults;
mod journal;
mod site;
