//! One direction of one hop as a state machine: circuit breaker, loss, policer,
//! queue, rate and propagation delay, in this order. A link whose queue fills can
//! ask its caller to [pause](Link::pause) those before it.
//!
//! Time is an argument, randomness is the link's own ChaCha8 stream, packets
//! are any type that implements [`Packet`]: an event queue can drive it as well
//! as a real clock. For a drop-tail queue the departure is computed on entry.
//!
//! What this crate never does: perform I/O, read a clock, allocate per packet
//! in steady state, know the ground it runs on.

mod aqm;
mod breaker;
mod capacity;
mod check;
mod config;
mod delay;
mod ends;
mod features;
mod fifo;
mod gate;
mod link;
mod loss;
mod pause;
mod policer;
mod read_loss;
mod read_trace;
mod server;

pub use aqm::{
    Aqm, AqmEntry, Build, CLASS_NAMES, ClassState, Codel, DualPi2, FqCodel, Marks, Pie, Place, Red,
    Threshold, aqms,
};
pub use capacity::Capacity;
pub use config::{
    Buffer, CircuitBreaker, Config, Delay, Device, Jitter, Loss, Normal, Pause, Policer, RateModel,
    Steps, Trace,
};
pub use knee_units::Ecn;
pub use link::{Counters, DropReason, Link, QueueState};
pub use read_loss::{LossFileError, read_loss};
pub use read_trace::TraceError;

/// What a link needs to know about a packet.
pub trait Packet {
    /// Returns the IP bytes, including headers, on which rate and queue are based.
    fn size(&self) -> u32;
    /// Returns its ECN codepoint: whether it may be marked instead of dropped,
    /// and which service it requests.
    fn ecn(&self) -> Ecn;
    /// Sets Congestion Experienced.
    fn mark(&mut self);
    /// Clears the ECN field: Not-ECT.
    fn clear_ecn(&mut self);
    /// Returns the hash of the flow, for queues that separate flows.
    fn flow_hash(&self) -> u64;
    /// Returns what tells the packets that one end hands over from all others, in a tunnel too.
    fn sender(&self) -> u64 {
        self.flow_hash()
    }
}
