//! Schedulers by name: one table, one line for each.
//!
//! Adding a scheduler to this crate means adding its file and its line in
//! [`ENTRIES`]; a program adds its own to a [`Registry`].

use crate::{
    PATHS_MAX, Scheduler, blest, capacity, daps, dems, ecf, minrtt, opportunistic_redundant,
    redundant, round_robin, sctc,
};
use knee_registry::{Selection, SelectionError, Settings, Table};
use std::fmt;
use std::sync::Arc;

/// Makes a scheduler, or says why it cannot.
pub type Factory = dyn Fn(&Settings) -> Result<Box<dyn Scheduler>, String> + Send + Sync;

/// Makes a scheduler.
#[derive(Clone)]
pub enum Make {
    /// One of this crate. Refuses parameters that contradict each other.
    BuiltIn(fn(&Settings) -> Result<Box<dyn Scheduler>, SelectionError>),
    /// One that a program brings.
    Given(Arc<Factory>),
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Make::BuiltIn(_) => "BuiltIn",
            Make::Given(_) => "Given",
        })
    }
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

static ENTRIES: [Entry; 10] = [
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
];

static BUILT_IN: Registry = Registry::built_in();

/// Schedulers by name: those of this crate, and those that a program
/// registers. Who reads a scenario and who runs it are given the same one.
#[derive(Clone, Debug)]
pub struct Registry(Table<Build>);

impl Default for Registry {
    fn default() -> Registry {
        Registry::built_in()
    }
}

impl Registry {
    /// The schedulers of this crate.
    pub const fn built_in() -> Registry {
        Registry(Table::new("scheduler", &ENTRIES))
    }

    /// Adds a scheduler without parameters, for any number of paths. Its name
    /// is kept for the life of the process.
    ///
    /// # Errors
    /// When there is one of this name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&Settings) -> Result<Box<dyn Scheduler>, String> + Send + Sync + 'static,
    ) -> Result<(), SelectionError> {
        self.add(Entry {
            name: name.into().leak(),
            summary: "registered by the program",
            source: "the program",
            parameters: &[],
            presets: &[],
            build: Build { make: Make::Given(Arc::new(factory)), exact_paths: None },
        })
    }

    /// Adds a scheduler with all that is known of it.
    ///
    /// # Errors
    /// When there is one of its name, or of that of a preset of its.
    pub fn add(&mut self, entry: Entry) -> Result<(), SelectionError> {
        self.0.add(entry)
    }

    /// All schedulers: those of this crate by name in ascending order, then
    /// those registered.
    pub fn schedulers(&self) -> impl Iterator<Item = &Entry> {
        self.0.entries()
    }

    /// The scheduler that `selection` names, with its parameters.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, a value is of the wrong kind
    /// or out of range, or two parameters contradict each other; when its
    /// factory refuses.
    pub fn build(&self, selection: &Selection) -> Result<Box<dyn Scheduler>, SelectionError> {
        let (entry, settings) = self.0.resolve(selection)?;
        match &entry.build.make {
            Make::BuiltIn(make) => make(&settings),
            Make::Given(factory) => factory(&settings).map_err(|reason| SelectionError {
                parameter: None,
                problem: format!("there is no {} now: {reason}", entry.name),
                advice: "see to what makes it".to_owned(),
            }),
        }
    }

    /// Whether [`build`](Self::build) would accept `selection`.
    ///
    /// # Errors
    /// The same as [`build`](Self::build)'s.
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.build(selection).map(|_| ())
    }

    /// Whether the scheduler can serve a connection of so many paths.
    ///
    /// # Errors
    /// When it needs another number of paths, or no connection has so many;
    /// and [`check`](Self::check)'s.
    pub fn check_paths(&self, selection: &Selection, paths: usize) -> Result<(), SelectionError> {
        self.check(selection)?;
        let (entry, _) = self.0.resolve(selection)?;
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
    BUILT_IN.build(selection)
}

/// [`Registry::check`] with the schedulers of this crate.
///
/// # Errors
/// Its.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    BUILT_IN.check(selection)
}

/// [`Registry::check_paths`] with the schedulers of this crate.
///
/// # Errors
/// Its.
pub fn check_paths(selection: &Selection, paths: usize) -> Result<(), SelectionError> {
    BUILT_IN.check_paths(selection, paths)
}
