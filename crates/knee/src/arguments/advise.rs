//! `knee advise`.

use super::{Print, Progress};
use clap::{Args, ValueHint};
use knee_lab::{Candidates, SEED_MAX};
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee observe --out live && knee advise live
  knee advise live --candidates bbr,bbr3 --groups 3
  knee advise live --out advice && knee steer plan advice/advised.toml
  knee run mix.toml && knee advise knee-out/mix --format markdown
  ping -D -c 50 HOST > ping.txt; iperf3 -c HOST -J > iperf3.json
  knee advise ping.txt iperf3.json             a long transfer over that path

Simulated paths are fitted to each group (prefix and port, or flow of a run), and
the candidates run on them. docs/advise.md describes how reliable that is.";

/// `knee advise`.
#[derive(Debug, Args)]
pub struct Advise {
    /// Folders of knee observe or of runs, files of connections, or files of one path
    /// that knee fit reads: iperf3 -J, ping -D, irtt, flent, NDT7, ss -ti
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub by: Advising,
    /// Also write a page, report.html, and a policy of the experiments worth
    /// making, advised.toml; for files of one path the scenario with it, path.toml
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

/// How advice is found.
#[derive(Debug, Args)]
pub struct Advising {
    /// Candidate controllers. Default: bbr, and cubic where BBR is in use
    #[arg(long, value_name = "NAME,…")]
    pub candidates: Option<Candidates>,
    /// Controller of the connections of which no scan saw it, by its name in the
    /// kernel. Default: the host's default while it was observed
    #[arg(long, value_name = "NAME")]
    pub in_use: Option<String>,
    /// Number of groups to examine, those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub groups: u16,
    /// Simulations of the controller in use for each group
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(20..))]
    pub simulations: u16,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: u64,
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}
