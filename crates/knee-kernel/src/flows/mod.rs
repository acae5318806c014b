//! The applications of a scenario over real sockets, all on one thread.

mod applications;
mod closing;
mod exchange;
mod flow;
mod sampling;
mod sockets;
mod subflows;

pub use applications::{Applications, listen};
pub use flow::{Receivers, RunningFlow};

use knee_units::Time;

/// Port of flow 0 at its receiver; flow `n` has this port plus `n`.
const PORT: u16 = 10_000;
/// Maximum number of flows, which have a port each.
pub const FLOWS_MAX: usize = (u16::MAX - PORT) as usize;
/// Maximum bytes per write.
const GIVE_BYTES: usize = 1 << 18;
/// Maximum bytes per read.
const TAKE_BYTES: usize = 1 << 20;
/// Interval of checks for the end of what was sent.
const COMPLETION_PERIOD: Time = Time::from_micros(500);
/// Longest sleep, which bounds the reaction to a stop request.
const SLEEP_MAX_MS: u64 = 20;
