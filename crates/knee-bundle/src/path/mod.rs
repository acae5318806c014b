//! A path of a bundle: numbers of datagrams, acknowledgements, loss detection.

mod arrivals;
mod rtt;
mod rule;
mod sent;

pub use arrivals::{ACK_DELAY, Arrivals};
pub use rtt::Rtt;
pub use rule::LossRule;
pub use sent::{Fate, NeverSent, Outstanding};
