//! `knee bond`.

use super::Print;
use clap::{Args, Subcommand, ValueHint};
use knee_units::Time;
use std::path::PathBuf;

/// Examples.
pub const HELP: &str = "\
Examples:
  knee bond keys                     on each machine: prints its public key
  knee bond serve server.toml        on the server
  knee bond connect client.toml      on the machine with several links
  curl --proxy socks5h://127.0.0.1:1080 https://example.org
  knee bond connect client.toml --forward 8080:db.example.org:80
  knee bond connect --transparent client.toml   all traffic of this machine, without a proxy
  knee bond record --out evening     the links' behaviour, for replay in the simulator
  knee bond doctor client.toml       tests each link, and prints what to do
  knee bond status --watch           each link: rate, RTT, loss, share, why it is not used

docs/bond.md has both configurations and the first minute, step by step.";

/// `knee bond`.
#[derive(Debug, Args)]
pub struct Bond {
    /// What to do
    #[command(subcommand)]
    pub action: BondAction,
}

/// The actions of `knee bond`.
#[derive(Debug, Subcommand)]
pub enum BondAction {
    /// Create this machine's keys and print the public key; if they exist, only print
    /// it
    #[command(after_help = KEYS)]
    Keys {
        /// The file of the secret key, which only its owner may read
        #[arg(value_name = "FILE", default_value = "bond.key", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Run the server, which connects to the targets that clients request,
    /// until Ctrl-C
    Serve {
        /// The configuration
        #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
        config: PathBuf,
    },
    /// Use several links to a server as one, until Ctrl-C
    Connect {
        /// The configuration
        #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
        config: PathBuf,
        /// Divert all TCP and UDP traffic of this machine, and let nothing bypass the links. Needs
        /// CAP_NET_ADMIN and CAP_NET_RAW
        #[arg(long)]
        transparent: bool,
        /// Also forward a local port to a target, as in 8080:db.example.org:80; may be repeated
        #[arg(long, value_name = "PORT:HOST:PORT")]
        forward: Vec<String>,
    },
    /// Record the links of the client or server running here, until Ctrl-C: a run with a
    /// scenario that replays them in the simulator
    #[command(after_help = RECORD)]
    Record {
        /// The folder to write
        #[arg(long, value_name = "FOLDER", default_value = "recorded", value_hint = ValueHint::DirPath)]
        out: PathBuf,
        /// Socket of the running client or server. Default: the usual places
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        socket: Option<PathBuf>,
        /// Stop after this time
        #[arg(long, value_name = "TIME")]
        time: Option<Time>,
        /// On a server, the client whose links are recorded. Default: the first
        #[arg(long, value_name = "CLIENT", default_value = "")]
        of: String,
        /// Keep the names of interfaces and of the other end
        #[arg(long)]
        names: bool,
    },
    /// Test each link of a client's configuration, and print what to do about those that do
    /// not work
    Doctor {
        /// The configuration of a client
        #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
        config: PathBuf,
        #[command(flatten)]
        print: Print,
    },
    /// Show the links of the client or server running here
    Status {
        /// Socket of the running client or server. Default: the usual places
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        socket: Option<PathBuf>,
        /// Update every second, until Ctrl-C
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        print: Print,
    },
}

const RECORD: &str = "\
Examples:
  knee bond record --time \"10 min\"
  knee report recorded                the links' behaviour, on one page
  knee run recorded/scenario.toml     the same links in the simulator
  knee run recorded/scenario.toml --set flow.evening.scheduler=minrtt

The record names neither interfaces nor the other end unless --names is given, and never
contains the traffic itself.";

const KEYS: &str = "\
Examples:
  knee bond keys
  knee bond keys /etc/knee/bond.key

The public key goes into the configuration of the other end. The secret key stays in its
file: nobody else needs it.";
