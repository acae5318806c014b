//! Schedulers by name: a table with one line for each.
//!
//! To add a scheduler to this crate, add its file, and in `mod.rs` its `mod` and its line in
//! `ENTRIES`; a program adds its own to a [`Registry`].

use crate::sched::{PATHS_MAX, Scheduler};
use knee_units::registry::{ExternalFactory, Selection, SelectionError, Settings};

/// Creates a scheduler.
#[derive(Clone, Debug)]
pub enum Make {
    /// A scheduler of this crate. Rejects contradictory parameters.
    BuiltIn(fn(&Settings) -> Result<Box<dyn Scheduler>, SelectionError>),
    /// A scheduler that a program provides.
    Given(ExternalFactory<Build>),
}

/// How the registry builds a scheduler.
#[derive(Clone, Debug)]
pub struct Build {
    /// Creates it.
    pub make: Make,
    /// Required number of paths; `None` for any number.
    pub exact_paths: Option<usize>,
}

/// A scheduler as the registry knows it.
pub type Entry = knee_units::registry::Entry<Build>;

/// Schedulers by name: those of this crate, and those that a program registers,
/// for any number of paths.
pub type Registry = knee_units::registry::Registry<Build>;

static BUILT_IN: Registry = Registry::built_in();

impl knee_units::registry::Build for Build {
    const NOUN: &'static str = "scheduler";
    const BUILT_IN: &'static [Entry] = crate::sched::ENTRIES;
    type Built = Box<dyn Scheduler>;
    type Init = ();

    fn given(factory: ExternalFactory<Build>) -> Build {
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
        <Build as knee_units::registry::Build>::build(entry, settings, ()).map(drop)
    }
}

/// Returns all schedulers of this crate, by name in ascending order.
pub fn schedulers() -> &'static [Entry] {
    crate::sched::ENTRIES
}

/// [`Registry::build`] with the schedulers of this crate.
///
/// # Errors
/// Those of [`Registry::build`].
pub fn build(selection: &Selection) -> Result<Box<dyn Scheduler>, SelectionError> {
    BUILT_IN.build(selection, ())
}

/// [`Registry::check`] with the schedulers of this crate.
///
/// # Errors
/// Those of [`Registry::check`].
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    BUILT_IN.check(selection)
}

/// [`check_paths_of`] with the schedulers of this crate.
///
/// # Errors
/// Those of [`check_paths_of`].
pub fn check_paths(selection: &Selection, paths: usize) -> Result<(), SelectionError> {
    check_paths_of(&BUILT_IN, selection, paths)
}

/// Checks that the scheduler named by `selection` can serve a connection of `paths` paths.
///
/// # Errors
/// If it needs another number of paths, or no connection can have this many;
/// and those of [`Registry::check`].
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
