//! What every ground with real packets has around it: two hosts, the links and
//! routes of a scenario between them, and the course of a run.
//!
//! Each host is a network namespace (`knee-host`); TUN devices join both to an
//! emulator that drives `knee-link` with the real clock (`knee-emulator`). It
//! needs namespaces and TUN, nothing else of the kernel, and runs no tool. What
//! it makes has no name and vanishes with the process. A ground brings the
//! applications with their transport:
//!
//! 1. [`Hosts::create`], with the size of packets of each path and what else
//!    the ground sets in each host;
//! 2. [`Testbed::self_check`], which measures every path before the run;
//! 3. [`Testbed::play`], which runs the ground's applications beside emulator
//!    and probes, and puts the records together;
//! 4. [`Health`], which says whether the run was sound.
//!
//! What this crate never does: know a transport or open a flow, print, leave
//! something behind, hide that the host was too slow (see [`Health`]).

mod error;
mod health;
mod hosts;
mod probe;
mod routes;
mod run;
mod self_check;

pub use error::TestbedError;
pub use health::Health;
pub use hosts::{End, Family, Hosts, PathSettings, address, path_of};
pub use knee_host::enter_user_namespace;
pub use probe::PathProbe;
pub use routes::links_and_routes;
pub use run::{Testbed, check_host};
pub use self_check::{Checked, PathCheck};
