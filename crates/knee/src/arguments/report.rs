//! Options of `knee report`.

use super::OfObserved;
use clap::{Args, ValueHint};
use knee_live::{Group, unix_s};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const HEADING: &str = "Options for access logs";

pub const HELP: &str = "\
Examples:
  knee report knee-out/first
  knee report knee-out/observed --period 2026-11-24T18:00/2026-11-24T22:00
  knee report knee-out/observed --controllers cubic,bbr --providers networks.csv
  knee report access.log access.log.*.gz
  knee report cdn/*.gz --since 2026-11-24T18:00 --group office=192.0.2.0/24

For a folder of knee observe, the figures are printed too: docs/observe.md. For access
logs, too, with throughput, completion times, and the server's part: docs/logs.md.";

/// `knee report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of a run (finished or interrupted), of repeats, of `knee reproduce`,
    /// `knee sweep`, `knee rank`, `knee evaluate` or `knee observe`; or access logs, in any of
    /// the formats of docs/logs.md, compressed by gzip or not
    #[arg(value_name = "DIR|LOG", value_hint = ValueHint::AnyPath, required = true)]
    pub paths: Vec<PathBuf>,
    /// Print the report as Markdown, for a pull request, instead of writing the
    /// page
    #[arg(long)]
    pub markdown: bool,
    #[command(flatten)]
    pub observed: OfObserved,
    #[command(flatten)]
    pub logs: OfLogs,
}

/// What the report on access logs covers.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct OfLogs {
    /// Compare what was logged before and after this moment (UTC)
    #[arg(long, value_name = "DATE")]
    pub since: Option<Since>,
    /// Group clients of this prefix; if two contain an address, the longer one counts
    #[arg(long, value_name = "NAME=PREFIX")]
    pub group: Vec<Group>,
    /// Where to write report.html. Default: a folder of the first log's name below knee-out/
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}

impl OfLogs {
    /// The first option that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--since", self.since.is_some()),
            ("--group", !self.group.is_empty()),
            ("--out", self.out.is_some()),
        ];
        options.iter().find(|(_, given)| *given).map(|(option, _)| *option)
    }
}

/// A moment, nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Since(pub i64);

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        let seconds = unix_s(text).and_then(|seconds| i64::try_from(seconds).ok());
        seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)).map(Since).ok_or_else(|| {
            "write a date such as 2026-11-24, or a date and time such as 2026-11-24T18:00, in UTC"
                .to_string()
        })
    }
}

/// Formats it for reading back.
impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            knee_record::rfc3339((self.0 / 1_000_000_000).unsigned_abs()).trim_end_matches('Z'),
        )
    }
}
