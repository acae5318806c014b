//! Trials of `knee` in real time, or of what not every host has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auto;
#[cfg(feature = "bpf")]
mod bpf;
#[path = "../it/common/mod.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod common;
mod experiment;
#[cfg(feature = "bond")]
mod hosts;
mod kernel;
mod observe;
mod policy;
mod programs;
#[cfg(feature = "quic")]
mod quic;
mod shell;
mod site;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [auto::all(), experiment::all(), kernel::all(), observe::all()];
    let trials = trials.into_iter().chain([policy::all(), programs::all()]);
    let trials = trials.chain([shell::all(), site::all()]).flatten();
    #[cfg(feature = "bpf")]
    let trials = trials.chain(bpf::all());
    #[cfg(feature = "bond")]
    let trials = trials.chain(hosts::all());
    #[cfg(feature = "quic")]
    let trials = trials.chain(quic::all());
    knee_trials::run(trials)
}
