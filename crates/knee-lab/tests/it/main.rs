//! Tests of `knee-lab` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advise;
mod algorithms;
mod answers;
mod dying;
mod evaluate;
mod evaluate_programs;
mod evaluate_weak;
mod examples;
mod fit;
mod fit_files;
mod grounds;
mod parse_once;
mod perfect;
#[cfg(feature = "play")]
mod play;
mod rank;
mod rehearse;
mod train;
