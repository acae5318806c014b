//! Policies that assign congestion controllers to traffic, applied to this host by routes or BPF
//! programs, and reversible.
//!
//! A [`Policy`] is read from TOML. Combined with the host's routes it yields a [`Plan`]: routes in
//! a separate table, tagged as Knee's, that set a controller and otherwise follow the main table;
//! held-out prefixes and foreign routes are deferred to the main table. For BPF programs the plan
//! holds prefixes instead. A [`Journal`] records every change before it is made.
//!
//! An [`Actuator`] carries out the plan: [`RouteActuator`] steers new connections;
//! `ProgramActuator`, with the feature `bpf`, open ones too. [`Host`] reverts the changes of
//! either.
//!
//! [`apply`] does so until it is stopped, and reverts everything. A [`GuardProcess`] reverts it if
//! this process cannot.
//!
//! In an [`Experiment`] an actuator assigns whole blocks of time to one of two controllers, and
//! [`judge`] evaluates the result. [`run_experiment`] goes through the blocks.
//!
//! Both loops ask an [`Environment`] for time, routes and guard, and say by an [`Event`] what
//! happens, so that they run without a host, too.
//!
//! On a host that accepts only signed policies, [`TrustedKeys`] and [`Versions`] determine which.
//!
//! A [`Publication`] tells other programs of this host who is assigned what, and a [`Lease`] until
//! when.
//!
//! [`HostDefault`] is the controller of connections that no policy names. It is set only on
//! explicit request.
//!
//! What this crate never does: change the host's default controller for a policy; change a foreign
//! route or one that an administrator has changed; print.

mod actuator;
mod apply;
mod default;
mod environment;
mod error;
mod event;
mod experiment;
mod guard;
mod hint;
mod host;
mod journal;
mod lease;
mod parts;
mod place;
mod plan;
mod policy;
#[cfg(feature = "bpf")]
mod programs;
mod publication;
mod routes;
mod signed;

#[cfg(feature = "bpf")]
pub(crate) use actuator::programs_folder;
pub use actuator::{
    Actuator, Applied, Means, PROTOCOL, Renewed, Returned, State, Unchanged, programs_lack,
};
pub use apply::{ApplySettings, apply};
pub use default::{DefaultState, HostDefault, Setting};
pub use environment::{Environment, LiveEnvironment, since_1970};
pub use error::{PolicyError, Problem};
pub use event::Event;
pub use experiment::{
    Block, BlockFile, CLASSES, Checked, Experiment, ExperimentEnd, ExperimentFiles, GroupBlock,
    Judged, Noise, RecordedBlocks, Slot, SoFar, Step, Stopped, Sums, Timeline, Times, certain_harm,
    check, judge, judged, noise, recorded_blocks, run_experiment, so_far,
};
pub use guard::{GuardEnd, GuardProcess, guard};
pub use hint::{GroupOf, Hint};
pub use host::Host;
pub use journal::{Entry, Journal, Recorded};
pub use knee_host::{Arm, Choice, cgroup_root};
pub use lease::{LEASE, Lease};
pub use place::{Placed, What};
pub use plan::{Kept, Plan, Planned, Why};
pub use policy::{Policy, PolicyFile, PolicyGroup, PrefixesOf, Stage, TABLE};
#[cfg(feature = "bpf")]
pub use programs::ProgramActuator;
pub use publication::{Announcing, Publication, treated};
pub use routes::RouteActuator;
pub use signed::{FILE_BYTES_MAX, SignatureError, SigningKey, TrustedKeys, Versions, write_signed};
