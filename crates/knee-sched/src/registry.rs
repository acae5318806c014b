//! Schedulers by name: one table, one line for each.
//!
//! Adding a scheduler to this crate means adding its file and its line in
//! [`ENTRIES`]; a program adds its own to a [`Registry`].

use crate::{
    PATHS_MAX, Scheduler, blest, capacity, daps, dems, ecf, just_in_time, minrtt,
    opportunistic_redundant, redundant, round_robin, sctc,
};
use knee_registry::{Given, Selection, SelectionError, Settings};

/// Makes a scheduler.
#[derive(Clone, Debug)]
pub enum Make {
    /// One of this crate. Refuses parameters that contradict each other.
    BuiltIn(fn(&Settings) -> Result<Box<dyn Scheduler>, SelectionError>),
    /// One that a program brings.
    Given(Given<Build>),
}

/// How the registry builds a scheduler.
#[derive(Clone, Debug)]
pub struct Build {
    /// Makes it.
    pub make: Make,
    /// How many paths a connection must have for it; none: any number.
    pub exact_paths: Option<usize>,
}

/// A scheduler as the registry knows it.
pub type Entry = knee_registry::Entry<Build>;

/// Schedulers by name: those of this crate, and those that a program registers,
/// for any number of paths.
pub type Registry = knee_registry::Registry<Build>;

static ENTRIES: [Entry; 11] = [
    blest::ENTRY,
    capacity::ENTRY,
    daps::ENTRY,
    dems::ENTRY,
    ecf::ENTRY,
    just_in_time::ENTRY,
    minrtt::ENTRY,
    opportunistic_redundant::ENTRY,
    redundant::ENTRY,
    round_robin::ENTRY,
    sctc::ENTRY,
];

static BUILT_IN: Registry = Registry::built_in();

impl knee_registry::Build for Build {
    const NOUN: &'static str = "scheduler";
    const BUILT_IN: &'static [Entry] = &ENTRIES;
    type Built = Box<dyn Scheduler>;
    type Init = ();

    fn given(factory: Given<Build>) -> Build {
        Build { make: Make::Given(factory), exact_paths: None }
    }

    fn build(
        entry: &Entry,
        settings: &Settings,
        (): (),
    ) -> Result<Box<dyn Scheduler>, SelectionError> {
        match &entry.build.make {
            Make::BuiltIn(make) => make(settings),
            Make::Given(factory) => factory.build(entry, settings, ()),
        }
    }

    fn check(entry: &Entry, settings: &Settings) -> Result<(), SelectionError> {
        <Build as knee_registry::Build>::build(entry, settings, ()).map(drop)
    }
}

/// All schedulers of this crate, by name in ascending order.
pub fn schedulers() -> &'static [Entry] {
    &ENTRIES
}

/// [`Registry::build`] with the schedulers of this crate.
///
/// # Errors
/// Its.
pub fn build(selection: &Selection) -> Result<Box<dyn Scheduler>, SelectionError> {
    BUILT_IN.build(selection, ())
}

/// [`Registry::check`] with the schedulers of this crate.
///
/// # Errors
/// Its.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    BUILT_IN.check(selection)
}

/// [`check_paths_of`] with the schedulers of this crate.
///
/// # Errors
/// Its.
pub fn check_paths(selection: &Selection, paths: usize) -> Result<(), SelectionError> {
    check_paths_of(&BUILT_IN, selection, paths)
}

/// Whether the scheduler that `selection` names can serve a connection of so
/// many paths.
///
/// # Errors
/// When it needs another number of paths, or no connection has so many; and
/// [`Registry::check`]'s.
pub fn check_paths_of(
    registry: &Registry,
    selection: &Selection,
    paths: usize,
) -> Result<(), SelectionError> {
    let (entry, _) = registry.resolve(selection)?;
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
