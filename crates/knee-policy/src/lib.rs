//! A policy, which says which congestion controller is for which traffic; applied to
//! this host by routes, with a way back.
//!
//! A [`Policy`] is read from TOML. With the routes that the host has it gives a
//! [`Plan`]: routes of its own table, tagged as Knee's, that name a controller and
//! otherwise lead where the main table leads; prefixes held out and what is somebody
//! else's are sent on to the main table. [`Actuator`] carries the plan out and takes it
//! back; what it does stands in a [`Journal`] before it is done.
//!
//! Routes steer connections that begin; those that are open keep their controller. The
//! other actuator that is planned, BPF programs of the `sockops` kind, is not here, nor
//! are signed policies for fleets.
//!
//! [`HostDefault`] is the controller of connections that no policy names. It is set where
//! somebody asks for that alone.
//!
//! What this crate never does: change the host's default controller for a policy, a
//! foreign route or one that an administrator has changed; decide which controller is
//! better; print.

mod actuator;
mod default;
mod error;
mod journal;
mod plan;
mod policy;

pub use actuator::{Actuator, Applied, PROTOCOL, Returned, State};
pub use default::{DefaultState, HostDefault, Setting};
pub use error::{PolicyError, Problem};
pub use journal::{Entry, Journal, Recorded};
pub use plan::{Kept, Plan, Planned, Why};
pub use policy::{Policy, PolicyFile, PolicyGroup, TABLE};
