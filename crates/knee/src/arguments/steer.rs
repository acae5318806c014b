//! `knee steer`.

use super::{Print, Progress};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
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
  knee steer run policy.toml --blocks blocks.jsonl    an experiment; as root
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
    /// Carry an experiment out on this host: two controllers, block by block
    #[command(arg_required_else_help = true, after_help = RUN)]
    Run(Box<SteerRun>),
    /// Make a key that signs policies, and print the line for hosts that trust it
    #[command(arg_required_else_help = true)]
    Keys(Keys),
    /// Write a policy with its signature
    #[command(arg_required_else_help = true, after_help = SIGN)]
    Sign(Sign),
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

BPF programs give connections that begin their controller, and those that are open if
the policy says so; else, and without BPF, routes in a table of their own, for those
that begin. When the process ends, however it ends, a second process takes all back;
what even that one missed, the next apply or rollback does. Needs CAP_NET_ADMIN, and
CAP_BPF and CAP_PERFMON for programs.";

/// `knee steer plan`.
#[derive(Debug, Args)]
pub struct PolicyPlan {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    #[command(flatten)]
    pub trust: Trust,
    #[command(flatten)]
    pub print: Print,
}

const SIGN: &str = "\
Examples:
  knee steer keys steer.key >steer.trust
  knee steer sign policy.toml --key steer.key --out signed.toml
  knee steer plan signed.toml --trust steer.trust

A policy that is signed has a version, which only rises, and expires. A host with
/etc/knee/steer.trust takes no others.";

/// `knee steer keys`.
#[derive(Debug, Args)]
pub struct Keys {
    /// File of the key; where it is there, its line is printed
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `knee steer sign`.
#[derive(Debug, Args)]
pub struct Sign {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    /// The key, of knee steer keys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,
    /// Where to write it; may be the policy itself
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
}

/// Whose policies are taken.
#[derive(Debug, Args)]
pub struct Trust {
    /// Take only policies that are signed by a key of this file. Default:
    /// /etc/knee/steer.trust, if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trust: Option<PathBuf>,
    /// The versions of signed policies that this host has had
    #[arg(long, value_name = "FILE", default_value = "/var/lib/knee/steer.versions",
        value_hint = ValueHint::FilePath)]
    pub versions: PathBuf,
}

/// `knee steer apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    #[command(flatten)]
    pub trust: Trust,
    /// Take it back after this time. Default: at Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

const RUN: &str = "\
Examples:
  knee steer run policy.toml --blocks blocks.jsonl
  knee steer run policy.toml --blocks blocks.jsonl --group eyeballs
  knee steer run policy.toml --blocks try.jsonl --block '40 s' --burn-in '5 s' \\
      --triples 4 --allow short-block --allow short-burn-in --allow few-triples

Each group of the policy names two controllers, controller (B) and control (A). Whole
blocks of time get the one, the other, or both half and half, in an order drawn from the
policy's seed. A block that has ended is on disk: the same command goes on after a crash.
B is stopped within three minutes where it does plain harm. Then, and at the end, all is
as before. Needs BPF programs: see knee steer plan.";

/// `knee steer run`.
#[derive(Debug, Args)]
pub struct SteerRun {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    #[command(flatten)]
    pub trust: Trust,
    /// What blocks came to is written here; those that are there already count
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub blocks: PathBuf,
    /// These groups of the policy alone
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Length of a block, at least 10 min and three times as long as nearly all
    /// connections last
    #[arg(long, value_name = "TIME", default_value = "20 min")]
    pub block: Time,
    /// From the start of a block, for how long connections that begin do not count; at
    /// least 60 s
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub burn_in: Time,
    /// Triples of blocks, at least 16
    #[arg(long, value_name = "N", default_value_t = 48,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub triples: u64,
    /// Pairs of blocks before them, both under A: how large the noise is
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub calibration: u64,
    /// A limit that is not to hold
    #[arg(long, value_name = "LIMIT")]
    pub allow: Vec<Limit>,
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

/// Limits of an experiment on a live host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Limit {
    /// Blocks of less than 10 min
    ShortBlock,
    /// A burn-in of less than 60 s
    ShortBurnIn,
    /// Fewer than 16 triples
    FewTriples,
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
