//! The guard process: reverts the changes of the steering process if that process falls silent or
//! ends without reverting them.
//!
//! The steering process holds a pipe to the guard's standard input. One byte renews the lease,
//! another says that nothing is left to revert; end of file means that the process has ended, for
//! whatever reason.

use crate::{Environment, Journal, Lease, PolicyError, Returned};
use knee_host::{HostError, since_boot};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time for which a process that has ended may still hold the journal.
const RELEASE_MAX: Duration = Duration::from_secs(10);
const RELEASE_STEP: Duration = Duration::from_millis(5);
const READY: u8 = b'.';
const RENEW: u8 = b'+';
const DISMISS: u8 = b'-';

/// Handle of the guard process, for the steering process.
pub struct GuardProcess {
    process: Child,
    lease: Lease,
}

impl GuardProcess {
    /// Starts the guard and waits until it is ready. The command calls [`guard`] with its standard
    /// input and output.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub fn start(command: io::Result<Command>) -> Result<GuardProcess, PolicyError> {
        let lease = Lease::begin(now()?);
        let started = command.and_then(|mut command| {
            // A process group of its own: Ctrl-C is for the steering process only.
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn()?;
            let mut ready = [0];
            if let Some(output) = &mut process.stdout {
                output.read_exact(&mut ready)?;
            }
            Ok(process)
        });
        let process = started.map_err(|error| PolicyError::Lost {
            problem: format!("cannot start the process that reverts all changes: {error}"),
            advice: "check the limits on processes",
        })?;
        Ok(GuardProcess { process, lease })
    }

    /// Renews the lease. Returns the time, since the boot, until which all that is applied stays so.
    ///
    /// # Errors
    ///
    /// If the guard has ended, or may have reverted all changes since this process has not run for
    /// some time.
    pub fn renew(&mut self) -> Result<Duration, PolicyError> {
        let lost = |problem: &str| PolicyError::Lost {
            problem: problem.to_string(),
            advice: "all changes were reverted; start again",
        };
        if !self.lease.renew(now()?) {
            return Err(lost("this process could not run for over 30 s"));
        }
        if !self.write(RENEW) {
            return Err(lost("the process that reverts all changes when this one ends is gone"));
        }
        Ok(self.lease.end())
    }

    /// Tells the guard that nothing is left to revert, and waits for its end.
    pub fn dismiss(mut self) {
        self.write(DISMISS);
        drop(self.process.stdin.take());
        // Its exit status does not matter.
        let _ = self.process.wait();
    }

    fn write(&mut self, byte: u8) -> bool {
        let input = self.process.stdin.as_mut();
        input.is_some_and(|input| input.write_all(&[byte]).is_ok())
    }
}

fn now() -> Result<Duration, PolicyError> {
    Ok(since_boot().map_err(|error| HostError::call("read the clock", error))?)
}

/// How the work of a guard ended.
#[derive(Debug, PartialEq, Eq)]
pub enum GuardEnd {
    /// Nothing was left to revert.
    Dismissed,
    /// The steering process has ended; this was reverted.
    Ended(Returned),
    /// The steering process was silent for the length of the lease; this was reverted. If it
    /// continues, it will find its guard gone.
    Silent(Returned),
}

/// Guards the process that writes to `input` and steers by this journal. Says on `output` when it is
/// ready. The lease is [`crate::LEASE`] long, in tests less.
///
/// # Errors
///
/// [`PolicyError::Journal`], [`PolicyError::Host`].
pub fn guard(
    journal: &Path,
    mut input: impl Read + Send + 'static,
    output: &mut dyn Write,
    lease: Duration,
    environment: &mut dyn Environment,
) -> Result<GuardEnd, PolicyError> {
    // If the steering process has already ended, this fails, and the loop notices as well.
    let _ = output.write_all(&[READY]).and_then(|()| output.flush());
    let (heard, news) = channel();
    thread::spawn(move || {
        let mut byte = [0];
        while matches!(input.read(&mut byte), Ok(1)) && heard.send(byte[0]).is_ok() {}
    });
    loop {
        match news.recv_timeout(lease) {
            Ok(DISMISS) => return Ok(GuardEnd::Dismissed),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return ended(journal, environment),
            Err(RecvTimeoutError::Timeout) => {
                let returned = environment.roll_back(&Journal::read(journal)?)?;
                return Ok(GuardEnd::Silent(returned));
            }
        }
    }
}

/// Handles the end of the steering process.
fn ended(journal: &Path, environment: &mut dyn Environment) -> Result<GuardEnd, PolicyError> {
    // A dying process closes its files one by one: the lock may be released after the pipe.
    let began = environment.now();
    let (mut journal, recorded) = loop {
        match Journal::hold(journal) {
            Err(PolicyError::Held { .. }) if environment.now() - began < RELEASE_MAX => {
                environment.sleep(RELEASE_STEP);
            }
            // The holder is a new process or a rollback, which reverts everything first.
            Err(PolicyError::Held { .. }) => return Ok(GuardEnd::Dismissed),
            held => break held?,
        }
    };
    let Some((_, process, _)) = recorded.begun() else { return Ok(GuardEnd::Dismissed) };
    // Programs detach with the last descriptor: until then they may steer another connection.
    while has_files(process) && environment.now() - began < RELEASE_MAX {
        environment.sleep(RELEASE_STEP);
    }
    let returned = environment.roll_back(&recorded)?;
    journal.clear()?;
    Ok(GuardEnd::Ended(returned))
}

/// Whether a process exists and still has open files (proc(5), `stat`: a zombie has closed all
/// files).
fn has_files(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
