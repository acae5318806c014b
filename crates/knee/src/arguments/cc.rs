//! `knee cc`.

use clap::{Args, Subcommand};

pub const HELP: &str = "\
Examples:
  knee cc load bbr_low_delay
  knee cc load bbr_low_delay --set max_cruise=off --set probe_gains=1.25,0.75
  knee cc list
  knee cc unload bbr_low_delay

A loaded controller stays until it is unloaded or the machine restarts. Programs
can select it; nothing uses it by default.";

/// `knee cc`.
#[derive(Debug, Args)]
pub struct Cc {
    /// What to do with them
    #[command(subcommand)]
    pub action: CcAction,
}

/// The actions of `knee cc`.
#[derive(Debug, Subcommand)]
pub enum CcAction {
    /// Load a controller into the kernel and leave it there
    Load {
        /// bbr_low_delay, knee_bbr3 or knee_copa
        #[arg(value_name = "NAME")]
        name: String,
        /// Change one of its parameters (knee list controllers, below bbr, bbr3 or copa)
        #[arg(long, value_name = "SWITCH=VALUE", value_parser = switch)]
        set: Vec<(String, String)>,
    },
    /// List the controllers that knee cc load left in the kernel
    List,
    /// Unload a controller; connections that use it keep it
    Unload {
        /// bbr_low_delay, knee_bbr3 or knee_copa
        #[arg(value_name = "NAME")]
        name: String,
    },
}

fn switch(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write SWITCH=VALUE, as in max_cruise=off")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
