//! `knee shell`.

use clap::{Args, ValueEnum, ValueHint};
use knee_lab::shell::End;
use knee_scenario::Override;
use std::ffi::OsString;
use std::path::PathBuf;

/// Examples.
pub const HELP: &str = "\
Examples:
  knee shell lte.toml                              a shell on the receiver's host
  knee shell lte.toml --at sender -- iperf3 -s     one command
  knee shell --join knee-out/shell-lte             the other host, from another terminal
  knee shell --join knee-out/shell-lte --at sender -- ping receiver.knee

Both hosts have names: sender.knee (server.knee) and receiver.knee (client.knee), over the
first path of the scenario; PATH.sender.knee over each. Nothing else can be reached. The
flows of the scenario do not run. KNEE_HERE and KNEE_PEER are the addresses of both ends.

Exit codes: that of the command; 128 and the signal that ended it; 127 or 126 if it could
not be started; 125 if Knee failed.";

/// `knee shell`.
#[derive(Debug, Args)]
pub struct Shell {
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "join")]
    pub file: Option<PathBuf>,
    /// The command and its arguments, after --. Default: $SHELL
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    /// On which host: the sender is at the start of the paths. Default: receiver; with --join
    /// sender
    #[arg(long, value_name = "HOST")]
    pub at: Option<At>,
    /// Enter a host of the shell that runs with this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
        conflicts_with_all = ["file", "set", "capture", "out", "force"])]
    pub join: Option<PathBuf>,
    /// Set a key of the scenario: link.bottleneck.rate='20 Mbit/s'
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Also write capture.pcapng, every packet, for Wireshark
    #[arg(long)]
    pub capture: bool,
    /// Where to write. Default: below knee-out/
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Replace the files of an earlier run
    #[arg(long)]
    pub force: bool,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum At {
    /// At the start of the paths: usually the server.
    Sender,
    /// At their end: usually the client.
    Receiver,
}

impl At {
    /// The end of the paths at which it is.
    pub fn end(self) -> End {
        match self {
            At::Sender => End::Sender,
            At::Receiver => End::Receiver,
        }
    }
}
