//! Arguments of `knee evaluate`.

use super::{Output, Print, grounds};
use clap::{Args, ValueHint};
use knee_lab::{Candidates, EVALUATE_SEEDS_REAL};
use knee_scenario::Override;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee evaluate bbr3
  knee evaluate '{ name = \"bbr\", drain_to_target = true }' --section 5.1.2 --section 7.1
  knee evaluate vegas --quick --format markdown
  knee evaluate copa --quick --search
  knee evaluate cubic --quick --against baseline/evaluation.json
  knee evaluate bbr --section 6.4 --trace cell.down   over a recorded link too
  knee evaluate cubic --section 5 --on sim,kernel     (as root) do both say the same?

The candidate runs every scenario of RFC 9743's criteria beside Reno, CUBIC and BBR on
the same seeds. Each line says whether it is better, alike or worse than each of them.
With --against it exits with 1 where a criterion got worse.";

/// `knee evaluate`.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// The controller, alone or with parameters, as a scenario has it
    #[arg(value_name = "CANDIDATE")]
    pub candidate: Candidates,
    /// A key of the candidate's flows alone: sampler=ns3-3.35, initial_window=32
    #[arg(long, value_name = "KEY=VALUE")]
    pub with: Vec<Override>,
    /// A section of RFC 9743, such as 5.1.2, or 5.2 for all below it. Default: all
    #[arg(long, value_name = "NUMBER")]
    pub section: Vec<String>,
    /// Where to run; with others beside the simulator the cases of --quick that all of
    /// them carry
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    /// Seeds of each run in real time
    #[arg(long, value_name = "K", default_value_t = EVALUATE_SEEDS_REAL,
        value_parser = clap::value_parser!(u64).range(1..=100))]
    pub repeat_real: u64,
    /// Run each K times, with the scenarios' seed and those that follow it. Default: 10,
    /// 5 with --quick
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub repeat: Option<u64>,
    /// The few cases of each section that show most
    #[arg(long)]
    pub quick: bool,
    /// Look for the worst case of each metric among N random scenarios and what evolves
    /// from them. Default: 48
    #[arg(long, value_name = "N", num_args = 0..=1,
          value_parser = clap::value_parser!(u64).range(3..=100_000))]
    pub search: Option<Option<u64>>,
    /// A recorded link in Mahimahi's format, over which section 6.4 runs too; several: once
    /// for each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Vec<PathBuf>,
    /// An evaluation.json: exit with 1 where the candidate got worse beyond noise
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub against: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub print: Print,
}
