//! Tests of `knee-record` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bootstrap;
mod claims;
mod common;
mod connections;
mod damage;
mod documents;
mod measures;
mod offered;
mod parts;
mod rank_statistics;
mod run_directory;
mod streamed;
mod study_measures;
mod sweep_statistics;
