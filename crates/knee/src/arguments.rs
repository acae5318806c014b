//! What can be typed: commands, their arguments and their help. Parser, help
//! and completions all come from here.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use knee_lab::{Grounds, KERNEL, KERNEL_RUNS, SEED_MAX, Vary};
use knee_scenario::Override;
use std::path::PathBuf;

const START: &str = "\
Examples:
  knee init first.toml        write a commented scenario
  knee run first.toml         run it; look at knee-out/first/report.html
  knee reproduce              what published studies said, and what comes out here

Exit codes: 0 done · 1 done, but a claim came out differently than on record ·
2 wrong arguments or scenario · 3 the host lacks something · 4 a mistake in Knee ·
130 interrupted, what there is was kept";

/// Finds the knee of a path: a laboratory for congestion control.
#[derive(Debug, Parser)]
#[command(
    name = "knee",
    version,
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
    /// Run scenarios, keep the records, say what came out
    #[command(arg_required_else_help = true, after_help = RUN)]
    Run(Run),
    /// Run studies: what their sources say against what is measured
    #[command(after_help = REPRODUCE)]
    Reproduce(Reproduce),
    /// Run a scenario at every combination of some settings: table, map, dataset
    #[command(arg_required_else_help = true, after_help = SWEEP)]
    Sweep(Sweep),
    /// Draw a path's curve: RTT and delivery rate against bytes in flight
    #[command(after_help = CURVE)]
    Curve(Curve),
    /// Run a fixed grid on the simulator and on the kernel: how far they are apart
    #[command(after_help = FIDELITY)]
    Fidelity(Fidelity),
    /// Compare two runs number by number
    #[command(arg_required_else_help = true, after_help = COMPARE)]
    Compare(Compare),
    /// Write report.html again, from the records
    #[command(arg_required_else_help = true, after_help = REPORT)]
    Report(Report),
    /// Say all that is wrong with scenarios or studies, without running them
    #[command(arg_required_else_help = true, after_help = CHECK)]
    Check(Check),
    /// Write a commented scenario to begin with
    #[command(after_help = INIT)]
    Init(Init),
    /// List what a scenario can name: controllers, schedulers, keys …; and the studies
    #[command(after_help = LIST)]
    List(List),
    /// Say what this host allows, and what to do about the rest
    #[command(after_help = DOCTOR)]
    Doctor(Doctor),
    /// Load Knee's own controllers into the kernel, list and unload them
    #[command(arg_required_else_help = true, disable_help_subcommand = true, after_help = CC)]
    Cc(Cc),
    /// Print completions for a shell
    #[command(arg_required_else_help = true, after_help = COMPLETIONS)]
    Completions(Completions),
    /// Print the JSON Schema of a file that Knee reads or writes
    #[command(arg_required_else_help = true, after_help = SCHEMA)]
    Schema(Schema),
}

impl Command {
    /// Names of the grounds that it runs on.
    pub fn grounds(&self) -> Vec<String> {
        match self {
            Command::Run(arguments) => arguments.on.clone(),
            Command::Reproduce(arguments) => arguments.on.clone(),
            Command::Curve(arguments) => arguments.on.clone(),
            Command::Fidelity(_) => vec![KERNEL.to_string()],
            _ => Vec::new(),
        }
    }
}

const RUN: &str = "\
Examples:
  knee run first.toml
  knee run first.toml --set flow.bbr.cc=bbr-low-delay --set link.bottleneck.buffer='8 BDP'
  knee run first.toml --seed 7 --repeat 10 --jobs 4
  knee run *.toml --out results --json
  knee run first.toml --on sim,kernel     (as root) the simulator beside Linux's TCP

A scenario to begin with: knee init first.toml";

/// `knee run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Scenario files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Where to run
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    /// Set a key of the scenario: link.bottleneck.rate='20 Mbit/s', flow.bbr.cc=cubic
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of all randomness, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run K times, with the seed and those that follow it, and give intervals
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=REPEATS_MAX))]
    pub repeat: Option<u64>,
    #[command(flatten)]
    pub output: Output,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Also write packets.csv, every event of every packet (large)
    #[arg(long)]
    pub packet_log: bool,
}

/// More would be a mistake.
const REPEATS_MAX: u64 = 10_000;

/// How a command runs and where it writes.
#[derive(Debug, Args)]
pub struct Output {
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where to write. Default: below knee-out/
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Replace what an earlier run wrote there
    #[arg(long)]
    pub force: bool,
}

/// Grounds that are not in this version.
pub const PLANNED: [(&str, &str); 1] = [("quic", "Multipath QUIC over an emulator")];

fn grounds() -> PossibleValuesParser {
    let known = Grounds::built_in();
    let known = known.iter().map(|ground| {
        PossibleValue::new(ground.name().to_string()).help(ground.summary().to_string())
    });
    let planned = PLANNED.map(|(name, summary)| PossibleValue::new(name).help(summary));
    known.chain(planned).collect::<Vec<_>>().into()
}

const REPRODUCE: &str = "\
Examples:
  knee reproduce                        all built-in studies
  knee reproduce improved-bbr --jobs 4
  knee reproduce ./my-study             a folder with a study.toml
  knee reproduce --json > outcome.json
  knee reproduce --on sim,kernel        (as root) each claim on both grounds
  knee reproduce studies/* --record     what was measured becomes the record

Exits 1 only if an outcome differs from the one on record in the study, or a
measured value drifted further from the one on record than the study allows.";

/// `knee reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Built-in studies, or folders with a study.toml. Default: all built-in ones
    #[arg(value_name = "STUDY", value_hint = ValueHint::DirPath)]
    pub studies: Vec<String>,
    /// Where to run; the kernel beside the simulator, not without it
    #[arg(long, value_name = "GROUND", value_delimiter = ',', default_value = "sim",
        value_parser = grounds())]
    pub on: Vec<String>,
    #[command(flatten)]
    pub output: Output,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write the values measured into each folder's study.toml, as those on record
    #[arg(long)]
    pub record: bool,
}

const SWEEP: &str = "\
Examples:
  knee sweep two.toml --vary flow.main.scheduler=minrtt,ecf,sctc --vary flow.main.cc=bbr,cubic
  knee sweep two.toml --vary 'link.lte.delay=20..160 ms step x2' --repeat 5
  knee sweep two.toml --vary 'flow.main.paths=[\"wifi\"],[\"wifi\",\"lte\"]' --skip-invalid

VALUES is a list, or a range: FROM..TO UNIT step STEP UNIT, or step xFACTOR.
The same line again goes on where it was stopped.";

/// `knee sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Vary a key: flow.main.cc=bbr,cubic, link.a.rate='1..10 Mbit/s step 1 Mbit/s'
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub vary: Vec<Vary>,
    /// Set a key of the scenario at every point
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of the first repeat, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run each point K times, with the seed and those that follow it, and give intervals
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=REPEATS_MAX))]
    pub repeat: Option<u64>,
    #[command(flatten)]
    pub output: Output,
    /// Leave combinations out that no scenario can have
    #[arg(long)]
    pub skip_invalid: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

const FIDELITY: &str = "\
Examples:
  knee fidelity --quick              a dozen cells, some seven minutes
  knee fidelity                      72 cells, three quarters of an hour
  knee fidelity --cells bbr-100mbit  those with this in their name
  knee fidelity --extended           other cells: controllers beside each other,
                                     rates that vary, AQMs, MPTCP and more

Needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN. Runs that were made are kept:
the same command goes on where it stopped, and repeats those that were invalid.";

/// `knee fidelity`.
#[derive(Debug, Args)]
pub struct Fidelity {
    /// A dozen cells with every level of every factor
    #[arg(long, conflicts_with = "extended")]
    pub quick: bool,
    /// Other cells: several controllers, more flows, rates that vary, AQMs, loss, MPTCP
    #[arg(long)]
    pub extended: bool,
    /// A recorded link in Mahimahi's format, in place of the one made up
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
    /// Where to write. Default: knee-out/fidelity
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Run all cells again
    #[arg(long)]
    pub force: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
}

const COMPARE: &str = "\
Example:
  knee compare knee-out/plain knee-out/low-delay";

/// `knee compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Directory of the run compared against
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub before: PathBuf,
    /// Directory of the other run
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub after: PathBuf,
    /// Print every number, not only those that are usually looked at
    #[arg(long)]
    pub all: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
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
    /// Where to run; the kernel beside the simulator, not without it
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
}

const REPORT: &str = "\
Example:
  knee report knee-out/first";

/// `knee report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of a run, also of an interrupted one, of `knee reproduce` or `knee sweep`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
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
}

const INIT: &str = "\
Example:
  knee init first.toml && knee run first.toml";

/// `knee init`.
#[derive(Debug, Args)]
pub struct Init {
    /// File to write
    #[arg(value_name = "FILE", default_value = "scenario.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace the file if it exists
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
    /// What to list; without it, everything by name
    #[arg(value_name = "WHAT")]
    pub what: Option<Listed>,
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
    /// Built-in studies
    Studies,
}

const DOCTOR: &str = "\
Example:
  knee doctor

Only looks; changes nothing. The simulator needs none of what it looks for.";

/// `knee doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

const CC: &str = "\
Examples:
  knee cc load bbr_low_delay
  knee cc load bbr_low_delay --set max_cruise=off --set probe_gains=1.25,0.75
  knee cc list
  knee cc unload bbr_low_delay

A loaded controller stays until it is unloaded or the machine restarts. It is
one that programs can ask for; nothing uses it by itself.";

/// `knee cc`.
#[derive(Debug, Args)]
pub struct Cc {
    /// What to do with them
    #[command(subcommand)]
    pub action: CcAction,
}

/// The actions of `knee cc`.
#[derive(Debug, Subcommand)]
pub enum CcAction {
    /// Load a controller into the kernel and leave it there
    Load {
        /// bbr_low_delay
        #[arg(value_name = "NAME")]
        name: String,
        /// Change one of its parameters (knee list controllers, below bbr)
        #[arg(long, value_name = "SWITCH=VALUE", value_parser = switch)]
        set: Vec<(String, String)>,
    },
    /// List the controllers that knee cc load left in the kernel
    List,
    /// Take a controller away; connections that use it keep it
    Unload {
        /// bbr_low_delay
        #[arg(value_name = "NAME")]
        name: String,
    },
}

fn switch(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write SWITCH=VALUE, as in max_cruise=off")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

const COMPLETIONS: &str = "\
Examples:
  knee completions bash > ~/.local/share/bash-completion/completions/knee
  knee completions fish > ~/.config/fish/completions/knee.fish";

/// `knee completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

const SCHEMA: &str = "\
Example:
  knee schema scenario > scenario.schema.json";

/// `knee schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Which file
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
    /// What knee compare --json prints
    Comparison,
    /// reproduce.json, and what knee reproduce --json prints
    Reproduce,
    /// sweep.json, and what knee sweep --json prints
    Sweep,
    /// fidelity.json of a run on the simulator and on the kernel
    Fidelity,
    /// fidelity.json of a grid, and what knee fidelity --json prints
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
}
