//! Options of `knee fit`.

use super::{Print, Progress};
use clap::{Args, ValueHint};
use knee_lab::SEED_MAX;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  ping -D -c 100 HOST > ping.txt; iperf3 -c HOST -J > iperf3.json
  knee fit ping.txt iperf3.json --out path     path/path.toml, a scenario that runs
  knee run path/path.toml --set flow.bulk.cc=bbr
  knee fit knee-out/one --out path             also a page with both

Simulates the connection that was measured over other paths, until what the sender sees
is what it saw. What makes no difference to it stays unknown. docs/fit.md";

/// `knee fit`.
#[derive(Debug, Args)]
pub struct Fit {
    /// Files of one path: iperf3 -J, ping -D, irtt, flent, NDT7, or ss -ti with times; or the
    /// folder of a run with one flow that always sends, over one link
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath, required = true)]
    pub files: Vec<PathBuf>,
    /// Number of simulations
    #[arg(long, value_name = "N", default_value_t = 400,
        value_parser = clap::value_parser!(u16).range(50..))]
    pub simulations: u16,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: u64,
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Also write the scenario with the path, path.toml, its run in the simulator and, of a
    /// run, a page with both
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Replace the files of an earlier run
    #[arg(long, requires = "out")]
    pub force: bool,
    #[command(flatten)]
    pub progress: Progress,
    #[command(flatten)]
    pub print: Print,
}
