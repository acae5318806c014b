//! `knee train`.

use clap::{Args, ValueHint};
use knee_lab::SEED_MAX;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee train paths/*.toml --out my.table
  knee run path.toml --set 'flow.main.cc={ name = \"remycc\", table = \"my.table\" }'

The flows with cc = \"remycc\" are trained, the others run beside them. The same
scenarios and options give the same table, whatever --jobs says. Ctrl-C keeps the
best table so far.";

/// `knee train`.
#[derive(Debug, Args)]
pub struct Train {
    /// Scenarios, or folders of them
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Seed of the first run of each scenario
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: u64,
    /// Seeds of each scenario, from that one on
    #[arg(long, value_name = "K", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Number of rounds in which all rules are improved; each round but the first
    /// begins with a split
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Weight of delay against goodput; 1 is power
    #[arg(long, value_name = "W", default_value_t = 1.0, value_parser = weight)]
    pub delay_weight: f64,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "remycc.table",
        value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| (0.0..=100.0).contains(weight));
    weight.ok_or_else(|| "write a number from 0 to 100".to_string())
}
