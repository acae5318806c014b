//! Trials of `knee-policy` in real time, or of what not every host has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod namespaces;
mod parts;
#[cfg(feature = "bpf")]
mod programs;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [namespaces::all(), parts::all()];
    let trials = trials.into_iter().flatten();
    #[cfg(feature = "bpf")]
    let trials = trials.chain(programs::all());
    knee_trials::run(trials)
}
