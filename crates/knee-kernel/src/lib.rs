//! The ground `kernel`: the scenario over the Linux kernel's own TCP.
//!
//! Its flows can also run to another machine ([`run_remote`]), which discards and counts what
//! arrives; the ground `hosts` (`knee-hosts`) does that.
//!
//! Hosts, links, probes and the course of a run come from `knee-testbed`. This crate has the part
//! about TCP: which settings of a scenario the kernel supports ([`check_scenario`]), flows over its
//! sockets, and the information that it provides about them. It runs no tool.
//!
//! What this crate never does: print, leave anything behind, hide that the host was too slow (see
//! [`Health`]).

mod beside;
mod error;
mod flows;
mod hosts;
mod remote;
mod run;
mod settings;

pub use beside::{Listening, OwnFlows};
pub use error::KernelError;
pub use knee_emulator::FiveTuple;
pub use knee_record::Control;
pub use knee_testbed::{Health, Observing, Played};
pub use remote::{Remote, check_remote, run_remote};
pub use run::{check_scenario, create_hosts, run, run_observed, run_to};
