//! Common environment of all grounds with real packets: two hosts, the links and routes of a
//! scenario between them, and the execution of a run.
//!
//! Each host is a network namespace (`knee-host`); TUN devices join both to an emulator that drives
//! `knee-link` with the real clock (`knee-emulator`). It requires only namespaces and TUN of the
//! kernel, and runs no tools. What it creates has no name and vanishes with the process. A ground
//! provides the applications with their transport:
//!
//! 1. [`Hosts::create`], with the packet size of each path and the ground's
//!    settings of each host;
//! 2. [`Testbed::self_check`], which measures every path before the run;
//! 3. [`Testbed::play`], which runs the ground's applications beside emulator
//!    and probes, and assembles the records;
//! 4. [`Health`], which states whether the run was sound.
//!
//! What this crate never does: know a transport or open a flow, print, leave anything behind, hide
//! that the host was too slow (see [`Health`]).

mod error;
mod health;
mod hosts;
mod observe;
mod probe;
mod routes;
mod run;
mod self_check;

pub use error::TestbedError;
pub use health::Health;
pub use hosts::{End, Family, Hosts, PathSettings, address, path_of};
pub use knee_emulator::{Clock, FiveTuple, Flow, FlowTable, Observed, Volume, add_secrets};
pub use knee_host::enter_user_namespace;
pub use observe::{Observing, Played, SampleFlows};
pub use probe::PathProbe;
pub use routes::{link_names, links_and_routes};
pub use run::{Testbed, check_host};
pub use self_check::{Checked, PathCheck};
