//! How sure a number or a difference is. Everything that Knee says about
//! chance is computed here: intervals of means, runs compared in pairs, the
//! correction for several comparisons, how many repeats a comparison needs,
//! and the bootstrap over transfers. docs/measures.md has the formulas.
//!
//! What this crate never does: know what the numbers are of, read or write a
//! file, draw from anything but a seed that is given.

mod bootstrap;
mod distribution;
mod interval;
mod pairs;
mod power;
mod sketch;
mod student;

pub use bootstrap::{RatioInterval, bootstrap_ratio, bootstrap_ratio_of_pairs};
pub use distribution::Distribution;
pub use interval::Interval;
pub use pairs::{Paired, PairedScale, holm, simultaneous};
pub use power::Advice;
pub use sketch::Sketch;

/// A difference this unlikely by chance counts as one.
pub const LEVEL: f64 = 0.05;
/// A relative difference smaller than this is not worth naming, however sure it is: no
/// two implementations of one controller are closer.
pub const WORTH_NAMING: f64 = 0.01;
/// Relative differences below this are rounding.
const ROUNDING: f64 = 1e-9;
