//! Ground 2: the scenario over the Linux kernel's own TCP.
//!
//! Two hosts, each a network namespace (`knee-host`), are joined by TUN devices
//! to an emulator that drives `knee-link` with the real clock
//! (`knee-emulator`). It needs namespaces and TUN, nothing else of the kernel,
//! and runs no tool. What it makes has no name and vanishes with the process.
//!
//! What this crate never does: print, leave something behind, hide that the
//! host was too slow (see [`Health`]).

mod error;
mod flows;
mod health;
mod hosts;
mod probe;
mod routes;
mod run;
mod self_check;
mod settings;

pub use error::KernelError;
pub use health::Health;
pub use knee_host::enter_user_namespace;
pub use knee_record::Control;
pub use probe::PathProbe;
pub use run::{check_host, check_scenario, run};
pub use self_check::PathCheck;
