//! Tests of `knee-sim` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acks;
mod after;
mod apart;
mod bbr;
mod bbr3;
mod common;
mod connections;
mod controllers;
mod determinism;
mod fixed;
mod golden;
mod invariants;
mod kernel;
mod l4s;
mod liars;
mod liveness;
mod looking;
mod marking;
mod multipath;
mod pauses;
mod random;
mod rates;
mod recorded_links;
mod registered;
mod reordering;
mod response;
mod shocks;
mod tables;
mod tunnels;
mod workloads;
