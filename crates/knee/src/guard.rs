//! `knee steer guard`: the guard process of `knee steer apply` and `knee steer run`.

use crate::failure::{Ending, Failure};
use crate::policy::taken;
use crate::screen;
use knee_policy::{GuardEnd, LEASE, LiveEnvironment};
use std::path::Path;
use std::process::Command;

/// The command of a guard for the process that steers by this journal.
pub fn command(journal: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["steer", "guard", "--journal"]).arg(journal);
    Ok(command)
}

/// Runs as the guard of the process on the standard input.
pub fn guard(journal: &Path) -> Result<Ending, Failure> {
    // A service manager's SIGTERM reaches both; the steering process reverts everything.
    ctrlc::set_handler(|| {}).map_err(|error| {
        Failure::Host(format!("cannot listen for signals: {error}"), String::new())
    })?;
    let mut environment = LiveEnvironment::open(&|| false, &command)?;
    let (input, mut output) = (std::io::stdin(), std::io::stdout());
    match knee_policy::guard(journal, input, &mut output, LEASE, &mut environment)? {
        GuardEnd::Dismissed => {}
        GuardEnd::Ended(returned) => {
            screen::say(&format!("The steering process has ended. {}", taken(&returned)));
        }
        GuardEnd::Silent(returned) => {
            let (seconds, taken) = (LEASE.as_secs(), taken(&returned));
            screen::say(&format!("The steering process was silent for {seconds} s. {taken}"));
        }
    }
    Ok(Ending::Done)
}
