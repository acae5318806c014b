//! Checks the packet log of a run against rules that hold for any network: packets are conserved on
//! every link, each leaves when rate and delay say, is dropped or marked only if the discipline
//! calls for it, and waits only if there is room; ACKs acknowledge only what arrived; bytes are
//! delivered once and in order, over several paths too; a sender obeys its window, its pacing
//! and its timers; and what is outstanding is acknowledged, sent again or times out.
//!
//! What this crate never does: depend on anything, least of all on the simulator or its types. It
//! reads text and knows the rules, not how a run came about. Arithmetic is exact, in integers,
//! except for the averages of RED and PIE. Memory grows with the number of open flows and packets
//! in flight, not with the length of the log.
//!
//! The format is described in `docs/packet-log.md`.

mod checker;
mod connection;
mod flow;
mod journey;
mod link;
mod liveness;
mod packets;
mod parse;
mod ranges;
mod report;
mod sender;

pub use parse::LogError;
pub use report::{LinkCount, Report, Rule, Violation};

use checker::Checker;
use parse::{Head, Row};
use std::io::{BufRead, Read};

/// Maximum length of a line, bytes; a trace is one line.
const LINE_MAX: u64 = 64 << 20;

/// Reads a packet log and reports violations.
///
/// # Errors
/// [`LogError`] if the log cannot be read or is not a packet log. A well-formed but impossible row
/// is a [`Violation`] instead.
pub fn check(mut log: impl BufRead) -> Result<Report, LogError> {
    let mut line = String::new();
    let mut number = 0;
    let head = read_head(&mut log, &mut line, &mut number)?;
    let mut checker = Checker::new(head);
    while next_line(&mut log, &mut line, &mut number)? {
        let malformed = |what| LogError::at(number, what);
        if let Some(text) = line.strip_prefix("# ") {
            checker.open(text).map_err(malformed)?;
            continue;
        }
        let row = Row::parse(&line, checker.head()).map_err(malformed)?;
        checker.row(number, &row).map_err(malformed)?;
    }
    Ok(checker.finish(number))
}

fn read_head(
    log: &mut impl BufRead,
    line: &mut String,
    number: &mut u64,
) -> Result<Head, LogError> {
    let mut head = Head::default();
    while next_line(log, line, number)? {
        if *number == 1 {
            Head::check_format(line).map_err(|what| LogError::at(1, what))?;
        } else if let Some(text) = line.strip_prefix("# ") {
            head.add(text).map_err(|what| LogError::at(*number, what))?;
        } else {
            head.finish(line).map_err(|what| LogError::at(*number, what))?;
            return Ok(head);
        }
    }
    Err(LogError::at(*number, "the log ends before its column names".to_string()))
}

/// Reads a line without its end. Returns false at the end of the log.
fn next_line(
    log: &mut impl BufRead,
    line: &mut String,
    number: &mut u64,
) -> Result<bool, LogError> {
    line.clear();
    if log.take(LINE_MAX).read_line(line)? == 0 {
        return Ok(false);
    }
    if line.len() as u64 == LINE_MAX && !line.ends_with('\n') {
        return Err(LogError::at(*number + 1, format!("longer than {LINE_MAX} bytes")));
    }
    line.truncate(line.trim_end_matches(['\n', '\r']).len());
    *number += 1;
    Ok(true)
}
