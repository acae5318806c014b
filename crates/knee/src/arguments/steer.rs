//! `knee steer`.

use super::{Advising, Print, Progress, all_grounds};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use knee_lab::SEED_MAX;
use knee_scenario::Override;
use knee_steer::Guarded;
use knee_units::Time;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee init --template mix
  knee steer auto live --out steer    from observed connections to a policy, in stages
  knee steer rehearse mix.toml --set duration=60s --triples 24
  knee steer plan policy.toml        prints the changes; as any user
  knee steer apply policy.toml       until Ctrl-C, then reverts; as root
  knee steer run policy.toml --blocks blocks.jsonl    an experiment; as root
  knee steer judge blocks.jsonl      prints its result so far; as any user
  knee steer status
  knee steer rollback
  knee steer host bbr --trial        compares it with the host's default

docs/steer.md describes experiments and how to read their verdict,
docs/policy.md policies and how to revert them.";

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
    /// Lead from observed connections to a policy, in stages
    #[command(arg_required_else_help = true, after_help = AUTO)]
    Auto(Box<Auto>),
    /// Rehearse an experiment on a ground, where the true effect is known
    #[command(arg_required_else_help = true, after_help = REHEARSE)]
    Rehearse(Rehearse),
    /// Print what a policy would change on this host, without changing anything
    #[command(arg_required_else_help = true)]
    Plan(PolicyPlan),
    /// Apply a policy to new connections until stopped, then revert it
    #[command(arg_required_else_help = true, after_help = APPLY)]
    Apply(Apply),
    /// Run an experiment on this host: two controllers, block by block
    #[command(arg_required_else_help = true, after_help = RUN)]
    Run(Box<SteerRun>),
    /// Print the result of an experiment, of one host or of all hosts of a site
    #[command(arg_required_else_help = true, after_help = JUDGE)]
    Judge(SteerJudge),
    /// Create a key that signs policies, and print the line for hosts that trust
    /// it
    #[command(arg_required_else_help = true)]
    Keys(Keys),
    /// Sign a policy
    #[command(arg_required_else_help = true, after_help = SIGN)]
    Sign(Sign),
    /// Show what is applied, and whether it is unchanged
    Status(Applied),
    /// Revert what any process applied
    Rollback(Applied),
    /// The host's default controller: show, test, set, revert
    #[command(after_help = HOST)]
    Host(Host),
    /// Revert what was applied when the process at standard input ends
    #[command(hide = true)]
    Guard(Guard),
}

const AUTO: &str = "\
Examples:
  knee observe --out live             for a day or more
  knee steer auto live --out steer --until rehearse   changes nothing
  knee steer auto live --out steer    goes on

Stages: advise (which controller for which group), rehearse (the experiment in the
simulator), observe (this host's traffic; changes nothing), canary (one group, for
harm), host (all groups, for the effect), policy (those that are better get it, until
Ctrl-C). It asks before each that changes something. The result of a stage is a file in
DIR, and report.html there says what was done and why: the same command goes on.";

/// `knee steer auto`.
#[derive(Debug, Args)]
pub struct Auto {
    /// Folders of knee observe, or files of connections
    #[arg(value_name = "ROWS", required = true, value_hint = ValueHint::AnyPath)]
    pub rows: Vec<PathBuf>,
    /// Folder for the results of the stages and the page; what is decided in it stays
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// End after this stage
    #[arg(long, value_name = "STAGE")]
    pub until: Option<AutoStage>,
    /// Do not ask before stages that change something
    #[arg(long)]
    pub yes: bool,
    /// Table of networks, comma-separated: prefix,asn,name. Clients are grouped by
    /// provider
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub providers: Option<PathBuf>,
    /// Group clients by the history of their prefix: RTT, in classes that double from
    /// 15 ms on, and whether 1 % was retransmitted
    #[arg(long, conflicts_with = "providers")]
    pub history: bool,
    #[command(flatten)]
    pub by: Advising,
    #[command(flatten)]
    pub schedule: Schedule,
    #[command(flatten)]
    pub accepted: Accepted,
    /// Apply the policy for this time. Default: until Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    #[command(flatten)]
    pub trust: Trust,
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub progress: Progress,
    #[command(flatten)]
    pub print: Print,
}

/// A stage of `knee steer auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum AutoStage {
    /// Which controller for which group
    Advise,
    /// The experiment in the simulator
    Rehearse,
    /// This host's traffic; changes nothing
    Observe,
    /// One group, to look for harm
    Canary,
    /// All groups, to compare
    Host,
    /// The policy of what is better, until Ctrl-C
    Policy,
}

impl AutoStage {
    /// All stages after the first.
    pub const LATER: [AutoStage; 5] = [
        AutoStage::Rehearse,
        AutoStage::Observe,
        AutoStage::Canary,
        AutoStage::Host,
        AutoStage::Policy,
    ];

    /// Its name, as written in arguments and files.
    pub fn name(self) -> &'static str {
        match self {
            AutoStage::Advise => "advise",
            AutoStage::Rehearse => "rehearse",
            AutoStage::Observe => "observe",
            AutoStage::Canary => "canary",
            AutoStage::Host => "host",
            AutoStage::Policy => "policy",
        }
    }
}

const APPLY: &str = "\
Examples:
  knee steer apply policy.toml
  knee steer apply policy.toml --duration '1 h'

BPF programs set the controller of new connections, and of open ones if
the policy requests it. Otherwise, and without BPF, routes in a separate table do so
for new connections. When the process ends for any reason, a second process reverts
everything; if that one fails, the next apply or rollback does. Needs CAP_NET_ADMIN, and
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

A signed policy has a version, which must increase, and an expiry. A host with
/etc/knee/steer.trust accepts no others.";

/// `knee steer keys`.
#[derive(Debug, Args)]
pub struct Keys {
    /// File of the key; if it exists, its line is printed
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
    /// File to write; may be the policy itself
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
}

/// Whose policies are accepted.
#[derive(Clone, Debug, Args)]
pub struct Trust {
    /// Accept only policies signed by a key of this file. Default:
    /// /etc/knee/steer.trust, if it exists
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trust: Option<PathBuf>,
    /// File with the latest versions of signed policies on this host
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
    /// Revert it after this time. Default: at Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    #[command(flatten)]
    pub published: Published,
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
blocks of time run under one, the other, or half under each, in an order drawn from the
policy's seed. Finished blocks are on disk: the same command resumes after a crash.
The policy's stage says how far it goes: observe changes nothing, canary looks for harm
in one group, host compares, site does so on several hosts at the same times.
B is stopped within three minutes if it does clear harm. Then, and at the end, everything
is reverted. It uses BPF programs, or routes without them: see knee steer plan.";

/// `knee steer run`.
#[derive(Debug, Args)]
pub struct SteerRun {
    /// The policy
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,
    #[command(flatten)]
    pub trust: Trust,
    /// File for the results of blocks; blocks already in it count
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub blocks: PathBuf,
    /// Only these groups of the policy
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    #[command(flatten)]
    pub schedule: Schedule,
    #[command(flatten)]
    pub published: Published,
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

/// Schedule of an experiment on a live host.
#[derive(Debug, Args)]
pub struct Schedule {
    /// Length of a block, at least 10 min and three times the duration of
    /// nearly all connections
    #[arg(long, value_name = "TIME", default_value = "20 min")]
    pub block: Time,
    /// Time from the start of a block in which new connections do not count; at least
    /// 60 s
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub burn_in: Time,
    /// Number of triples of blocks, at least 16
    #[arg(long, value_name = "N", default_value_t = 48,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub triples: u64,
    /// Number of pairs of blocks before them, both under A, which measure the
    /// noise
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub calibration: u64,
    /// Lift a limit
    #[arg(long, value_name = "LIMIT")]
    pub allow: Vec<Limit>,
}

const JUDGE: &str = "\
Examples:
  knee steer judge blocks.jsonl
  knee steer judge host-a.jsonl host-b.jsonl host-c.jsonl

Each host of a site writes a file of blocks. Their differences together are one
experiment, in which hosts are weighted by their connections before the first triple.";

/// `knee steer judge`.
#[derive(Debug, Args)]
pub struct SteerJudge {
    /// Blocks that knee steer run has written, one file for each host
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub blocks: Vec<PathBuf>,
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

impl Limit {
    /// Its name, as written in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Limit::ShortBlock => "short-block",
            Limit::ShortBurnIn => "short-burn-in",
            Limit::FewTriples => "few-triples",
        }
    }
}

/// Harm that an experiment accepts.
#[derive(Debug, Args)]
pub struct Accepted {
    /// Accept a harm, for which others or a bill pay: it is measured, and its guard stops
    /// nothing
    #[arg(long = "accept", value_name = "HARM", value_parser = harms())]
    pub harms: Vec<Guarded>,
}

fn harms() -> impl TypedValueParser<Value = Guarded> {
    PossibleValuesParser::new(Guarded::ACCEPTABLE.map(Guarded::name))
        .try_map(|name| Guarded::acceptable(&name).ok_or("cannot be accepted"))
}

/// `knee steer status`, `knee steer rollback`.
#[derive(Debug, Args)]
pub struct Applied {
    #[command(flatten)]
    pub journal: Guard,
    #[command(flatten)]
    pub print: Print,
}

/// Where the assignment is published.
#[derive(Debug, Args)]
pub struct Published {
    /// Publish in this file which clients are in which group, block and arm, for
    /// knee observe --assignment FILE; it is removed at the end
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub assignment: Option<PathBuf>,
}

/// Where the journal is.
#[derive(Clone, Debug, Args)]
pub struct Guard {
    /// Journal of all changes, written before they are made; one for each network
    /// namespace
    #[arg(long = "journal", value_name = "FILE", default_value = "/run/knee/steer.journal",
        value_hint = ValueHint::FilePath)]
    pub path: PathBuf,
}

const HOST: &str = "\
Examples:
  knee steer host                    the setting, now and at the next boot
  knee steer host bbr                what would change; changes nothing
  knee steer host bbr --trial        compares both over three emulated paths; as root
  knee steer host bbr --apply        sets it, also at boot; as root
  knee steer host --undo             reverts it; as root

The setting is one file, /etc/sysctl.d/98-knee-congestion-control.conf, which records the
previous value. A default that an administrator has set in a file is left unchanged.";

/// `knee steer host`.
#[derive(Debug, Args)]
pub struct Host {
    /// The kernel's name of a controller
    #[arg(value_name = "CONTROLLER", conflicts_with = "undo")]
    pub controller: Option<String>,
    /// Set it, now and at each boot of the host
    #[arg(long, requires = "controller")]
    pub apply: bool,
    /// Compare it with the current default on the kernel ground, before setting
    /// it
    #[arg(long, requires = "controller")]
    pub trial: bool,
    /// Revert Knee's setting
    #[arg(long)]
    pub undo: bool,
    #[command(flatten)]
    pub print: Print,
}

const REHEARSE: &str = "\
Examples:
  knee steer rehearse mix.toml --set duration=60s --triples 24
  knee steer rehearse site-a.toml site-b.toml --truth 0
  knee steer rehearse mix.toml --on kernel --set duration=10s --set warmup=2s
  knee steer rehearse mix.toml --on hosts --host far.toml --truth 0

A scenario holds two mixes of one process, one under each controller. A block is a
run of it with its own seed: all under one, all under the other, or half
under each. Its duration is the length of a block, its warm-up the burn-in.";

/// `knee steer rehearse`.
#[derive(Debug, Args)]
pub struct Rehearse {
    /// Scenarios with mixes, each a group of clients
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Ground: sim; in real time kernel for real TCP between network namespaces, as
    /// root, or hosts for another machine
    #[arg(long, value_name = "GROUND", default_value = "sim", hide_possible_values = true,
        value_parser = all_grounds())]
    pub on: String,
    /// The file about the other machine, for --on hosts: host, host_key and key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub host: Option<PathBuf>,
    /// Number of triples of blocks; 16 or more give an interval
    #[arg(long, value_name = "N", default_value_t = 24,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub triples: u64,
    /// Number of pairs of blocks before them, both under the controller in use,
    /// which measure the noise
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub calibration: u64,
    #[command(flatten)]
    pub accepted: Accepted,
    /// Number of pairs of runs that determine the true effect, with the same
    /// arrivals under each; 0 for none
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub truth: u64,
    /// Set a key of every scenario
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of the order and of the first block, instead of the scenario's
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
