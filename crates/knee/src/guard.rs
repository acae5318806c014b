//! The second process of `knee steer apply`: takes back what the first has done when
//! that one ends without doing so, or is not heard of any more.
//!
//! The first process holds a pipe to the second's standard input. A byte renews the
//! lease, another says that nothing is left to do; the end of the pipe is the end of the
//! process, however it came.

use crate::failure::{Ending, Failure};
use crate::policy::taken;
use crate::screen;
use knee_policy::{Host, Journal, PolicyError};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long the first process may be silent.
const LEASE: Duration = Duration::from_secs(60);
/// How long a process that is gone may still hold the journal.
const LAST_BREATH: Duration = Duration::from_secs(10);
const READY: u8 = b'.';
const RENEW: u8 = b'+';
const DISMISS: u8 = b'-';

/// The second process, as the first sees it.
pub struct Guard {
    process: Child,
}

impl Guard {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    ///
    /// Where no process can be started.
    pub fn start(journal: &Path) -> Result<Guard, Failure> {
        let started = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command.args(["steer", "guard", "--journal"]).arg(journal);
            // Out of the reach of Ctrl-C, which is for the first process.
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn()?;
            let mut ready = [0];
            if let Some(output) = &mut process.stdout {
                output.read_exact(&mut ready)?;
            }
            Ok(process)
        });
        let process = started.map_err(|error| {
            let what = format!("cannot start the process that takes all back: {error}");
            Failure::Host(what, "look for limits on processes".to_string())
        })?;
        Ok(Guard { process })
    }

    /// Renews the lease; false: the guard is gone.
    pub fn renew(&mut self) -> bool {
        self.write(RENEW)
    }

    /// Says that nothing is left to do, and waits for its end.
    pub fn dismiss(mut self) {
        self.write(DISMISS);
        drop(self.process.stdin.take());
        // Nothing depends on how it ended.
        let _ = self.process.wait();
    }

    fn write(&mut self, byte: u8) -> bool {
        let input = self.process.stdin.as_mut();
        input.is_some_and(|input| input.write_all(&[byte]).is_ok())
    }
}

/// Watches over the process on the standard input.
pub fn guard(journal: &Path) -> Result<Ending, Failure> {
    // A service manager's SIGTERM goes to both: the first process takes all back.
    ctrlc::set_handler(|| {}).map_err(|error| {
        Failure::Host(format!("cannot listen for signals: {error}"), String::new())
    })?;
    // Nobody reads it if the first process is gone already: the loop sees that too.
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

/// The first process is gone.
#[expect(clippy::disallowed_methods, reason = "it waits for a lock")]
fn ended(journal: &Path) -> Result<Ending, Failure> {
    // A process that dies closes its files one by one: the lock may go after the pipe.
    let began = Instant::now();
    let (mut journal, recorded) = loop {
        match Journal::hold(journal) {
            Err(PolicyError::Held { .. }) if began.elapsed() < LAST_BREATH => {
                thread::sleep(Duration::from_millis(5));
            }
            // Another begins, or takes all back, and does so before anything else.
            Err(PolicyError::Held { .. }) => return Ok(Ending::Done),
            held => break held?,
        }
    };
    let Some((_, process, _)) = recorded.begun() else { return Ok(Ending::Done) };
    // Its programs go with its last descriptor: until then they may steer one more.
    while has_files(process) && began.elapsed() < LAST_BREATH {
        thread::sleep(Duration::from_millis(5));
    }
    let returned = Host::open()?.roll_back(&recorded)?;
    journal.clear()?;
    screen::say(&format!("The process that steered is gone. {}", taken(&returned)));
    Ok(Ending::Done)
}

/// The first process is there and says nothing: it finds its guard gone when it wakes.
fn silent(journal: &Path) -> Result<Ending, Failure> {
    let returned = Host::open()?.roll_back(&Journal::read(journal)?)?;
    let (seconds, taken) = (LEASE.as_secs(), taken(&returned));
    screen::say(&format!("The process that steers was silent for {seconds} s. {taken}"));
    Ok(Ending::Done)
}

/// Whether a process is there and not just about to end (proc(5), `stat`: a zombie has
/// closed all files).
fn has_files(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
