//! The uncertainty of numbers and differences. All of Knee's statistics are computed here:
//! intervals of means, runs compared in pairs, the correction for multiple comparisons, the number
//! of repeats that a comparison needs, and the bootstrap over transfers. docs/measures.md has the
//! formulas.
//!
//! This module never knows what the numbers mean, never reads or writes a file, and draws only from
//! a given seed.

mod bootstrap;
mod discovery;
mod distribution;
mod integers;
mod interval;
mod judgement;
mod pairs;
mod power;
mod sketch;
mod statistic;
mod student;
mod thin;
mod weights;

pub use bootstrap::{RatioInterval, bootstrap_ratio, bootstrap_ratio_of_pairs};
pub use discovery::false_discovery;
pub use distribution::{Distribution, Weighted};
pub use integers::{SortedIntegers, WeightedIntegers, cumulative, minima};
pub use interval::{Interval, wilson};
pub use judgement::{Better, Judgement};
pub use pairs::{Paired, PairedScale, holm, simultaneous};
pub use power::Advice;
pub use sketch::Sketch;
pub use statistic::Statistic;
pub use thin::Thinning;

/// Significance level: a difference this unlikely by chance counts as real.
pub const LEVEL: f64 = 0.05;
/// Relative differences below this count as none, however certain they are: no two implementations
/// of one controller are closer.
pub const WORTH_NAMING: f64 = 0.01;
/// Relative differences below this are rounding errors.
const ROUNDING: f64 = 1e-9;
