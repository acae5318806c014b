//! Trials of `knee-bond` in real time, or of what not every host has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]

mod house;
#[allow(dead_code, reason = "the benchmarks use more of it")]
mod lab;
mod links;
mod targets;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [links::all(), targets::all(), house::all()];
    let trials = trials.into_iter().flatten();
    knee_trials::run(trials)
}
