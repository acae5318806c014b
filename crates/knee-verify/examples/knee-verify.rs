//! `cargo run -p knee-verify --example knee-verify -- FILE`: checks a packet log and prints
//! violations.
//!
//! Exit codes: 0 sound, 1 violations, 2 not a readable packet log, also when nobody reads what is
//! printed. It never changes the log.

#![expect(clippy::print_stderr, reason = "a command-line program")]

use knee_verify::{Report, check};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: knee-verify FILE");
        return ExitCode::from(2);
    };
    let log = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) => return refuse(&path, &error),
    };
    let report = match check(log) {
        Ok(report) => report,
        Err(error) => return refuse(&path, &error),
    };
    match print(&report, &mut BufWriter::new(io::stdout().lock())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("standard output: {error}");
            ExitCode::from(2)
        }
        _ if report.is_sound() => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}

fn refuse(path: &std::ffi::OsStr, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("{}: {error}", path.display());
    ExitCode::from(2)
}

fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for violation in &report.violations {
        writeln!(out, "{violation}")?;
    }
    let violations = report.violations.len() as u64 + report.violations_omitted;
    writeln!(
        out,
        "{violations} violations in {} rows: {} data packets sent, {} received, {} segments \
         delivered, {} ACKs sent, {} received",
        report.rows,
        report.data_packets_sent,
        report.data_packets_received,
        report.segments_delivered,
        report.acks_sent,
        report.acks_received
    )?;
    for link in &report.links {
        writeln!(
            out,
            "{}: {} entered = {} left + {} dropped + {} inside",
            link.name, link.entered, link.left, link.dropped, link.inside
        )?;
    }
    out.flush()
}
