//! `knee rank`.

use super::{Output, Print, REPEATS_MAX, grounds};
use clap::{Args, ValueHint};
use knee_lab::{Candidates, SEED_MAX};
use knee_scenario::Override;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee rank first.toml --repeat 10
  knee rank scenarios/ --cc bbr,cubic,copa --repeat 10
  knee rank stack.toml --cc cubic,newreno,bbr --on programs --repeat 5    (as root)
  knee rank first.toml --cc 'bbr,{ name = \"bbr\", drain_to_target = true }' --against cubic

Each controller takes the place of the first flow: alone, beside a second flow
of its own, and beside each of --against. After an interrupt, results so far are kept.";

/// `knee rank`.
#[derive(Debug, Args)]
pub struct Rank {
    /// Scenario files, or folders of them
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Controllers to rank. Default: all but `fixed` and `gcc`, with presets
    #[arg(long, value_name = "CC,CC…")]
    pub cc: Option<Candidates>,
    /// Controllers to run beside each of them. Default: cubic,bbr
    #[arg(long, value_name = "CC,CC…")]
    pub against: Option<Candidates>,
    /// Name of the flow that they replace. Default: the first
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// Set a key of every scenario
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of the first repeat, instead of the scenarios'
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run each K times with consecutive seeds, and print intervals
    #[arg(long, value_name = "K", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=REPEATS_MAX))]
    pub repeat: u64,
    /// Where to run; in real time, runs that the host disturbed are repeated, and do not
    /// count if that does not help
    #[arg(long, value_name = "GROUND", default_value = "sim", value_parser = grounds())]
    pub on: String,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub print: Print,
}
