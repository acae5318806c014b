//! The command line of Knee: reads scenarios, runs them, stores and shows the results.
//!
//! The only crate that prints: data goes to standard output, progress and diagnostics to standard
//! error. `knee-lab` defines what is run, stored and compared; this crate has arguments, tables and
//! text. The program and the Python package both enter by [`main_with`].
//!
//! What this crate never does: compute results of a run.

mod advice;
mod advise;
mod answers;
mod arguments;
mod auto;
mod bond;
mod build;
mod cc;
mod check;
mod claims;
mod compare;
mod completions;
mod curve;
mod doctor;
mod drops;
mod evaluate;
mod experiment;
mod export;
mod failure;
mod fidelity;
mod figures;
mod fit;
#[cfg(test)]
#[path = "../tests/it/net/golden.rs"]
mod golden;
mod grounds;
mod guard;
mod host_default;
mod init;
mod interrupt;
mod laboratory;
mod list;
mod logs;
mod model;
mod observe;
mod observed;
mod out_file;
mod panic;
mod picture;
mod play;
mod plot;
mod policy;
mod print;
mod problems;
mod progress;
mod rank;
mod repeats;
mod report;
mod reproduce;
mod rerun;
mod run;
mod schema;
mod screen;
mod serve;
mod shell;
mod signed;
mod steer;
mod sweep;
mod templates;
mod train;
mod verdicts;

use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use failure::{Ending, Failure};
use knee_lab::{Classes, Grounds};
use knee_record::Program;
use knee_scenario::Algorithms;
use std::ffi::OsString;

/// Runs `knee` with these arguments, the first of which is the program's name as typed; returns the
/// exit code. Call it once per process.
pub fn main_with(typed: impl IntoIterator<Item = OsString>) -> u8 {
    main_with_algorithms(typed, Algorithms::default(), Classes::default())
}

/// Runs `knee` as [`main_with`] does, with algorithms of the caller's own; records name the class of
/// those in `classes`.
pub fn main_with_algorithms(
    typed: impl IntoIterator<Item = OsString>,
    algorithms: Algorithms,
    classes: Classes,
) -> u8 {
    panic::one_sentence();
    let typed: Vec<OsString> = typed.into_iter().collect();
    if typed.first().is_some_and(|name| knee_lab::shell::first::is_first(name)) {
        return knee_lab::shell::first::run();
    }
    let is_shell = typed.get(1).is_some_and(|command| command == "shell");
    // Only the first call has an effect: a process has one command line.
    let _ = algorithms.install();
    laboratory::provide(classes);
    let typed = laboratory::remember(typed);
    let arguments = match Arguments::try_parse_from(typed) {
        Ok(arguments) => arguments,
        // To its callers, its own failures are no result of the command.
        Err(error) if is_shell && error.use_stderr() => {
            told_by_clap(&error);
            return shell::FAILED;
        }
        Err(error) => return told_by_clap(&error),
    };
    if arguments.command.tells_json() {
        screen::tell_programs();
    }
    let grounds = Grounds::built_in();
    let named = arguments.command.grounds();
    let chosen = grounds.iter().filter(|ground| named.iter().any(|name| name == ground.name()));
    chosen.for_each(|ground| ground.prepare_process());
    match perform(&arguments.command) {
        Ok(ending) => ending.code(),
        Err(failure) => {
            failure.tell();
            failure.code()
        }
    }
}

/// The build of this program, for manifests.
pub fn program() -> Program {
    build::program()
}

/// The command line as a clap command, for man pages and wrappers.
pub fn command() -> clap::Command {
    Arguments::command()
}

fn perform(command: &Command) -> Result<Ending, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(arguments),
        Command::Sweep(arguments) => sweep::sweep(arguments),
        Command::Rank(arguments) => rank::rank(arguments),
        Command::Evaluate(arguments) => evaluate::evaluate(arguments),
        Command::Train(arguments) => train::train(arguments),
        Command::Curve(arguments) => curve::curve(arguments),
        Command::Model(arguments) => model::model(arguments),
        Command::Fidelity(arguments) => fidelity::fidelity(arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Rerun(arguments) => rerun::rerun(arguments),
        Command::Drops(arguments) => drops::drops(arguments),
        Command::Export(arguments) => export::export(arguments),
        Command::Report(arguments) => report::report(arguments),
        Command::Plot(arguments) => plot::plot(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Init(arguments) => init::init(arguments),
        Command::List(arguments) => list::list(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::Observe(arguments) => observe::observe(arguments),
        Command::Fit(arguments) => fit::fit(arguments),
        Command::Advise(arguments) => advise::advise(arguments),
        Command::Steer(arguments) => steer::steer(arguments),
        Command::Cc(arguments) => cc::cc(arguments),
        Command::Bond(arguments) => bond::bond(arguments),
        Command::Serve(arguments) => serve::serve(arguments),
        Command::Play(arguments) => play::play(arguments),
        Command::Shell(arguments) => shell::shell(arguments),
        Command::Completions(arguments) => completions::completions(arguments),
        Command::Schema(arguments) => schema::schema(arguments),
    }
}

/// Prints help, the version or an error in the arguments.
fn told_by_clap(error: &clap::Error) -> u8 {
    let printed = error.print();
    match (error.use_stderr(), printed) {
        (true, _) => failure::USAGE,
        (false, Ok(())) => Ending::Done.code(),
        (false, Err(failed)) => screen::not_printed(failed).map_or_else(
            |failure| {
                failure.tell();
                failure.code()
            },
            |()| Ending::Done.code(),
        ),
    }
}
