//! Controllers by name: a table with one line for each.
//!
//! To add a controller to this crate, add its file, and in `lib.rs` its `mod` and its line in
//! `ENTRIES`; a program adds its own to a [`Registry`].

use crate::{Controller, Init, bbr};
use knee_units::registry::{ExternalFactory, Selection, SelectionError, Settings};

/// How the registry builds a controller.
#[derive(Clone, Debug)]
pub enum Build {
    /// A controller of this crate.
    BuiltIn(fn(&Settings, Init) -> Box<dyn Controller>),
    /// One of this crate whose parameters may contradict each other: checked, then built.
    Checked(
        fn(&Settings) -> Result<(), SelectionError>,
        fn(&Settings, Init) -> Box<dyn Controller>,
    ),
    /// A controller that a program provides.
    Given(ExternalFactory<Build>),
}

/// A controller as the registry knows it.
pub type Entry = knee_units::registry::Entry<Build>;

/// A controller with its parameters, of which any number can be built.
pub type Prepared<'a> = knee_units::registry::Prepared<'a, Build>;

/// Controllers by name: those of this crate, and those that a program registers.
pub type Registry = knee_units::registry::Registry<Build>;

static BUILT_IN: Registry = Registry::built_in();

impl knee_units::registry::Build for Build {
    const NOUN: &'static str = "controller";
    const BUILT_IN: &'static [Entry] = crate::ENTRIES;
    type Built = Box<dyn Controller>;
    type Init = Init;

    fn given(factory: ExternalFactory<Build>) -> Build {
        Build::Given(factory)
    }

    fn check(entry: &Entry, settings: &Settings) -> Result<(), SelectionError> {
        match &entry.build {
            Build::Checked(check, _) => check(settings),
            Build::BuiltIn(_) | Build::Given(_) => Ok(()),
        }
    }

    /// Rejects a window in BDP, which only a scenario can resolve.
    fn build(
        entry: &Entry,
        settings: &Settings,
        init: Init,
    ) -> Result<Box<dyn Controller>, SelectionError> {
        if let Some((name, times)) = settings.windows_in_bdp().next() {
            return Err(SelectionError {
                parameter: Some(name.to_owned()),
                problem: format!("{name} is {times} BDP of a path that is not known"),
                advice: "write it in packets".to_owned(),
            });
        }
        match &entry.build {
            Build::BuiltIn(build) | Build::Checked(_, build) => Ok(build(settings, init)),
            Build::Given(factory) => factory.build(entry, settings, init),
        }
    }
}

/// Returns all controllers of this crate, by name in ascending order.
pub fn controllers() -> &'static [Entry] {
    crate::ENTRIES
}

/// Returns the first changed parameter of `selection` that BBR has neither in
/// the kernel nor in BPF; `None` if there is no such parameter.
pub fn not_in_kernel(selection: &Selection) -> Option<&'static str> {
    let settings = settings(selection).ok()?;
    let (entry, _) = BUILT_IN.resolve(selection).ok()?;
    if entry.name != bbr::ENTRY.name {
        return None;
    }
    let literal = settings.word("shrink_window").map(|_| bbr::LITERAL_WINDOW);
    literal.or_else(|| bbr::ONLY_HERE.into_iter().find(|name| !settings.is_default(name)))
}

/// [`Registry::build`] with the controllers of this crate.
///
/// # Errors
/// Those of [`Registry::build`].
pub fn build(selection: &Selection, init: Init) -> Result<Box<dyn Controller>, SelectionError> {
    BUILT_IN.build(selection, init)
}

/// [`Registry::settings`] with the controllers of this crate.
///
/// # Errors
/// Those of [`Registry::settings`].
pub fn settings(selection: &Selection) -> Result<Settings, SelectionError> {
    BUILT_IN.settings(selection)
}

/// [`Registry::check`] with the controllers of this crate.
///
/// # Errors
/// Those of [`Registry::check`].
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    BUILT_IN.check(selection)
}
