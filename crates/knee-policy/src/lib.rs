//! A policy, which says which congestion controller is for which traffic; applied to
//! this host by routes or BPF programs, with a way back.
//!
//! A [`Policy`] is read from TOML. With the routes that the host has it gives a
//! [`Plan`]: routes of its own table, tagged as Knee's, that name a controller and
//! otherwise lead where the main table leads; prefixes held out and what is somebody
//! else's are sent on to the main table. Or it gives prefixes for BPF programs. What is
//! done stands in a [`Journal`] before it is done.
//!
//! An [`Actuator`] carries the plan out: [`RouteActuator`] steers connections that begin;
//! `ProgramActuator`, with the feature `bpf`, also those that are open. Whoever did what,
//! [`Host`] takes it back.
//!
//! An [`Experiment`] has an actuator give whole blocks of time the one or the other of two
//! controllers, and [`judge`] says what came of it.
//!
//! Where a host takes only policies that are signed, [`TrustedKeys`] and [`Versions`] say
//! which.
//!
//! [`HostDefault`] is the controller of connections that no policy names. It is set where
//! somebody asks for that alone.
//!
//! What this crate never does: change the host's default controller for a policy, a
//! foreign route or one that an administrator has changed; print.

mod actuator;
mod default;
mod error;
mod experiment;
mod host;
mod journal;
mod place;
mod plan;
mod policy;
#[cfg(feature = "bpf")]
mod programs;
mod routes;
mod signed;

#[cfg(feature = "bpf")]
pub(crate) use actuator::programs_folder;
pub use actuator::{
    Actuator, Applied, Means, PROTOCOL, Renewed, Returned, State, cgroup_root, programs_lack,
};
pub use default::{DefaultState, HostDefault, Setting};
pub use error::{PolicyError, Problem};
pub use experiment::{
    Block, BlockFile, CLASSES, Experiment, GroupBlock, Judged, Slot, Step, Sums, Timeline, judge,
};
pub use host::Host;
pub use journal::{Entry, Journal, Recorded};
pub use knee_host::Choice;
pub use place::{Placed, What};
pub use plan::{Kept, Plan, Planned, Why};
pub use policy::{Policy, PolicyFile, PolicyGroup, TABLE};
#[cfg(feature = "bpf")]
pub use programs::ProgramActuator;
pub use routes::RouteActuator;
pub use signed::{SignatureError, SigningKey, TrustedKeys, Versions, write_signed};
