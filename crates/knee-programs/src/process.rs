//! One program of a flow, with everything that it starts.

use crate::files::create;
use crate::host::ProgramHost;
use crate::load::Load;
use crate::names::Names;
use crate::output::Output;
use crate::ready::{Transport, listens};
use knee_host::{HostError, Namespace};
use knee_testbed::TestbedError;
use knee_units::Time;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time that a program has to end when it is asked to (SIGTERM), before it is killed.
const GRACE: Time = Time::from_secs(2);

/// A program that was started, in namespaces of its own on one of the hosts.
#[derive(Debug)]
pub struct Process {
    /// Ends everything that the program started when it is dropped.
    host: ProgramHost,
    child: Child,
    status: Option<ExitStatus>,
    out: Output,
    err: Output,
    load: Load,
    /// When it was asked to end.
    asked: Option<Time>,
    killed: bool,
}

/// Why a program was not started.
#[derive(Debug)]
pub enum NotStarted {
    /// The host does not permit it: the run cannot go on.
    Host(TestbedError),
    /// There is no such program, or it cannot be executed.
    Command(io::Error),
}

impl From<HostError> for NotStarted {
    fn from(error: HostError) -> NotStarted {
        NotStarted::Host(error.into())
    }
}

/// What a program is started with.
#[derive(Debug)]
pub struct Start<'a> {
    /// Name of its files: the flow and its end.
    pub name: &'a str,
    /// The program and its arguments, at least one.
    pub words: &'a [String],
    /// Added to the environment.
    pub variables: &'a [(&'static str, String)],
    /// Folder for its output.
    pub folder: &'a Path,
    /// Text in its output that shows that it is ready.
    pub line: Option<&'a str>,
}

impl Process {
    /// Starts a program in a network.
    ///
    /// # Errors
    ///
    /// See [`NotStarted`].
    pub fn start(
        network: &Namespace,
        names: &Names,
        start: &Start<'_>,
    ) -> Result<Process, NotStarted> {
        let Start { name, words, variables, folder, line } = *start;
        let host = ProgramHost::start(network, names, folder)?;
        let file = |ending: &str| create(folder, &format!("{name}.{ending}"), 0o644);
        let (out_file, err_file) = (file("out")?, file("err")?);
        let Some((program, arguments)) = words.split_first() else {
            return Err(NotStarted::Command(io::ErrorKind::NotFound.into()));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A signal from the terminal is for Knee, which ends the programs.
        command.process_group(0);
        let mut child = host.start_program(&mut command).map_err(NotStarted::Command)?;
        let out = Output::read(taken(child.stdout.take())?, Some(out_file), line);
        let err = Output::read(taken(child.stderr.take())?, Some(err_file), line);
        let no_thread =
            |source: io::Error| HostError::call("start a thread for a program's output", source);
        Ok(Process {
            host,
            child,
            status: None,
            out: out.map_err(no_thread)?,
            err: err.map_err(no_thread)?,
            load: Load::default(),
            asked: None,
            killed: false,
        })
    }

    /// Returns how the program ended, if it has. What it started may still run.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // It is our child, and nobody else waits for it.
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Whether the program has ended and left nothing that runs.
    pub fn is_gone(&mut self) -> bool {
        self.status().is_some() && self.host.processes() == 0
    }

    /// Asks everything in the program's group to end, and kills it if the program is still there two
    /// seconds later. Returns whether the program has ended; to be called again until then.
    pub fn end(&mut self, now: Time) -> bool {
        if self.status().is_some() {
            return true;
        }
        let group = Pid::from_raw(self.child.id() as i32);
        // The group is there as long as its first process is not waited for.
        match self.asked {
            None => {
                let _ = killpg(group, Signal::SIGTERM);
                self.asked = Some(now);
            }
            Some(asked) if now.saturating_sub(asked) >= GRACE && !self.killed => {
                let _ = killpg(group, Signal::SIGKILL);
                self.killed = true;
            }
            Some(_) => {}
        }
        false
    }

    /// Whether it listens on a port of its network.
    pub fn listens(&self, transport: Transport, port: u16) -> bool {
        // One whose first process is gone does not.
        listens(self.host.first_process(), transport, port).unwrap_or(false)
    }

    /// Whether it has written the line that shows that it is ready.
    pub fn has_written_line(&self) -> bool {
        self.out.has_wanted() || self.err.has_wanted()
    }

    /// Notes what its tasks have used of the processor.
    pub fn read_load(&mut self) {
        if self.host.sees_own_processes() {
            self.load.read(self.host.first_process());
        }
    }

    /// Says how it lacked the processor during this time, if it did.
    pub fn lacked_processor(&self, time: Duration) -> Option<String> {
        self.load.lacked(time)
    }

    /// Says how the program ended, with the last line that it wrote.
    pub fn how_it_ended(&mut self) -> String {
        let Some(status) = self.status() else { return "is still running".to_owned() };
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
        };
        match self.err.last_line().or_else(|| self.out.last_line()) {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }

    /// Says what it did that programs should not do, although nothing depends on it.
    pub fn remarks(&mut self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.killed {
            remarks.push("ignored SIGTERM and was killed".to_owned());
        }
        let left = if self.status().is_some() { self.host.processes() } else { 0 };
        match left {
            0 => {}
            1 => remarks.push("left a process, which was killed".to_owned()),
            left => remarks.push(format!("left {left} processes, which were killed")),
        }
        let discarded = self.out.discarded_bytes() + self.err.discarded_bytes();
        if discarded > 0 {
            let megabytes = discarded as f64 / 1e6;
            remarks.push(format!("wrote {megabytes:.1} MB more than are kept"));
        }
        remarks
    }
}

fn taken<T>(pipe: Option<T>) -> Result<T, NotStarted> {
    pipe.ok_or_else(|| NotStarted::Command(io::ErrorKind::BrokenPipe.into()))
}
