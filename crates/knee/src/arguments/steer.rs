//! `knee steer`.

use super::{Print, Progress};
use clap::{Args, Subcommand, ValueHint};
use knee_lab::SEED_MAX;
use knee_scenario::Override;
use knee_units::Time;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee init --template mix
  knee steer rehearse mix.toml --set duration=60s --triples 24
  knee steer plan policy.toml        says what would be done, as any user
  knee steer apply policy.toml       until Ctrl-C, then as before; as root
  knee steer status
  knee steer rollback
  knee steer host bbr --trial        what the host's default would be worth

docs/steer.md says what an experiment is here and how to read its verdict,
docs/policy.md what a policy is and how to go back.";

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
    /// Say what a policy would do to this host, and change nothing
    #[command(arg_required_else_help = true)]
    Plan(PolicyPlan),
    /// Steer new connections as a policy says, until it is stopped; then as before
    #[command(arg_required_else_help = true, after_help = APPLY)]
    Apply(Apply),
    /// Say what is applied and whether it is as it was made
    Status(Applied),
    /// Take back what was applied, by whichever process
    Rollback(Applied),
    /// The controller of connections that no policy names: look, try, set, go back
    #[command(after_help = HOST)]
    Host(Host),
    /// Take back what was applied when the process on the standard input is gone
    #[command(hide = true)]
    Guard(Guard),
}

const APPLY: &str = "\
Examples:
  knee steer apply policy.toml
  knee steer apply policy.toml --duration '1 h'

Routes in a table of their own name the controller for connections that begin; those
that are open keep theirs. When the process ends, however it ends, a second process
takes all back; what even that one missed, the next apply or rollback does. Needs
CAP_NET_ADMIN.";

/// `knee steer plan`.
#[derive(Debug, Args)]
pub struct PolicyPlan {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    #[command(flatten)]
    pub print: Print,
}

/// `knee steer apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    /// Take it back after this time. Default: at Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

/// `knee steer status`, `knee steer rollback`.
#[derive(Debug, Args)]
pub struct Applied {
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

/// Where the journal is.
#[derive(Debug, Args)]
pub struct Guard {
    /// What was done is written here before it is done; one for each network namespace
    #[arg(long = "journal", value_name = "FILE", default_value = "/run/knee/steer.journal",
        value_hint = ValueHint::FilePath)]
    pub path: PathBuf,
}

const HOST: &str = "\
Examples:
  knee steer host                    what decides it, now and at the next start
  knee steer host bbr                what would be done; changes nothing
  knee steer host bbr --trial        both over three paths made here; as root
  knee steer host bbr --apply        sets it, for each start too; as root
  knee steer host --undo             as before; as root

The setting is one file, /etc/sysctl.d/98-knee-congestion-control.conf, which says what
was set before. Where an administrator has set the default in a file, it stays.";

/// `knee steer host`.
#[derive(Debug, Args)]
pub struct Host {
    /// The kernel's name of a controller
    #[arg(value_name = "CONTROLLER", conflicts_with = "undo")]
    pub controller: Option<String>,
    /// Set it, now and for each start of the host
    #[arg(long, requires = "controller")]
    pub apply: bool,
    /// Try it beside the one that is set, on the kernel ground, before it is set
    #[arg(long, requires = "controller")]
    pub trial: bool,
    /// Take Knee's setting back
    #[arg(long)]
    pub undo: bool,
    #[command(flatten)]
    pub print: Print,
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
