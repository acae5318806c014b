//! Algorithms by name, with typed parameters: what controllers, schedulers
//! and their kind have in common.
//!
//! A scenario gives a [`Selection`]: a name and the parameters that differ
//! from the defaults. A [`Table`] of [`Entry`]s resolves it to an entry and
//! its [`Settings`], or to a [`SelectionError`] that says what to write
//! instead. A [`Registry`] builds what they are.
//!
//! What this crate never does: know a particular algorithm.

mod parameters;
mod registry;
mod selection;
mod suggest;
mod table;

pub use parameters::{Kind, Parameter, Settings};
pub use registry::{Build, Factory, Given, Registry};
pub use selection::{Selection, SelectionError, Value};
pub use suggest::{did_you_mean, nearest};
pub use table::{Entry, Preset, Table};
