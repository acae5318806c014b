//! `knee steer`.

use super::{Print, Progress};
use clap::{Args, Subcommand, ValueHint};
use knee_lab::SEED_MAX;
use knee_scenario::Override;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee init --template mix
  knee steer rehearse mix.toml --set duration=60s --triples 24

docs/steer.md says what an experiment is here and how to read its verdict.";

/// `knee steer`.
#[derive(Debug, Args)]
pub struct Steer {
    /// What to do
    #[command(subcommand)]
    pub action: SteerAction,
}

/// The actions of `knee steer`.
#[derive(Debug, Subcommand)]
pub enum SteerAction {
    /// Carry an experiment out over the simulator, where the truth is known
    #[command(arg_required_else_help = true, after_help = REHEARSE)]
    Rehearse(Rehearse),
}

const REHEARSE: &str = "\
Examples:
  knee steer rehearse mix.toml --set duration=60s --triples 24
  knee steer rehearse site-a.toml site-b.toml --truth 0

A scenario holds two mixes of one process, one under each controller. A block is a
run of it with a seed of its own: all under the one, all under the other, or half
and half. Its duration is the length of a block, its warm-up the burn-in.";

/// `knee steer rehearse`.
#[derive(Debug, Args)]
pub struct Rehearse {
    /// Scenarios with mixes, each a group of clients
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Triples of blocks; 16 and more give an interval
    #[arg(long, value_name = "N", default_value_t = 24,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub triples: u64,
    /// Pairs of blocks before them, both under the controller in use: how large the
    /// noise is
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub calibration: u64,
    /// Pairs of runs that tell the truth: the same arrivals under each; 0: none
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub truth: u64,
    /// Set a key of every scenario
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of the draws and of the first block, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub progress: Progress,
    #[command(flatten)]
    pub print: Print,
}
