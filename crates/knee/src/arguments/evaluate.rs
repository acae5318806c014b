//! Arguments of `knee evaluate`.

use super::{Output, Print, grounds};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use knee_lab::{Candidates, EVALUATE_SEEDS_REAL, built_in_suites};
use knee_scenario::Override;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee evaluate bbr3
  knee evaluate '{ name = \"bbr\", drain_to_target = true }' --section 5.1.2 --section 7.1
  knee evaluate vegas --quick --format markdown
  knee evaluate copa --quick --search
  knee evaluate cubic --quick --against baseline/evaluation.json
  knee evaluate bbr3 --search --report rfc9743.md     for a working group
  knee evaluate bbr --section 6.4 --trace cell.down   over a recorded link too
  knee evaluate cubic --section 5 --on sim,kernel     (as root) do both agree?
  knee evaluate programs/quic-go.toml --on programs   a program, beside the kernel's
  knee evaluate bbr3 --suite bbr-draft                the test cases of the BBR draft

The candidate runs every scenario of RFC 9743's criteria beside Reno, CUBIC and BBR on
the same seeds. Each line tells whether it is better, alike or worse than each of them.
With --against it exits with 1 if a criterion got worse, with --report alone if one
fails.";

/// `knee evaluate`.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// The controller, alone or with parameters, as in a scenario; with --on programs,
    /// a scenario file with a program
    #[arg(value_name = "CANDIDATE")]
    pub candidate: Candidates,
    /// Set a key of the candidate's flows only: sampler=ns3-3.35,
    /// initial_window=32
    #[arg(long, value_name = "KEY=VALUE")]
    pub with: Vec<Override>,
    /// Only this section of RFC 9743, such as 5.1.2, or 5.2 with all its
    /// subsections. Default: all
    #[arg(long, value_name = "NUMBER")]
    pub section: Vec<String>,
    /// Instead of RFC 9743's criteria, run the test cases of this suite; exit with 1 if
    /// one of their checks fails
    #[arg(long, value_name = "NAME", value_parser = suites(), conflicts_with_all = [
        "section", "repeat_real", "repeat", "quick", "search", "trace", "against", "report"])]
    pub suite: Option<String>,
    /// Where to run; with further grounds, only the cases of --quick that all of them
    /// can run; programs alone, for a candidate that is one
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    /// Seeds of each run in real time
    #[arg(long, value_name = "K", default_value_t = EVALUATE_SEEDS_REAL,
        value_parser = clap::value_parser!(u64).range(1..=100))]
    pub repeat_real: u64,
    /// Run each case K times with consecutive seeds; below 10, as many times again
    /// where the candidate would be worse than all. Default: 10, 5 with --quick
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub repeat: Option<u64>,
    /// Only the most informative cases of each section
    #[arg(long)]
    pub quick: bool,
    /// Search for the worst case of each metric, starting from N random scenarios.
    /// Default: 48
    #[arg(long, value_name = "N", num_args = 0..=1,
          value_parser = clap::value_parser!(u64).range(3..=100_000))]
    pub search: Option<Option<u64>>,
    /// A recorded link in Mahimahi's format for section 6.4; can be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Vec<PathBuf>,
    /// An earlier evaluation.json: exit with 1 if the candidate got significantly
    /// worse
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub against: Option<PathBuf>,
    /// Write a report to FILE, Markdown in the order of RFC 9743, and exit with 1 if
    /// a criterion fails or could not be tried
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub print: Print,
}

fn suites() -> PossibleValuesParser {
    built_in_suites().into()
}
