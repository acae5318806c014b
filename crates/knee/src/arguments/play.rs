//! Options of `knee play`.

use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee play                       a path of 100 Mbit/s and 40 ms, CUBIC beside BBR
  knee play first.toml            the path and the first flows of a scenario
  knee play --page 127.0.0.1:0    at a free port

Open the address that it prints in a browser. Rate, RTT, buffer, loss, flows and
controller are sliders; the simulator runs as they move, and the page hands over the
scenario file. It stops with Ctrl-C. docs/play.md";

/// `knee play`.
#[derive(Debug, Args)]
pub struct Play {
    /// Scenario file. Default: one bulk flow over a path of 100 Mbit/s and 40 ms
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Serve the page at this loopback address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9179")]
    pub page: SocketAddr,
}
