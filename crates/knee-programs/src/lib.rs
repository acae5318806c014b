//! Any program between the two hosts of a scenario, over its links.
//!
//! There are two forms: a [shell](run), or one command, on a host of a scenario without its flows; and
//! [flows](run_flows) that are programs, a server and a client each.
//!
//! Each host gets namespaces of its own for processes and mounts beside the network's, and a [first
//! process](first), which lives as long as Knee holds the other end of a pipe. So a program, and
//! whatever it starts, ends with the run, and with Knee, however that ends. Names come from a file of
//! the run, and nothing else resolves. Programs with TLS get certificates of the run.
//!
//! What this crate never does: run a tool of its own, print, leave a process, a namespace or a mount
//! behind, write outside of the run's folder.

mod certificates;
mod environment;
mod files;
pub mod first;
mod flows;
mod host;
mod load;
mod names;
mod output;
mod process;
mod ready;
mod run;
mod shell;
mod sockets;
mod traffic;

pub use flows::Finding;
pub use host::{Inside, ProgramHost};
pub use knee_testbed::{End, Played, TestbedError};
pub use output::OUTPUT_BYTES_MAX;
pub use run::{ProgramsEnded, ProgramsError, check_scenario, run_flows};
pub use shell::{Shell, ShellEnded, join, run};
pub use traffic::{Traffic, TrafficFlow, connections};
