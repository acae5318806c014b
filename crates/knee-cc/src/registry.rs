//! Controllers by name: one table, one line for each.
//!
//! Adding a controller to this crate means adding its file and its line in
//! [`ENTRIES`]; a program adds its own to a [`Registry`].

use crate::{Controller, Init, balia, bbr, cubic, fixed, lia, olia, reno};
use knee_registry::{Selection, SelectionError, Settings, Table};
use std::fmt;
use std::sync::Arc;

/// Makes a controller, or says why it cannot.
pub type Factory = dyn Fn(&Settings, Init) -> Result<Box<dyn Controller>, String> + Send + Sync;

/// How the registry builds a controller.
#[derive(Clone)]
pub enum Build {
    /// One of this crate.
    BuiltIn(fn(&Settings, Init) -> Box<dyn Controller>),
    /// One that a program brings.
    Given(Arc<Factory>),
}

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Build::BuiltIn(_) => "BuiltIn",
            Build::Given(_) => "Given",
        })
    }
}

/// A controller as the registry knows it.
pub type Entry = knee_registry::Entry<Build>;

static ENTRIES: [Entry; 7] =
    [balia::ENTRY, bbr::ENTRY, cubic::ENTRY, fixed::ENTRY, lia::ENTRY, olia::ENTRY, reno::ENTRY];

static BUILT_IN: Registry = Registry::built_in();

/// Controllers by name: those of this crate, and those that a program
/// registers. Who reads a scenario and who runs it are given the same one.
#[derive(Clone, Debug)]
pub struct Registry(Table<Build>);

impl Default for Registry {
    fn default() -> Registry {
        Registry::built_in()
    }
}

impl Registry {
    /// The controllers of this crate.
    pub const fn built_in() -> Registry {
        Registry(Table::new("controller", &ENTRIES))
    }

    /// Adds a controller without parameters. Its name is kept for the life of
    /// the process.
    ///
    /// # Errors
    /// When there is one of this name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&Settings, Init) -> Result<Box<dyn Controller>, String> + Send + Sync + 'static,
    ) -> Result<(), SelectionError> {
        self.add(Entry {
            name: name.into().leak(),
            summary: "registered by the program",
            source: "the program",
            parameters: &[],
            presets: &[],
            build: Build::Given(Arc::new(factory)),
        })
    }

    /// Adds a controller with all that is known of it.
    ///
    /// # Errors
    /// When there is one of its name, or of that of a preset of its.
    pub fn add(&mut self, entry: Entry) -> Result<(), SelectionError> {
        self.0.add(entry)
    }

    /// All controllers: those of this crate by name in ascending order, then
    /// those registered.
    pub fn controllers(&self) -> impl Iterator<Item = &Entry> {
        self.0.entries()
    }

    /// The controller that `selection` names, with its parameters.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, or a value is of the wrong
    /// kind or out of range; when a window is in BDP, which only a scenario
    /// knows; when its factory refuses.
    pub fn build(
        &self,
        selection: &Selection,
        init: Init,
    ) -> Result<Box<dyn Controller>, SelectionError> {
        let (entry, settings) = self.0.resolve(selection)?;
        if let Some((name, times)) = settings.windows_in_bdp().next() {
            return Err(SelectionError {
                parameter: Some(name.to_owned()),
                problem: format!("{name} is {times} BDP of a path that is not known"),
                advice: "write it in packets".to_owned(),
            });
        }
        match &entry.build {
            Build::BuiltIn(build) => Ok(build(&settings, init)),
            Build::Given(factory) => factory(&settings, init).map_err(|reason| SelectionError {
                parameter: None,
                problem: format!("there is no {} now: {reason}", entry.name),
                advice: "see to what makes it".to_owned(),
            }),
        }
    }

    /// All parameters of what `selection` names, for a ground that runs the
    /// same algorithm in another form.
    ///
    /// # Errors
    /// The same as [`check`](Self::check)'s.
    pub fn settings(&self, selection: &Selection) -> Result<Settings, SelectionError> {
        self.0.resolve(selection).map(|(_, settings)| settings)
    }

    /// Whether `selection` can be [built](Self::build), once windows are in
    /// packets.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, or a value is of the wrong
    /// kind or out of range.
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.0.check(selection)
    }
}

/// All controllers of this crate, by name in ascending order.
pub fn controllers() -> &'static [Entry] {
    &ENTRIES
}

/// [`Registry::build`] with the controllers of this crate.
///
/// # Errors
/// Its.
pub fn build(selection: &Selection, init: Init) -> Result<Box<dyn Controller>, SelectionError> {
    BUILT_IN.build(selection, init)
}

/// [`Registry::settings`] with the controllers of this crate.
///
/// # Errors
/// Its.
pub fn settings(selection: &Selection) -> Result<Settings, SelectionError> {
    BUILT_IN.settings(selection)
}

/// [`Registry::check`] with the controllers of this crate.
///
/// # Errors
/// Its.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    BUILT_IN.check(selection)
}
