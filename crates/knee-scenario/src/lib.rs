//! The scenario and study files: parsed, checked, resolved.
//!
//! What this crate never does: run anything, print.

pub mod measure;
mod model;

pub use measure::{Measure, Statistic};
pub use model::{Claim, Flow, Link, Outcome, Path, Reverse, Scenario, Workload};
