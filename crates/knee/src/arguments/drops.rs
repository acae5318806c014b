//! Options of `knee drops`.

use super::Print;
use clap::{Args, ValueHint};
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee run first.toml --packet-log
  knee drops knee-out/first                 link by link, flow by flow, reason by reason
  knee drops knee-out/first --format csv > drops.csv

With the packet log it is exact. Without, it reads the counters of the links, and
says what they leave open.";

/// `knee drops`.
#[derive(Debug, Args)]
pub struct Drops {
    /// Directory of `knee run`: a run on any ground, or repeats
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    #[command(flatten)]
    pub print: Print,
}
