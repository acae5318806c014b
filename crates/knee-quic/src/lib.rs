//! Knee's controllers, schedulers and bundle over QUIC (RFC 9000), and the ground that runs
//! scenarios over them.
//!
//! A [`Host`] holds the QUIC connections of one end, one per path of a bundle. They carry DATAGRAM
//! frames (RFC 9221) of `knee-bundle`; the only data on a QUIC stream is the JOIN that assigns a
//! connection to a bundle. A host does no I/O and has no clock: packets and the time come from the
//! caller, as in `knee-bundle`. [`CongestionControl`] puts a controller of `knee-cc` under the QUIC
//! library (noq), with the pacer, PRR, RTT estimator and rate sampler of `knee-transport`. Peers
//! know each other by raw public keys (RFC 7250), pinned at both ends. There is no trait around the
//! QUIC library: the bundle below needs nothing that is particular to noq, and `tests/quinn.rs`
//! runs it over quinn.
//!
//! [`run`] is the ground: two hosts of `knee-testbed`, real sockets, real time. It differs from the
//! simulator's transport where QUIC differs from TCP: each packet has a new number, a probe timeout
//! replaces the retransmission timeout, ACKs come every second packet and after 25 ms at most, and
//! QUIC's headers replace those of the scenario. 0-RTT is not used: a connection begins with a
//! handshake of one round trip.
//!
//! What this crate never does: write files, judge a run, patch the QUIC library.

mod congestion;
mod ground;
mod host;
mod keys;
mod link;
mod recovery;
mod ring;
mod socket;

pub use congestion::{CongestionControl, CongestionSettings, Coupling, Observed, check_controller};
pub use ground::{QuicError, check_scenario, run, run_observed, run_to};
pub use host::{
    BundleId, ConnectionSettings, DecisionQueue, Host, HostError, HostEvent, HostSettings,
    PathState, Waiting,
};
pub use keys::{KeyError, KeyPair, PROTOCOL, PublicKey};
pub use link::Member;
pub use socket::{Addresses, Room, Socket};
