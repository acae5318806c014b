//! `knee shell`.

use crate::arguments::{At, ShellArguments};
use crate::failure::{Ending, Failure};
use crate::laboratory::lab;
use crate::{interrupt, screen};
use knee_lab::ScenarioText;
use knee_lab::directory::{DEFAULT, unused};
use knee_lab::shell::{self, Shell, ShellRun, TrafficFlow};
use knee_present::{Cell, Layout, Table, number, text};
use knee_record::Verdict;
use std::ffi::OsString;
use std::io::{self, stderr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Exit code for all that is wrong with Knee or its arguments rather than with the command.
pub const FAILED: u8 = 125;
/// Exit codes of shells for a command that is not there, and one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTED: u8 = 126;
/// Maximum number of flows that are printed, those with the most bytes.
const FLOWS: usize = 20;

/// Runs the command; every failure of Knee itself has the same exit code.
pub fn shell(arguments: &ShellArguments) -> Result<Ending, Failure> {
    let code = run(arguments).unwrap_or_else(|failure| {
        failure.tell();
        FAILED
    });
    Ok(Ending::Code(code))
}

fn run(arguments: &ShellArguments) -> Result<u8, Failure> {
    if let Some(folder) = &arguments.join {
        return join(folder, arguments);
    }
    let Some(file) = &arguments.file else {
        return Err(Failure::Usage("no scenario is named".into(), "name a file".into()));
    };
    let lab = lab(None);
    let text = ScenarioText::read(file).map_err(|errors| Failure::Files(vec![errors]))?;
    // Before anything is written.
    text.scenario(&arguments.set).map_err(|errors| Failure::Files(vec![errors]))?;
    let folder = match &arguments.out {
        Some(out) => out.clone(),
        None => unused(&Path::new(DEFAULT).join(format!("shell-{}", text.stem())), &[])?,
    };
    lab.claim(&folder, [&folder], arguments.force)?;
    let settings = Shell {
        at: arguments.at.unwrap_or(At::Receiver).end(),
        command: arguments.command.clone(),
        folder: folder.clone(),
    };
    interrupt::stops_with(lab.handle(), "Stopping.")?;
    let typed = lab.arguments.join(" ");
    let ended = lab.shell(&text, &arguments.set, &settings, arguments.capture, &typed)?;
    screen::show(&summary(&ended, &folder));
    code(ended.status, &settings.command)
}

fn join(folder: &Path, arguments: &ShellArguments) -> Result<u8, Failure> {
    let at = arguments.at.unwrap_or(At::Sender).end();
    match shell::join(folder, at, &arguments.command) {
        Err(error) if folder.join("shell.json").exists() => code(Err(error), &arguments.command),
        Err(_) => {
            let what = format!("no shell is running in {}", folder.display());
            Err(Failure::Usage(what, "name the folder that knee shell FILE writes".into()))
        }
        status => code(status, &arguments.command),
    }
}

/// Returns the exit code of the command, as a shell would.
fn code(status: io::Result<ExitStatus>, command: &[OsString]) -> Result<u8, Failure> {
    let report = |error: io::Error, code: u8| {
        let name = command.first().map_or("the shell".into(), |name| name.to_string_lossy());
        screen::complain(&format!("{name} cannot be started: {error}"));
        Ok(code)
    };
    match status {
        Ok(status) => {
            let signal = status.signal().map(|signal| 128 + signal);
            Ok(status.code().or(signal).map_or(FAILED, |code| code as u8))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => report(error, NOT_FOUND),
        Err(error) => report(error, NOT_EXECUTED),
    }
}

/// What the programs sent, for standard error.
fn summary(ended: &ShellRun, folder: &Path) -> String {
    let layout = Layout { width: screen::width(), colour: screen::colour(&stderr()) };
    let mut flows: Vec<&TrafficFlow> = ended.traffic.flows.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.entered_bytes));
    let more = flows.len().saturating_sub(FLOWS);
    let mut text = String::new();
    if !flows.is_empty() {
        text += &table(&flows[..flows.len() - more]).text(layout);
    }
    if more > 0 {
        text += &format!("{more} more flows with fewer bytes are in traffic.json\n");
    }
    if ended.traffic.missed_events > 0 {
        text += "The host was too slow to see every packet: these numbers are too small.\n";
    }
    let (verdict, reason) = (ended.summary.verdict, &ended.summary.verdict_reason);
    if verdict != Verdict::Valid {
        text += &format!("{verdict}: {}\n", reason.as_deref().unwrap_or_default());
    }
    text + &format!("{}", folder.display())
}

fn table(flows: &[&TrafficFlow]) -> Table {
    let mut table = Table::new([
        text("flow"),
        number("packets"),
        number("payload"),
        number("dropped"),
        number("retransmitted"),
        number("queueing p50"),
        number("p95"),
    ]);
    for flow in flows {
        let micros = |time: Option<u64>| Cell::us(time.map(|time| time as f64 / 1e3));
        let bytes = |bytes: u64| Cell::shown(size(bytes), bytes as f64);
        table.row([
            Cell::from(format!("{} {} > {}", flow.protocol, flow.source, flow.destination)),
            Cell::count(flow.entered_packets),
            bytes(flow.payload_bytes),
            Cell::count(flow.dropped_packets),
            flow.retransmitted_bytes.map_or_else(Cell::default, bytes),
            micros(flow.queueing_p50_ns),
            micros(flow.queueing_p95_ns),
        ]);
    }
    table
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of POSIX shells (XCU 2.8.2) for how a command ended.
    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let ended = |raw| code(Ok(ExitStatus::from_raw(raw)), &[]).unwrap();
        assert_eq!([0, 3 << 8, 9, 15].map(ended), [0, 3, 137, 143]);
        let failed = |kind: io::ErrorKind| code(Err(kind.into()), &[]).unwrap();
        assert_eq!(failed(io::ErrorKind::NotFound), 127);
        assert_eq!(failed(io::ErrorKind::PermissionDenied), 126);
    }
}
