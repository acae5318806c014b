//! The guard process of `knee steer apply`: reverts the changes of the steering process if that
//! process falls silent or ends without reverting them.
//!
//! The steering process holds a pipe to the guard's standard input. One byte renews the lease,
//! another says that nothing is left to revert; end of file means that the process has ended, for
//! whatever reason.

use crate::failure::{Ending, Failure};
use crate::policy::taken;
use crate::screen;
use knee_host::{HostError, since_boot};
use knee_policy::{Host, Journal, LEASE, Lease, PolicyError};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which a process that has ended may still hold the journal.
const LAST_BREATH: Duration = Duration::from_secs(10);
const READY: u8 = b'.';
const RENEW: u8 = b'+';
const DISMISS: u8 = b'-';

/// Handle of the guard process, for the steering process.
pub struct Guard {
    process: Child,
    lease: Lease,
}

impl Guard {
    /// Starts the guard and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub fn start(journal: &Path) -> Result<Guard, Failure> {
        let lease = Lease::begin(now()?);
        let started = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command.args(["steer", "guard", "--journal"]).arg(journal);
            // A process group of its own: Ctrl-C is for the steering process only.
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn()?;
            let mut ready = [0];
            if let Some(output) = &mut process.stdout {
                output.read_exact(&mut ready)?;
            }
            Ok(process)
        });
        let process = started.map_err(|error| {
            let what = format!("cannot start the process that reverts all changes: {error}");
            Failure::Host(what, "check the limits on processes".to_string())
        })?;
        Ok(Guard { process, lease })
    }

    /// Renews the lease.
    ///
    /// # Errors
    ///
    /// If the guard has ended, or may have reverted all changes since this process has not run for
    /// some time. Everything must be reverted then.
    pub fn renew(&mut self) -> Result<(), Failure> {
        let lost = |what: &str| {
            Failure::Host(what.to_string(), "all changes were reverted; start again".to_string())
        };
        if !self.lease.renew(now()?) {
            return Err(lost("this process could not run for over 30 s"));
        }
        if !self.write(RENEW) {
            return Err(lost("the process that reverts all changes when this one ends is gone"));
        }
        Ok(())
    }

    /// The time, since the boot, until which all that is applied stays so, whatever happens to this
    /// process. Tell it to others only after the actuator has been renewed as well.
    pub fn end(&self) -> Duration {
        self.lease.end()
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

fn now() -> Result<Duration, Failure> {
    Ok(since_boot().map_err(|error| HostError::call("read the clock", error))?)
}

/// Runs as the guard of the process on the standard input.
pub fn guard(journal: &Path) -> Result<Ending, Failure> {
    // A service manager's SIGTERM reaches both; the steering process reverts everything.
    ctrlc::set_handler(|| {}).map_err(|error| {
        Failure::Host(format!("cannot listen for signals: {error}"), String::new())
    })?;
    // If the steering process has already ended, this fails, and the loop notices as well.
    let _ = screen::print(&char::from(READY).to_string());
    let (heard, news) = channel();
    thread::spawn(move || {
        let (mut input, mut byte) = (std::io::stdin(), [0]);
        while matches!(input.read(&mut byte), Ok(1)) && heard.send(byte[0]).is_ok() {}
    });
    loop {
        match news.recv_timeout(LEASE) {
            Ok(DISMISS) => return Ok(Ending::Done),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return ended(journal),
            Err(RecvTimeoutError::Timeout) => return silent(journal),
        }
    }
}

/// Handles the end of the steering process.
#[expect(clippy::disallowed_methods, reason = "it waits for a lock")]
fn ended(journal: &Path) -> Result<Ending, Failure> {
    // A dying process closes its files one by one: the lock may be released after the pipe.
    let began = Instant::now();
    let (mut journal, recorded) = loop {
        match Journal::hold(journal) {
            Err(PolicyError::Held { .. }) if began.elapsed() < LAST_BREATH => {
                thread::sleep(Duration::from_millis(5));
            }
            // The holder is a new process or a rollback, which reverts everything first.
            Err(PolicyError::Held { .. }) => return Ok(Ending::Done),
            held => break held?,
        }
    };
    let Some((_, process, _)) = recorded.begun() else { return Ok(Ending::Done) };
    // Programs detach with the last descriptor: until then they may steer another connection.
    while has_files(process) && began.elapsed() < LAST_BREATH {
        thread::sleep(Duration::from_millis(5));
    }
    let returned = Host::open()?.roll_back(&recorded)?;
    journal.clear()?;
    screen::say(&format!("The steering process has ended. {}", taken(&returned)));
    Ok(Ending::Done)
}

/// Handles silence: if the steering process continues, it will find its guard gone.
fn silent(journal: &Path) -> Result<Ending, Failure> {
    let returned = Host::open()?.roll_back(&Journal::read(journal)?)?;
    let (seconds, taken) = (LEASE.as_secs(), taken(&returned));
    screen::say(&format!("The steering process was silent for {seconds} s. {taken}"));
    Ok(Ending::Done)
}

/// Whether a process exists and still has open files (proc(5), `stat`: a zombie has closed all
/// files).
fn has_files(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
