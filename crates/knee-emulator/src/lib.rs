//! Links in real time: a router between TUN devices.
//!
//! What a host sends into its device is read, passed through links of `knee-link`, and written to
//! the device at the end of its route. Of the kernel, only TUN is needed, and no tool is run:
//!
//! 1. [`Tun::create`] within the namespace of each host;
//! 2. an [`Emulation`]: the links, and a route from each device to another;
//! 3. [`Emulator::run`] on a thread of its own, which [`realtime::prepare`] makes punctual if the
//!    host permits it;
//! 4. an [`Outcome`], which states how punctual it was;
//! 5. on request, an [observer](observe), which lists the flows and captures packets.
//!
//! `tests/router.rs` does all four.
//!
//! What this crate never does: know scenarios or records, need netem, open a socket, hide that it
//! was late (see [`Tally`]).

mod arena;
mod clock;
mod emulator;
mod lateness;
mod merge;
mod observer;
mod packet;
pub mod realtime;
mod routes;
mod tun;
mod wire;

pub use clock::{Clock, age, timespec};
pub use emulator::{Emulation, Emulator, Outcome, STALL, Sample, Tally};
pub use lateness::Lateness;
pub use observer::{
    Capture, Delays, FiveTuple, Flow, FlowTable, Observed, Observer, TakeFlows, Volume, Watcher,
    add_secrets, observe,
};
pub use packet::IpPacket;
pub use routes::Routes;
pub use tun::Tun;
