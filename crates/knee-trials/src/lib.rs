//! Support for tests: [random scenarios](scenario), [shocks] to a path, a
//! [connection over one bottleneck](bottleneck), and tests that require something of the host:
//! root, TUN, BPF, or idle processors. Whether that is available is known only at run time, when
//! Rust's own harness can no longer skip a test.
//!
//! A test returns the reason if it did not run; [`trials!`] lists the tests of a file built with
//! `harness = false`, and [`run`] is its `main`.
//!
//! What this crate never does: count a test as passed that did not run.

pub mod bottleneck;
mod calm;
pub mod namespaces;
pub mod scenario;
pub mod shocks;

use calm::Meter;
pub use calm::Pauses;
use clap::{ArgAction, CommandFactory, FromArgMatches};
pub use libtest_mimic::Trial;
use libtest_mimic::{Arguments, Completion};
use nix::sched::{CloneFlags, unshare};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::panic::{catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, thread};

/// If this variable is set, as in CI, trials run, and fail if the host lacks what they need.
const REQUIRED: &str = "KNEE_REQUIRE_ROOT_TESTS";

/// Controllers that follow a call's bit rate, or no rule at all.
const EXEMPT: [&str; 2] = ["fixed", "gcc"];

/// Returns the names of all controllers and presets that follow the path.
pub fn controllers() -> Vec<&'static str> {
    let names = |entry: &'static knee_cc::Entry| {
        std::iter::once(entry.name).chain(entry.presets.iter().map(|preset| preset.name))
    };
    let all = knee_cc::controllers().iter().flat_map(names);
    all.filter(|name| !EXEMPT.contains(name)).collect()
}

/// Why a test did not run, in CI or elsewhere.
#[derive(Debug)]
pub struct Skipped(pub String);

impl Skipped {
    /// The host lacks something that CI provides.
    ///
    /// # Panics
    ///
    /// If `KNEE_REQUIRE_ROOT_TESTS` is set, as in CI: the test fails there.
    #[must_use]
    pub fn lack(why: impl Display) -> Skipped {
        assert!(env::var_os(REQUIRED).is_none(), "{why}");
        Skipped(why.to_string())
    }
}

/// Lists functions, `fn() -> Result<(), Skipped>`, as tests named after them and their module.
/// Those after `; nightly:` run only with `--include-ignored`, as `.ci/night` does.
#[macro_export]
macro_rules! trials {
    ($($test:path),* $(,)? $(; nightly: $($late:path),* $(,)?)?) => { vec![
        $($crate::trial(concat!(module_path!(), "::", stringify!($test)), $test)),*
        $(, $($crate::trial(concat!(module_path!(), "::", stringify!($late)), $late)
            .with_ignored_flag(true)),*)?
    ] };
}

/// Number of times that a trial is tried on a host that did not give it what it needs.
const TRIES: usize = 3;

/// Creates a test, which fails on a panic, named without the name of the program.
#[must_use]
pub fn trial(path: &str, test: fn() -> Result<(), Skipped>) -> Trial {
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    Trial::ignorable_test(name, move || match attempt(test) {
        Ok(()) => Ok(Completion::Completed),
        Err(Skipped(why)) => Ok(Completion::ignored_with(why)),
    })
}

/// Runs a test, again if it fails while the host pauses for longer than it tolerates.
fn attempt(test: fn() -> Result<(), Skipped>) -> Result<(), Skipped> {
    let mut excuse = String::new();
    for _ in 0..TRIES {
        let panic = match catch_unwind(test) {
            Ok(outcome) => return outcome,
            Err(panic) => panic,
        };
        excuse = calm::take_excuse().unwrap_or_else(|| resume_unwind(panic));
    }
    Err(Skipped(excuse))
}

/// Runs the tests selected on the command line, as Rust's harness does, but one after another and
/// only if somebody asked for them: all are ignored without a filter, `--include-ignored` and
/// `KNEE_REQUIRE_ROOT_TESTS`.
#[must_use]
pub fn run(trials: impl IntoIterator<Item = Trial>) -> ExitCode {
    let trials: Vec<Trial> = trials.into_iter().collect();
    let mut arguments = arguments(env::args_os(), &trials);
    // One after another: they share the host.
    arguments.test_threads.get_or_insert(1);
    let required = env::var_os(REQUIRED).is_some();
    libtest_mimic::run(&arguments, asked_for(trials, &arguments, required)).exit_code()
}

/// Marks all as ignored, which take minutes and the host's network, unless they are required or some
/// are named.
fn asked_for(trials: Vec<Trial>, arguments: &Arguments, required: bool) -> Vec<Trial> {
    if required || arguments.filter.is_some() || !arguments.skip.is_empty() {
        return trials;
    }
    trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect()
}

/// Parses the arguments. `cargo test` passes any number of filters to all tests, but
/// `libtest_mimic` accepts one: names that match none of them are skipped individually.
fn arguments(line: impl IntoIterator<Item = OsString>, trials: &[Trial]) -> Arguments {
    let several = |filter: clap::Arg| filter.num_args(1..).action(ArgAction::Append);
    let matches = Arguments::command().mut_arg("filter", several).get_matches_from(line);
    let filters: Vec<&String> = matches.get_many("filter").into_iter().flatten().collect();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if filters.len() < 2 {
        return arguments;
    }
    let by = |filter: &String| Arguments { filter: Some(filter.clone()), ..arguments.clone() };
    let by_each: Vec<Arguments> = filters.into_iter().map(by).collect();
    let left_out = |trial: &&Trial| by_each.iter().all(|one| one.is_filtered_out(trial));
    let skip = trials.iter().filter(left_out).map(|trial| trial.name().to_owned()).collect();
    Arguments { filter: None, exact: true, skip, ..arguments }
}

/// The host's network and processors are this test's until it is dropped.
#[derive(Debug)]
pub struct Turn {
    // Ends before the next turn begins.
    _meter: Meter,
    _lock: MutexGuard<'static, ()>,
}

/// Locks the host's network and processors for this test, since tests in real time disturb each
/// other, and measures whether the host gives what the test needs.
///
/// # Errors
///
/// If TUN devices or network namespaces are not available.
pub fn turn(tolerated: Pauses) -> Result<Turn, Skipped> {
    // Lock before probing: during a test no other may create a namespace in this process, whose
    // number the kernel would soon reuse.
    let turn = alone(tolerated);
    if let Err(error) = File::options().read(true).write(true).open("/dev/net/tun") {
        return Err(Skipped::lack(format!("the host lacks /dev/net/tun ({error})")));
    }
    let allowed = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join();
    if let Err(error) = allowed.expect("the call does not panic") {
        let why = format!("the host lacks root, for network namespaces ({error})");
        return Err(Skipped::lack(why));
    }
    Ok(turn)
}

/// Locks the processors for this test.
pub fn alone(tolerated: Pauses) -> Turn {
    static LOCK: Mutex<()> = Mutex::new(());
    let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    Turn { _meter: Meter::start(tolerated), _lock: lock }
}

/// Prints a figure if `--nocapture` is given, as Rust's harness would.
#[expect(clippy::print_stdout, reason = "tests are programs of their own")]
pub fn tell(figure: &str) {
    if env::args_os().any(|argument| argument == "--nocapture") {
        println!("{figure}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    mod inner {
        pub fn second() -> Result<(), super::Skipped> {
            Err(super::Skipped("the reason".to_owned()))
        }
    }

    fn first() -> Result<(), Skipped> {
        Ok(())
    }

    fn third() -> Result<(), Skipped> {
        panic!("as a test does that fails")
    }

    fn listed() -> Vec<Trial> {
        trials![first, inner::second, third]
    }

    /// Numbers of tests passed, failed, ignored and filtered out.
    fn counts(line: &str) -> [u64; 4] {
        let line = format!("test --format=terse --logfile=/dev/null {line}");
        let arguments = arguments(line.split_whitespace().map(OsString::from), &listed());
        let ended = libtest_mimic::run(&arguments, listed());
        [ended.num_passed, ended.num_failed, ended.num_ignored, ended.num_filtered_out]
    }

    #[test]
    fn what_did_not_run_is_ignored() {
        assert_eq!(counts(""), [1, 1, 1, 0]);
        assert_eq!(counts("inner"), [0, 0, 1, 2]);
    }

    /// A filter asks for those that it names, a variable for all, `--include-ignored` for all.
    #[test]
    fn trials_are_ignored_unless_asked_for() {
        let ignored = |line: &str, required| {
            let line = format!("test --format=terse --logfile=/dev/null {line}");
            let arguments = arguments(line.split_whitespace().map(OsString::from), &listed());
            let trials = asked_for(listed(), &arguments, required);
            trials.iter().filter(|trial| arguments.is_ignored(trial)).count()
        };
        assert_eq!(ignored("", false), 3);
        assert_eq!(ignored("", true), 0);
        for asked in ["inner", "inner first", "--include-ignored", "--ignored"] {
            assert_eq!(ignored(asked, false), 0, "{asked}");
        }
    }

    /// A test that identifies namespaces of a run by number would confuse them with one created
    /// while waiting.
    #[test]
    fn who_waits_for_a_turn_makes_no_namespace() {
        let Ok(turn) = turn(Pauses::Any) else { return };
        let waiting: Vec<_> =
            (0..300).map(|_| thread::spawn(|| super::turn(Pauses::Any).map(drop))).collect();
        for _ in 0..200 {
            let made = namespaces::namespaces_of(Path::new("/proc/self"));
            assert!(made.is_empty(), "{made:?}");
        }
        drop(turn);
        for one in waiting {
            assert!(one.join().is_ok_and(|turn| turn.is_ok()));
        }
    }

    /// Fails; the host is not at fault.
    fn fourth() -> Result<(), Skipped> {
        let _turn = alone(Pauses::UpToMs(60_000));
        panic!("as a test does that fails")
    }

    /// Fails; the host is at fault, since no host wakes a thread without delay.
    fn fifth() -> Result<(), Skipped> {
        let _turn = alone(Pauses::UpToMs(0));
        thread::park_timeout(std::time::Duration::from_millis(50));
        panic!("as a test does on a busy host")
    }

    #[test]
    fn a_failure_counts_unless_the_host_paused_for_too_long() {
        let arguments = Arguments::from_iter(["test", "--format=terse", "--logfile=/dev/null"]);
        let ended = libtest_mimic::run(&arguments, trials![fourth, fifth]);
        assert_eq!((ended.num_failed, ended.num_ignored), (1, 1));
    }

    #[test]
    fn filters_add_up() {
        assert_eq!(counts("fir inner::"), [1, 0, 1, 1]);
        assert_eq!(counts("fir thi second"), [1, 1, 1, 0]);
        assert_eq!(counts("fir nothing --skip first"), [0, 0, 0, 3]);
        assert_eq!(counts("--exact tests::first inner"), [1, 0, 0, 2]);
        assert_eq!(counts("tests::first --exact tests::inner::second"), [1, 0, 1, 1]);
    }
}
