//! Options of `knee export`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee run first.toml --packet-log
  knee export qlog knee-out/first --flow bbr > bbr.qlog      for https://qvis.quictools.info
  knee export qlog knee-out/mix --flow 'clients[1]' --out clients.qlog
  knee export csv knee-out/first > samples.csv               the time series of the flows
  knee export csv knee-out/first --table links --out links.csv";

/// `knee export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Format
    #[command(subcommand)]
    pub what: Exported,
}

/// Formats of other tools.
#[derive(Debug, Subcommand)]
pub enum Exported {
    /// A flow as a qlog, which qvis opens: packets, acknowledgements, losses, window
    Qlog {
        /// Directory of a run with a packet log
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
        /// The flow: bbr[1]; without a number the first with this name
        #[arg(long, value_name = "NAME")]
        flow: String,
        /// File to write. Default: the standard output
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long, requires = "out")]
        force: bool,
    },
    /// A table of the records as CSV: time series of flows or links, connections
    Csv {
        /// Directory of a run
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
        /// The table: the name of a Parquet file of the directory, such as links
        #[arg(long, value_name = "NAME", default_value = "samples")]
        table: String,
        /// File to write. Default: the standard output
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long, requires = "out")]
        force: bool,
    },
}
