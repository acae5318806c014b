//! Knee's controllers, schedulers and bundle over QUIC (RFC 9000), and the ground that
//! runs scenarios so.
//!
//! A [`Host`] holds the QUIC connections of one end: one for each path of a bundle. What
//! they carry are DATAGRAM frames (RFC 9221) of `knee-bundle`; no data goes over a QUIC
//! stream but the JOIN that says to which bundle a connection belongs. It does no I/O and
//! has no clock: packets and the time come from the caller, as in `knee-bundle`.
//! [`CongestionControl`] puts a controller of `knee-cc` under the QUIC library (noq), with
//! the pacer, the PRR, the estimator of round trips and the sampler of rates of
//! `knee-transport`. Peers know each other by raw public keys (RFC 7250), pinned at both
//! ends.
//!
//! [`run`] is the ground: two hosts of `knee-testbed`, real sockets, real time. It differs
//! from the simulator's transport in what QUIC has and TCP has not: packets have numbers of
//! their own, a probe timeout instead of a retransmission timeout, ACKs every second packet
//! and after 25 ms at most, and headers of its own, which take the place of those of the
//! scenario. 0-RTT is not used: a connection begins with a handshake of one round trip.
//!
//! It never writes files and never judges a run, and nothing of it is patched into the QUIC
//! library.

mod congestion;
mod ground;
mod host;
mod keys;
mod link;
mod recovery;
mod ring;
mod socket;

pub use congestion::{CongestionControl, CongestionSettings, Coupling, Observed, check_controller};
pub use ground::{QuicError, check_scenario, run};
pub use host::{
    BundleId, ConnectionSettings, Host, HostError, HostEvent, HostSettings, PathState, Tape,
    Waiting,
};
pub use keys::{KeyError, KeyPair, PROTOCOL, PublicKey};
pub use link::Member;
pub use socket::{Addresses, Room, Socket};
