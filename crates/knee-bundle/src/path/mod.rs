//! A path of a bundle: numbers of datagrams, acknowledgements, loss detection.

mod arrivals;
mod rtt;
mod sent;

pub use arrivals::{ACK_DELAY, Arrivals};
pub use rtt::Rtt;
pub use sent::{Fate, NeverSent, Outstanding};
