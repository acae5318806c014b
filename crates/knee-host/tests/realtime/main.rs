//! Trials of `knee-host` in real time, or of what not every host has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "bpf")]
mod replay;
mod tcp_info;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [tcp_info::all()];
    let trials = trials.into_iter().flatten();
    #[cfg(feature = "bpf")]
    let trials = trials.chain(replay::all());
    knee_trials::run(trials)
}
