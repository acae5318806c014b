//! Controllers by name: one table, one line for each.
//!
//! Adding a controller means adding its file and its line in [`CONTROLLERS`].

use crate::parameters::{Parameter, Settings};
use crate::suggest::did_you_mean;
use crate::{Controller, Init, bbr, cubic, reno};
use std::collections::BTreeMap;
use thiserror::Error;

/// A controller or preset by name, with parameters that differ from its
/// defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Name of a controller or of a preset.
    pub name: String,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Value>,
}

impl Selection {
    /// The controller or preset `name` with its defaults.
    pub fn named(name: impl Into<String>) -> Selection {
        Selection { name: name.into(), parameters: BTreeMap::new() }
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: Value) -> Selection {
        self.parameters.insert(parameter.into(), value);
        self
    }
}

/// Value of a parameter, as a scenario gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A dimensionless number.
    Number(f64),
    /// A quantity with its unit, or a word.
    Text(String),
    /// A list of numbers.
    Numbers(Vec<f64>),
}

/// A controller as the registry knows it.
#[derive(Debug)]
pub struct Entry {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Names for parameter sets of this controller.
    pub presets: &'static [Preset],
    pub(crate) build: fn(&Settings, Init) -> Box<dyn Controller>,
}

/// A name for a parameter set of a controller.
#[derive(Debug)]
pub struct Preset {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// Parameters that it sets, with their values as a scenario writes them.
    pub parameters: &'static [(&'static str, &'static str)],
}

/// Why a [`Selection`] is refused: what is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}: {advice}")]
pub struct SelectionError {
    /// The parameter at fault; none when it is the name of the controller.
    pub parameter: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}

static CONTROLLERS: &[Entry] = &[bbr::ENTRY, cubic::ENTRY, reno::ENTRY];

/// All controllers, by name in ascending order.
pub fn controllers() -> &'static [Entry] {
    CONTROLLERS
}

/// The controller that `selection` names, with its parameters.
///
/// # Errors
/// When the name or a parameter is unknown, or a value is of the wrong kind
/// or out of range.
pub fn build(selection: &Selection, init: Init) -> Result<Box<dyn Controller>, SelectionError> {
    let (entry, settings) = resolve(selection)?;
    Ok((entry.build)(&settings, init))
}

/// Whether [`build`] would accept `selection`.
///
/// # Errors
/// The same as [`build`]'s.
pub fn check(selection: &Selection) -> Result<(), SelectionError> {
    resolve(selection).map(|_| ())
}

fn resolve(selection: &Selection) -> Result<(&'static Entry, Settings), SelectionError> {
    let (entry, preset) = find(&selection.name)?;
    let mut settings = Settings::defaults(entry.parameters);
    for (name, value) in preset.into_iter().flat_map(|p| p.parameters) {
        settings.set_text(name, value);
    }
    for (name, value) in &selection.parameters {
        settings.set(&selection.name, name, value)?;
    }
    Ok((entry, settings))
}

fn find(name: &str) -> Result<(&'static Entry, Option<&'static Preset>), SelectionError> {
    for entry in CONTROLLERS {
        if entry.name == name {
            return Ok((entry, None));
        }
        if let Some(preset) = entry.presets.iter().find(|p| p.name == name) {
            return Ok((entry, Some(preset)));
        }
    }
    Err(SelectionError {
        parameter: None,
        problem: format!("there is no controller \"{name}\""),
        advice: did_you_mean(name, names()),
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().flat_map(|e| std::iter::once(e.name).chain(e.presets.iter().map(|p| p.name)))
}
