//! Controllers by name: one table, one line for each.
//!
//! Adding a controller means adding its file and its line in [`TABLE`].

use crate::{Controller, Init, balia, bbr, cubic, fixed, lia, olia, reno};
use knee_registry::{Selection, SelectionError, Settings, Table};

/// How the registry builds a controller.
pub type Build = fn(&Settings, Init) -> Box<dyn Controller>;

/// A controller as the registry knows it.
pub type Entry = knee_registry::Entry<Build>;

static TABLE: Table<Build> = Table {
    noun: "controller",
    entries: &[
        balia::ENTRY,
        bbr::ENTRY,
        cubic::ENTRY,
        fixed::ENTRY,
        lia::ENTRY,
        olia::ENTRY,
        reno::ENTRY,
    ],
};

/// All controllers, by name in ascending order.
pub fn controllers() -> &'static [Entry] {
    TABLE.entries
}

/// The controller that `selection` names, with its parameters.
///
/// # Errors
/// When the name or a parameter is unknown, or a value is of the wrong kind
/// or out of range; when a window is in BDP, which only a scenario knows.
pub fn build(selection: &Selection, init: Init) -> Result<Box<dyn Controller>, SelectionError> {
    let (entry, settings) = TABLE.resolve(selection)?;
    if let Some((name, times)) = settings.windows_in_bdp().next() {
        return Err(SelectionError {
            parameter: Some(name.to_owned()),
            problem: format!("{name} is {times} BDP of a path that is not known"),
            advice: "write it in packets".to_owned(),
        });
    }
    Ok((entry.build)(&settings, init))
}

/// All parameters of what `selection` names, for a ground that runs the same
/// algorithm in another form.
///
/// # Errors
/// The same as [`check`]'s.
pub fn settings(selection: &Selection) -> Result<Settings, SelectionError> {
    TABLE.resolve(selection).map(|(_, settings)| settings)
}

/// Whether [`build`] would accept `selection`, once windows are in packets.
///
/// # Errors
/// When the name or a parameter is unknown, or a value is of the wrong kind
/// or out of range.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    TABLE.check(selection)
}
