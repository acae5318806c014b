//! Knee's controllers, schedulers and bundle over QUIC.

mod congestion;
mod ground;
mod host;
mod keys;
mod link;
mod recovery;
mod ring;

pub use congestion::{CongestionControl, CongestionSettings, Coupling, Observed};
pub use ground::{QuicError, check_scenario, run};
pub use host::{BundleId, Host, HostError, HostEvent, HostSettings};
pub use keys::{KeyError, KeyPair, PROTOCOL, PublicKey};
