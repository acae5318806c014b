//! A shell, or one command, on a host of a scenario.

use crate::certificates::Certificates;
use crate::environment::{path_names, variables};
use crate::host::{Inside, ProgramHost};
use crate::names::Names;
use crate::traffic::connections;
use knee_host::{HostError, set_sysctl};
use knee_record::{Control, Records, SampleSink};
use knee_scenario::Scenario;
use knee_testbed::{End, Hosts, Observing, PathSettings, Played, Testbed, TestbedError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// MTU of both ends, bytes.
const MTU: u32 = 1500;
/// Interval at which the command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);
/// Time that a command has to end after a stop (SIGTERM), before it is killed, in polls: 2 s.
const GRACE_POLLS: u32 = 400;
/// File of a run that is under way, for [`join`].
const JOINABLE: &str = "shell.json";

/// What to run, and where.
#[derive(Clone, Debug)]
pub struct Shell {
    /// On which host.
    pub at: End,
    /// The command and its arguments; empty for a shell.
    pub command: Vec<OsString>,
    /// Folder of the run.
    pub folder: PathBuf,
}

/// How a shell ended.
#[derive(Debug)]
pub struct ShellEnded {
    /// The run.
    pub played: Played,
    /// How the command ended, or why it could not start.
    pub status: io::Result<ExitStatus>,
}

/// What another Knee needs to start a program in a run that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Joinable {
    /// First processes of both hosts.
    sender: u32,
    receiver: u32,
    /// Names of the paths.
    paths: Vec<String>,
    /// Hash of the public key in the certificate.
    spki: String,
}

/// Runs the links of a scenario until the command has ended, or `control` says to stop. The flows of
/// the scenario do not run: those of the records are what the programs sent. Rows go to `samples`,
/// those of connections at the end, which the observer alone knows.
///
/// # Errors
///
/// The host does not permit namespaces, devices or mounts, or a row cannot be stored.
pub fn run(
    scenario: &Scenario,
    shell: &Shell,
    control: &Control,
    samples: &mut dyn SampleSink,
    capture: Option<File>,
) -> Result<ShellEnded, TestbedError> {
    let folder = fs::canonicalize(&shell.folder)
        .map_err(|source| HostError::refused("open the folder of the run", source, "see --out"))?;
    let settings = vec![PathSettings { mtu: MTU, v6: true }; scenario.paths.len()];
    let (hosts, devices) = Hosts::create(&settings, |_| permit())?;
    let names = Names::new(scenario);
    let start = |network| ProgramHost::start(network, &names, &folder);
    let (sender, receiver) = (start(&hosts.sender)?, start(&hosts.receiver)?);
    let certificates = Certificates::create(&folder, scenario.paths.len())?;
    let joinable = Joinable {
        sender: sender.first_process(),
        receiver: receiver.first_process(),
        paths: path_names(scenario),
        spki: certificates.spki().to_owned(),
    };
    let announced = folder.join(JOINABLE);
    announce(&announced, &joinable)?;
    let at = if shell.at == End::Sender { &sender } else { &receiver };
    let testbed = Testbed { scenario, hosts: &hosts };
    let mut command = command(&shell.command);
    command.envs(variables(&joinable.paths, shell.at, &folder, &certificates));
    let mut status = Err(io::ErrorKind::Other.into());
    let (capture, kept) = twice(capture)?;
    let observing = Observing { capture, sample: None };
    let mut program = |stop: &AtomicBool| {
        status = at.start_program(&mut command).and_then(|mut child| watch(&mut child, stop));
        Ok::<_, TestbedError>(Records::default())
    };
    let checked = testbed.unchecked(devices);
    let played =
        testbed.play(checked, control, samples, Some(observing), |_, stop, _| program(stop));
    // Programs end before the records are complete.
    drop((sender, receiver));
    let _ = fs::remove_file(&announced);
    let mut played = played?;
    if let Some(observed) = &mut played.observed {
        certificates.complete_capture(kept.as_ref(), observed);
        let rows = connections(observed);
        rows.iter().try_for_each(|row| samples.connection(row))?;
        played.records.connections = rows;
    }
    Ok(ShellEnded { played, status })
}

/// Starts a command on a host of a run that is under way in this folder, and waits for it.
///
/// # Errors
///
/// No such run is under way, or the command cannot be started.
pub fn join(folder: &Path, at: End, words: &[OsString]) -> io::Result<ExitStatus> {
    let folder = fs::canonicalize(folder)?;
    let text = fs::read_to_string(folder.join(JOINABLE))?;
    let Joinable { sender, receiver, paths, spki } = serde_json::from_str(&text)?;
    let first = if at == End::Sender { sender } else { receiver };
    Inside::enter_user_namespace_of(first)?;
    let inside = Inside::of_run(first, &folder)?;
    let mut command = command(words);
    let certificates = Certificates::of_run(&folder, spki);
    command.envs(variables(&paths, at, &folder, &certificates));
    inside.start(&mut command)?.wait()
}

/// What programs may do although they are not root: listen on any port, and ping.
pub(crate) fn permit() -> Result<(), HostError> {
    set_sysctl("net.ipv4.ip_unprivileged_port_start", "0")?;
    set_sysctl("net.ipv4.ping_group_range", "0 0")
}

/// Returns the file of a capture for the emulator, and once more for what is added after the run.
pub(crate) fn twice(capture: Option<File>) -> Result<(Option<File>, Option<File>), HostError> {
    let again = capture.as_ref().map(File::try_clone).transpose();
    let again = again.map_err(|source| HostError::call("share the file of a capture", source))?;
    Ok((capture, again))
}

fn announce(path: &Path, joinable: &Joinable) -> Result<(), HostError> {
    let text = serde_json::to_string(joinable).map_err(io::Error::other);
    text.and_then(|text| fs::write(path, text))
        .map_err(|source| HostError::refused("write into the run's folder", source, "see --out"))
}

/// Returns the command, or the user's shell.
fn command(words: &[OsString]) -> Command {
    match words {
        [] => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    }
}

/// Waits until a command has ended; asks it to after a stop, and kills it if it does not.
fn watch(child: &mut Child, stop: &AtomicBool) -> io::Result<ExitStatus> {
    let mut asked_polls = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            if asked_polls == 0 {
                // It may have ended by now.
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            }
            if asked_polls == GRACE_POLLS {
                child.kill()?;
            }
            asked_polls += 1;
        }
        thread::park_timeout(POLL);
    }
}
