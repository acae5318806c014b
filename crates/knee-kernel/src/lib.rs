//! Ground 2: the scenario over the Linux kernel's own TCP.
//!
//! Hosts, links, probes and the course of a run are those of `knee-testbed`.
//! Here is what is about TCP: what a scenario asks of the kernel's, or why it
//! cannot be had ([`check_scenario`]), flows over its sockets, and what it tells
//! of them. It runs no tool.
//!
//! What this crate never does: print, leave something behind, hide that the
//! host was too slow (see [`Health`]).

mod error;
mod flows;
mod hosts;
mod run;
mod settings;

pub use error::KernelError;
pub use knee_record::Control;
pub use knee_testbed::Health;
pub use run::{check_scenario, run};
