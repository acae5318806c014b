//! `knee serve`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Examples.
pub const HELP: &str = "\
Examples:
  knee serve --init serve.toml       writes it with comments, and serve.key beside it
  knee serve serve.toml              on the machine that receives
  knee run first.toml --on hosts --host far.toml      on the one that sends

docs/hosts.md has both files and the first minute, step by step.";

/// `knee serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration: who may send, how much and when
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
    /// Write a configuration to start from and this machine's key, and print the public key
    #[arg(long)]
    pub init: bool,
}
