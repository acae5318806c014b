//! What can be typed: commands, their arguments and their help. Parser, help
//! and completions all come from here.

mod advise;
mod bond;
mod cc;
mod drops;
mod evaluate;
mod export;
mod fit;
mod grounds;
mod model;
mod observed;
mod output;
mod play;
mod rank;
mod report;
mod serve;
mod shell;
mod steer;
mod train;

pub use advise::{Advise, Advising};
pub use bond::Bond;
#[cfg(feature = "bond")]
pub use bond::BondAction;
pub use cc::Cc;
#[cfg(feature = "bpf")]
pub use cc::CcAction;
pub use drops::Drops;
pub use evaluate::Evaluate;
pub use export::{Export, Exported};
pub use fit::Fit;
pub use grounds::left_out;
use grounds::{all_grounds, grounds};
pub use model::Model;
pub use observed::OfObserved;
pub use output::{Format, Output, Print, Progress};
pub use play::Play;
pub use rank::Rank;
pub use report::Report;
pub use serve::Serve;
pub use shell::{At, Shell as ShellArguments};
pub use steer::{
    Applied, Apply, Auto, AutoStage, Host, Keys, Limit, PolicyPlan, Published, Rehearse, Schedule,
    Sign, Steer, SteerAction, SteerJudge, SteerRun, Trust,
};
pub use train::Train;

use crate::templates::Template;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use knee_lab::{KERNEL, KERNEL_RUNS, SEED_MAX, Vary};
use knee_scenario::Override;
use std::path::PathBuf;

const START: &str = "\
Examples, by what people ask:
  Which controller for my traffic?
    knee init --template mix && knee run mix.toml
  How does my idea compare with existing controllers?
    knee init --template coexist
    knee rank coexist.toml --cc bbr,bbr3,reno,copa --repeat 10
  Do two links together help?
    knee init --template two-links && knee run two-links.toml

Each run prints the answer and writes it to knee-out/NAME/report.html. A first
look: knee init first.toml && knee run first.toml. What published studies claim, and
the results here: knee reproduce.

Exit codes: 0 done · 1 done, but a result differs from the one on record ·
2 invalid arguments or scenario · 3 the host lacks a feature · 4 a bug in Knee ·
130 interrupted, results so far are kept";

/// Finds the knee of a path: a laboratory for congestion control.
#[derive(Debug, Parser)]
#[command(
    name = "knee",
    version = crate::build::VERSION,
    max_term_width = 90,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = START
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios, store the records, print the results
    #[command(arg_required_else_help = true, after_help = RUN)]
    Run(Run),
    /// Run studies: compare claims of papers with measurements
    #[command(after_help = REPRODUCE)]
    Reproduce(Reproduce),
    /// Run a scenario at every combination of some settings: table, map, dataset
    #[command(arg_required_else_help = true, after_help = SWEEP)]
    Sweep(Sweep),
    /// Rank controllers over scenarios: power, fairness, cost, beside each other
    #[command(arg_required_else_help = true, after_help = rank::HELP)]
    Rank(Rank),
    /// Evaluate a controller as RFC 9743 asks: beside Reno, CUBIC and BBR
    #[command(arg_required_else_help = true, after_help = evaluate::HELP)]
    Evaluate(Evaluate),
    /// Train a rule table for RemyCC over the simulator
    #[command(arg_required_else_help = true, after_help = train::HELP)]
    Train(Train),
    /// Draw a path's curve: RTT and delivery rate against bytes in flight
    #[command(after_help = CURVE)]
    Curve(Curve),
    /// Compute how BBR flows that probe in turn come to share a link: table and picture
    #[command(after_help = model::HELP)]
    Model(Model),
    /// Run a fixed grid on the simulator and on the kernel, and compare the
    /// results
    #[command(after_help = FIDELITY)]
    Fidelity(Fidelity),
    /// Find the path that explains a run: rate, RTT, loss and buffer, as far as they show
    #[command(arg_required_else_help = true, after_help = fit::HELP)]
    Fit(Fit),
    /// Compare runs: inputs that differ, then the main measures
    #[command(arg_required_else_help = true, after_help = COMPARE)]
    Compare(Compare),
    /// Repeat the runs of a folder and report whether the records are identical
    #[command(arg_required_else_help = true, after_help = RERUN)]
    Rerun(Rerun),
    /// Say which link dropped which flow's packets, why and when
    #[command(arg_required_else_help = true, after_help = drops::HELP)]
    Drops(Drops),
    /// Write a run in the format of another tool: qlog, CSV
    #[command(arg_required_else_help = true, disable_help_subcommand = true, after_help = export::HELP)]
    Export(Export),
    /// Rewrite report.html from the records; report on access logs
    #[command(arg_required_else_help = true, after_help = report::HELP)]
    Report(Report),
    /// Draw a figure of a run to a file, for papers: SVG, PDF or PNG
    #[command(arg_required_else_help = true, after_help = crate::plot::EXAMPLES)]
    Plot(crate::plot::Arguments),
    /// Report all errors in scenarios or studies, without running them
    #[command(arg_required_else_help = true, after_help = CHECK)]
    Check(Check),
    /// Write a commented scenario to start from
    #[command(after_help = INIT)]
    Init(Init),
    /// List what a scenario can name: controllers, schedulers, keys …; and the studies
    #[command(after_help = LIST)]
    List(List),
    /// Report what this host supports, and how to enable the rest
    #[command(after_help = DOCTOR)]
    Doctor(Doctor),
    /// Observe this host's own TCP connections as they end: rows, aggregates, a table
    #[command(after_help = crate::observe::EXAMPLES)]
    Observe(crate::observe::Arguments),
    /// Advise which controller to try, from connections that have ended
    #[command(arg_required_else_help = true, after_help = advise::HELP)]
    Advise(Advise),
    /// Rehearse an experiment on controllers; apply a policy to this host, and revert
    /// it
    #[command(arg_required_else_help = true, disable_help_subcommand = true,
        after_help = steer::HELP)]
    Steer(Steer),
    /// Load Knee's own controllers into the kernel; list and unload them
    #[command(arg_required_else_help = true, disable_help_subcommand = true, after_help = cc::HELP)]
    Cc(Cc),
    /// Combine several links to your own server into one
    #[command(arg_required_else_help = true, disable_help_subcommand = true,
        after_help = bond::HELP)]
    Bond(Bond),
    /// Receive what knee run --on hosts sends from another machine, until Ctrl-C
    #[command(arg_required_else_help = true, after_help = serve::HELP)]
    Serve(Serve),
    /// Move a path's settings in a browser, and see rate, delay, queue and knee
    #[command(after_help = play::HELP)]
    Play(Play),
    /// Run any program, or a shell, over the links of a scenario
    #[command(arg_required_else_help = true, after_help = shell::HELP)]
    Shell(ShellArguments),
    /// Print completions for a shell
    #[command(arg_required_else_help = true, after_help = COMPLETIONS)]
    Completions(Completions),
    /// Print the JSON Schema of a file that Knee reads or writes
    #[command(arg_required_else_help = true, after_help = SCHEMA)]
    Schema(Schema),
}

impl Command {
    /// Whether another program reads how far it is.
    pub fn tells_json(&self) -> bool {
        let progress = match self {
            Command::Run(arguments) => &arguments.output.progress,
            Command::Reproduce(arguments) => &arguments.output.progress,
            Command::Sweep(arguments) => &arguments.output.progress,
            Command::Rank(arguments) => &arguments.output.progress,
            Command::Evaluate(arguments) => &arguments.output.progress,
            Command::Rerun(arguments) => &arguments.output.progress,
            Command::Curve(arguments) => &arguments.progress,
            Command::Fidelity(arguments) => &arguments.progress,
            Command::Fit(arguments) => &arguments.progress,
            Command::Advise(arguments) => &arguments.progress,
            Command::Steer(Steer { action: SteerAction::Rehearse(arguments) }) => {
                &arguments.progress
            }
            _ => return false,
        };
        progress.is_json()
    }

    /// Names of the grounds that it runs on.
    pub fn grounds(&self) -> Vec<String> {
        match self {
            Command::Run(arguments) => arguments.on.clone(),
            Command::Reproduce(arguments) => arguments.on.clone(),
            Command::Curve(arguments) => arguments.on.clone(),
            Command::Evaluate(arguments) => arguments.on.clone(),
            Command::Rank(arguments) => vec![arguments.on.clone()],
            Command::Sweep(arguments) => vec![arguments.on.clone()],
            Command::Fidelity(_) => vec![KERNEL.to_string()],
            // A host of another process is entered as it is.
            Command::Shell(arguments) if arguments.join.is_none() => vec![KERNEL.to_string()],
            Command::Steer(Steer { action }) => match action {
                SteerAction::Rehearse(arguments) => vec![arguments.on.clone()],
                SteerAction::Host(arguments) if arguments.trial => vec![KERNEL.to_string()],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

const RUN: &str = "\
Examples:
  knee run first.toml
  knee run first.toml --set flow.bbr.cc=bbr-low-delay --set link.bottleneck.buffer='8 BDP'
  knee run first.toml --seed 7 --repeat 10 --jobs 4
  knee run *.toml --out results --format json
  knee run first.toml --on sim,kernel     (as root) the simulator and Linux's TCP
  knee run first.toml --on hosts --host far.toml    to another machine (knee serve)

A scenario to start from: knee init first.toml";

/// `knee run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Scenario files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Where to run
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = all_grounds())]
    pub on: Vec<String>,
    /// The file about the other machine, for --on hosts: host, host_key and key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub host: Option<PathBuf>,
    /// Set a key of the scenario: link.bottleneck.rate='20 Mbit/s', flow.bbr.cc=cubic
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of all randomness, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run K times with consecutive seeds, and print intervals
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=REPEATS_MAX))]
    pub repeat: Option<u64>,
    #[command(flatten)]
    pub output: Output,
    /// Run only the scenario itself, without the runs of each link alone or of
    /// all traffic under one controller, on which the advice is based
    #[arg(long)]
    pub no_alternatives: bool,
    #[command(flatten)]
    pub print: Print,
    /// Also write packets.csv, every event of every packet (large)
    #[arg(long)]
    pub packet_log: bool,
    /// On kernel, quic or programs: also write capture.pcapng, every packet that enters,
    /// leaves or is dropped, for Wireshark (as large as the traffic)
    #[arg(long)]
    pub capture: bool,
}

/// Larger values are refused.
const REPEATS_MAX: u64 = 10_000;

const REPRODUCE: &str = "\
Examples:
  knee reproduce                        what all built-in studies conclude
  knee reproduce improved-bbr --jobs 4
  knee reproduce ./my-study             a folder with a study.toml
  knee reproduce --format json > outcome.json
  knee reproduce --on sim,kernel        (as root) each claim on both grounds
  knee reproduce --all                  every claim, some minutes
  knee reproduce studies/* --record     the measured values become the record

The same command goes on with an interrupted one: runs in real time that have
ended are not repeated.

Exits 1 only if an outcome differs from the one on record in the study, or a
measured value drifts further from the one on record than the study allows.";

/// `knee reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Built-in studies, or folders with a study.toml. Default: all built-in ones
    #[arg(value_name = "STUDY", value_hint = ValueHint::DirPath)]
    pub studies: Vec<String>,
    /// Where to run; the kernel only together with the simulator
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub print: Print,
    /// Run every claim, not only those that the studies' conclusions cite
    #[arg(long)]
    pub all: bool,
    /// Add N to the seed of every run: other random numbers, the same outcomes
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub seed_shift: u64,
    /// Run every claim, and write the measured values into each folder's
    /// study.toml, as the values on record
    #[arg(long, conflicts_with = "seed_shift")]
    pub record: bool,
}

const SWEEP: &str = "\
Examples:
  knee sweep two.toml --vary flow.main.scheduler=minrtt,ecf,sctc --vary flow.main.cc=bbr,cubic
  knee sweep two.toml --vary 'link.lte.delay=20..160 ms step x2' --repeat 5
  knee sweep two.toml --vary 'flow.main.paths=[\"wifi\"],[\"wifi\",\"lte\"]' --skip-invalid

VALUES is a list, or a range: FROM..TO UNIT step STEP UNIT, or step xFACTOR.
The same command resumes an interrupted sweep.";

/// `knee sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Vary a key: flow.main.cc=bbr,cubic, link.a.rate='1..10 Mbit/s step 1 Mbit/s'
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub vary: Vec<Vary>,
    /// The key whose values the headline compares. Default: the last --vary
    #[arg(long = "for", value_name = "KEY")]
    pub about: Option<String>,
    /// Set a key of the scenario at every point
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of the first repeat, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run each point K times with consecutive seeds, and print intervals
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=REPEATS_MAX))]
    pub repeat: Option<u64>,
    /// Where to run
    #[arg(long, value_name = "GROUND", default_value = "sim", value_parser = grounds())]
    pub on: String,
    #[command(flatten)]
    pub output: Output,
    /// Skip invalid combinations
    #[arg(long)]
    pub skip_invalid: bool,
    #[command(flatten)]
    pub print: Print,
}

const FIDELITY: &str = "\
Examples:
  knee fidelity --quick              a dozen cells, about seven minutes
  knee fidelity                      72 cells, three quarters of an hour
  knee fidelity --cells bbr-100mbit  cells with this in their name
  knee fidelity --reordering         cells whose packets overtake each other
  knee fidelity --extended           other cells: competing controllers,
                                     rates that vary, AQMs, MPTCP and more

Needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN. Finished runs are kept:
the same command resumes where it stopped, and repeats invalid runs.";

/// `knee fidelity`.
#[derive(Debug, Args)]
pub struct Fidelity {
    /// A dozen cells with every level of every factor
    #[arg(long, conflicts_with_all = ["extended", "reordering"])]
    pub quick: bool,
    /// 54 cells with the factor reordering: none, 5 ms, as long as the RTT
    #[arg(long, conflicts_with = "extended")]
    pub reordering: bool,
    /// Other cells: several controllers, more flows, rates that vary, AQMs, loss, MPTCP
    #[arg(long)]
    pub extended: bool,
    /// A recorded link in Mahimahi's format, in place of the synthetic one
    #[arg(long, value_name = "FILE", requires = "extended", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Runs of each cell on the kernel
    #[arg(long, value_name = "K", default_value_t = KERNEL_RUNS,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeat: u16,
    /// Only cells whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub cells: Option<String>,
    /// Runs on the simulator at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub progress: Progress,
    /// Where to write. Default: knee-out/fidelity
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Run all cells again
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub print: Print,
}

const COMPARE: &str = "\
Examples:
  knee compare knee-out/plain knee-out/low-delay
  knee compare knee-out/cubic knee-out/bbr knee-out/bbr3 --out knee-out/compared
  knee compare knee-out/sweep-first                          every point against the first
  knee compare knee-out/sweep-first@cc=cubic knee-out/sweep-first@cc=bbr

SWEEP@KEY=VALUE selects the points of a sweep with that value.";

/// `knee compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Directories of runs, of repeats or of sweeps; the others are compared with the
    /// first
    #[arg(value_name = "DIR", required = true, num_args = 1.., value_hint = ValueHint::DirPath)]
    pub runs: Vec<PathBuf>,
    /// Print every measure and every number, not only the main ones
    #[arg(long)]
    pub all: bool,
    /// Write a page with all of them in one plot, and comparison.json, to this
    /// directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Replace the files of an earlier comparison
    #[arg(long, requires = "out")]
    pub force: bool,
    #[command(flatten)]
    pub print: Print,
}

const CURVE: &str = "\
Examples:
  knee curve                                    the path of the study improved-bbr
  knee curve --on sim,kernel --out docs/knee.svg
  knee curve path.toml                          one with a flow of cc = { name = \"fixed\" }";

/// `knee curve`.
#[derive(Debug, Args)]
pub struct Curve {
    /// A scenario with one flow, whose controller is fixed. Default: a built-in one
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Where to run; the kernel only together with the simulator
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    /// File to write, an SVG
    #[arg(long, value_name = "FILE", default_value = "knee.svg", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub progress: Progress,
    #[command(flatten)]
    pub print: Print,
}

const RERUN: &str = "\
Examples:
  knee rerun knee-out/first
  knee rerun results/sweep-two --out again      of knee run, also with --repeat,
                                                knee sweep or knee rank

It uses the copies in the folder, and reads no other file without --originals.
Exits 1 if a record differs in any byte.";

/// `knee rerun`.
#[derive(Debug, Args)]
pub struct Rerun {
    /// Directory of a run, of repeats, of `knee sweep` or `knee rank`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Also read the original input files, at the paths in DIR, and report which have changed
    #[arg(long)]
    pub originals: bool,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub print: Print,
}

const CHECK: &str = "\
Example:
  knee check first.toml studies/improved-bbr";

/// `knee check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Scenario files, study.toml files, or folders with a study.toml
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Set a key of the scenarios, as knee run does
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
}

const INIT: &str = "\
Examples:
  knee init first.toml && knee run first.toml
  knee init --template two-links && knee run two-links.toml
  knee init --template page home/page.toml      also writes home/page.csv";

/// `knee init`.
#[derive(Debug, Args)]
pub struct Init {
    /// File to write. Default: the template's name and .toml
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Template
    #[arg(long, value_name = "NAME", default_value = "first")]
    pub template: Template,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
}

const LIST: &str = "\
Examples:
  knee list                 everything by name
  knee list controllers     with parameters and their defaults
  knee list keys            every key of a scenario file";

/// `knee list`.
#[derive(Debug, Args)]
pub struct List {
    /// What to list. Default: the names of everything
    #[arg(value_name = "WHAT")]
    pub what: Option<Listed>,
    #[command(flatten)]
    pub print: Print,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Congestion controllers and presets
    Controllers,
    /// Schedulers of connections over several paths
    Schedulers,
    /// What an application can do
    Workloads,
    /// Measures that a claim can name
    Measures,
    /// Active queue management
    Aqm,
    /// Keys of a scenario file
    Keys,
    /// Ready-made paths, with the measurement that each stands for
    Paths,
    /// Built-in studies
    Studies,
}

const DOCTOR: &str = "\
Example:
  knee doctor

Changes nothing. The simulator needs none of these features.";

/// `knee doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    pub print: Print,
}

const COMPLETIONS: &str = "\
Examples:
  knee completions bash > ~/.local/share/bash-completion/completions/knee
  knee completions fish > ~/.config/fish/completions/knee.fish";

/// `knee completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

const SCHEMA: &str = "\
Example:
  knee schema scenario > scenario.schema.json";

/// `knee schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// File
    #[arg(value_name = "FILE")]
    pub file: Described,
}

/// Files with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// Scenario files
    Scenario,
    /// study.toml
    Study,
    /// summary.json
    Summary,
    /// manifest.json
    Manifest,
    /// repeat.json
    Repeat,
    /// What knee compare --format json prints for two runs
    Comparison,
    /// What knee compare --format json prints for more runs
    Comparisons,
    /// answers.json: paths together or alone, controllers by transfer size
    Answers,
    /// reproduce.json, and what knee reproduce --format json prints
    Reproduce,
    /// sweep.json, and what knee sweep --format json prints
    Sweep,
    /// rank.json, and what knee rank --format json prints
    Rank,
    /// evaluation.json, and what knee evaluate --format json prints
    Evaluation,
    /// What knee report --format json prints for a folder of knee observe
    Observed,
    /// What knee report --format json prints for access logs
    Logs,
    /// grounds.json of knee evaluate --on sim,kernel
    Grounds,
    /// A policy for knee steer
    Policy,
    /// origin.json: the inputs of a sweep or a ranking
    Origin,
    /// fidelity.json of a run on the simulator and on the kernel
    Fidelity,
    /// fidelity.json of a grid, and what knee fidelity --format json prints
    FidelityGrid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    /// Every command's help ends in an example that begins with the command.
    #[test]
    fn every_help_has_an_example() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().unwrap().to_string();
            let line = format!("\n  knee {}", command.get_name());
            assert!(help.starts_with("Example") && help.contains(&line), "{}", command.get_name());
        }
    }

    /// A process is prepared for the grounds that it runs on before it has threads.
    #[test]
    fn experiments_and_trials_name_their_grounds() {
        let grounds = |line: &str| {
            let words = line.split(' ');
            Arguments::try_parse_from(words).unwrap().command.grounds()
        };
        assert_eq!(grounds("knee steer rehearse mix.toml --on kernel"), ["kernel"]);
        assert_eq!(grounds("knee steer host bbr --trial"), ["kernel"]);
        assert!(grounds("knee steer host bbr").is_empty());
    }
}
