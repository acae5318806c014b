//! Tests of `knee-policy` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apply;
mod environment;
mod experiment;
mod faults;
mod guard;
mod journal;
mod run;
mod site;
