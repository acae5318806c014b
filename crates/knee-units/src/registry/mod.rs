//! Algorithms by name, with typed parameters: the common part of controllers, schedulers and the
//! like.
//!
//! A scenario contains a [`Selection`]: a name and the parameters that differ from the defaults. A
//! [`Table`] of [`Entry`]s resolves it to an entry and its [`Settings`], or to a [`SelectionError`]
//! that says what to write instead. A [`Registry`] builds the algorithms.
//!
//! This module never knows a particular algorithm.

mod factory;
mod parameters;
mod selection;
mod suggest;
mod table;

pub use factory::{Build, ExternalFactory, Factory, Prepared, Registry};
pub use parameters::{Kind, Parameter, Settings};
pub use selection::{Selection, SelectionError, Value};
pub use suggest::{did_you_mean, nearest};
pub use table::{Entry, Preset, Table};
