//! The applications of a scenario over real sockets, all on one thread.

mod applications;
mod closing;
mod exchange;
mod flow;
mod sampling;
mod sockets;
mod subflows;

pub use applications::{Applications, listen};

use knee_units::Time;

/// Flow number `n` is received on this port plus `n`.
const PORT: u16 = 10_000;
/// Flows that have a port.
pub const FLOWS_MAX: usize = (u16::MAX - PORT) as usize;
/// Bytes given to a socket in one call.
const GIVE_BYTES: usize = 1 << 18;
/// Bytes taken from a socket in one call.
const TAKE_BYTES: usize = 1 << 20;
/// How often the end of what was sent is looked for.
const COMPLETION_PERIOD: Time = Time::from_micros(500);
/// The longest sleep of a thread: how soon a request to stop is seen.
const SLEEP_MAX_MS: u64 = 20;
