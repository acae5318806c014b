//! The command line of Knee: reads scenarios, has them run, keeps and shows
//! what comes out.
//!
//! The only crate that prints: data goes to the standard output, progress and
//! diagnostics to the standard error. What is run, kept and compared, and how,
//! is `knee-lab`'s; here are arguments, tables and words.

mod advice;
mod arguments;
mod cc;
mod check;
mod claims;
mod compare;
mod completions;
mod curve;
mod doctor;
mod failure;
mod fidelity;
mod figures;
mod grounds;
mod init;
mod interrupt;
mod laboratory;
mod list;
mod panic;
mod problems;
mod progress;
mod repeats;
mod report;
mod reproduce;
mod run;
mod schema;
mod screen;
mod sweep;
mod table;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::{Ending, Failure};
use knee_lab::Grounds;
use std::process::ExitCode;

fn main() -> ExitCode {
    panic::one_sentence();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return told_by_clap(&error),
    };
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

fn perform(command: &Command) -> Result<Ending, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(arguments),
        Command::Sweep(arguments) => sweep::sweep(arguments),
        Command::Curve(arguments) => curve::curve(arguments),
        Command::Fidelity(arguments) => fidelity::fidelity(arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Report(arguments) => report::report(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Init(arguments) => init::init(arguments),
        Command::List(arguments) => list::list(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::Cc(arguments) => cc::cc(arguments),
        Command::Completions(arguments) => completions::completions(arguments),
        Command::Schema(arguments) => schema::schema(arguments),
    }
}

/// Help, version, or a mistake in the arguments.
fn told_by_clap(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    match (error.use_stderr(), printed) {
        (true, _) => ExitCode::from(failure::USAGE),
        (false, Ok(())) => ExitCode::SUCCESS,
        (false, Err(failed)) => screen::not_printed(failed).map_or_else(
            |failure| {
                failure.tell();
                failure.code()
            },
            |()| ExitCode::SUCCESS,
        ),
    }
}
