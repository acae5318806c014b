//! Tests of `knee-verify` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod connections;
mod ends;
mod links;
mod malformed;
mod mutations;
mod pages;
mod pauses;
mod queues;
mod senders;
mod tidy;
