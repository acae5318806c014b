//! Which controller to try for a group of connections, from what a host knows of
//! them once they have ended.
//!
//! Rate, loss and buffer of a path cannot be read from such rows: estimates taken
//! straight from them miss the gain by a factor of two. So the rows are compared
//! with simulated ones: [`Search`] looks for paths over which the controller in use
//! leaves the same [`Statistics`], and on these the candidates are asked. What the
//! simulator cannot reproduce it cannot predict, so a misfit that is too large
//! means no advice ([`Verdict::NoAdvice`]).
//!
//! The model is one bottleneck with a constant rate, a drop-tail queue and losses
//! that do not depend on each other, shared by the group's connections, which
//! arrive at random (Poisson), and by others under CUBIC. What comes out orders
//! experiments; it does not replace one.
//!
//! What this crate never does: simulate, read a file, draw from anything but the
//! seed that it is given.

mod advice;
mod linear;
mod path;
mod search;
mod statistics;

pub use advice::{Answer, Class, Gain, Prediction, Reason, RuleOfThumb, Verdict, rule_of_thumb};
pub use path::{Bounds, Path};
pub use search::{Fit, Search, SearchSettings};
pub use statistics::{Connection, LARGE_BYTES, Statistics, misfit};
