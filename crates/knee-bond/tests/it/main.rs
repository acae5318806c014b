//! Tests of `knee-bond` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod config;
mod egress;
mod judge;
mod page;
mod words;
