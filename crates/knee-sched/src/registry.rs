//! Schedulers by name: one table, one line for each.
//!
//! Adding a scheduler means adding its file and its line in [`TABLE`].

use crate::{
    PATHS_MAX, Scheduler, blest, capacity, daps, dems, ecf, minrtt, opportunistic_redundant,
    redundant, round_robin, sctc,
};
use knee_registry::{Selection, SelectionError, Settings, Table};

/// How the registry builds a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    pub(crate) make: fn(&Settings) -> Result<Box<dyn Scheduler>, SelectionError>,
    /// How many paths a connection must have for it; none: any number.
    pub exact_paths: Option<usize>,
}

/// A scheduler as the registry knows it.
pub type Entry = knee_registry::Entry<Build>;

static TABLE: Table<Build> = Table {
    noun: "scheduler",
    entries: &[
        blest::ENTRY,
        capacity::ENTRY,
        daps::ENTRY,
        dems::ENTRY,
        ecf::ENTRY,
        minrtt::ENTRY,
        opportunistic_redundant::ENTRY,
        redundant::ENTRY,
        round_robin::ENTRY,
        sctc::ENTRY,
    ],
};

/// All schedulers, by name in ascending order.
pub fn schedulers() -> &'static [Entry] {
    TABLE.entries
}

/// The scheduler that `selection` names, with its parameters.
///
/// # Errors
/// When the name or a parameter is unknown, a value is of the wrong kind or
/// out of range, or two parameters contradict each other.
pub fn build(selection: &Selection) -> Result<Box<dyn Scheduler>, SelectionError> {
    let (entry, settings) = TABLE.resolve(selection)?;
    (entry.build.make)(&settings)
}

/// Whether [`build`] would accept `selection`.
///
/// # Errors
/// The same as [`build`]'s.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    build(selection).map(|_| ())
}

/// Whether the scheduler can serve a connection of so many paths.
///
/// # Errors
/// When it needs another number of paths, or no connection has so many; and
/// [`check`]'s.
pub fn check_paths(selection: &Selection, paths: usize) -> Result<(), SelectionError> {
    check(selection)?;
    let (entry, _) = TABLE.resolve(selection)?;
    let name = &selection.name;
    let refused = |problem, advice| Err(SelectionError { parameter: None, problem, advice });
    match entry.build.exact_paths {
        Some(wanted) if paths != wanted => refused(
            format!("{name} needs exactly {wanted} paths, not {paths}"),
            format!("name {wanted} paths, or write another scheduler, such as \"minrtt\""),
        ),
        _ if !(1..=PATHS_MAX).contains(&paths) => refused(
            format!("{name} cannot serve {paths} paths"),
            format!("name from 1 to {PATHS_MAX} paths"),
        ),
        _ => Ok(()),
    }
}
