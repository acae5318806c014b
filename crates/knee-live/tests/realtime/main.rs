//! Trials of `knee-live` in real time, or of what not every host has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hops;
mod observe;
mod open;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [observe::all(), open::all(), hops::all()];
    let trials = trials.into_iter().flatten();
    knee_trials::run(trials)
}
