//! A table of algorithms, one line for each, and how names are found in it.

use crate::{Parameter, Selection, SelectionError, Settings, did_you_mean};

/// An algorithm as its registry knows it; `B` is whatever builds one.
#[derive(Debug)]
pub struct Entry<B> {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Names for parameter sets of this algorithm.
    pub presets: &'static [Preset],
    /// Builds one, mostly from its [`Settings`].
    pub build: B,
}

/// A name for a parameter set of an algorithm.
#[derive(Debug)]
pub struct Preset {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// Parameters that it sets, with their values as a scenario writes them.
    pub parameters: &'static [(&'static str, &'static str)],
}

/// All algorithms of one kind, by name in ascending order.
#[derive(Debug)]
pub struct Table<B: 'static> {
    /// What they are, as messages call one of them: "controller".
    pub noun: &'static str,
    /// The algorithms.
    pub entries: &'static [Entry<B>],
}

impl<B> Table<B> {
    /// The entry that `selection` names, with the settings to build it from.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, or a value is of the wrong
    /// kind or out of range.
    pub fn resolve(
        &self,
        selection: &Selection,
    ) -> Result<(&'static Entry<B>, Settings), SelectionError> {
        let (entry, preset) = self.find(&selection.name)?;
        let mut settings = Settings::defaults(entry.parameters);
        for (name, value) in preset.into_iter().flat_map(|p| p.parameters) {
            settings.set_text(name, value);
        }
        for (name, value) in &selection.parameters {
            settings.set(&selection.name, name, value)?;
        }
        Ok((entry, settings))
    }

    /// Whether [`resolve`](Self::resolve) would accept `selection`.
    ///
    /// # Errors
    /// The same as [`resolve`](Self::resolve)'s.
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.resolve(selection).map(|_| ())
    }

    fn find(
        &self,
        name: &str,
    ) -> Result<(&'static Entry<B>, Option<&'static Preset>), SelectionError> {
        for entry in self.entries {
            if entry.name == name {
                return Ok((entry, None));
            }
            if let Some(preset) = entry.presets.iter().find(|p| p.name == name) {
                return Ok((entry, Some(preset)));
            }
        }
        Err(SelectionError {
            parameter: None,
            problem: format!("there is no {} \"{name}\"", self.noun),
            advice: did_you_mean(name, self.names()),
        })
    }

    /// Names of all algorithms, each followed by its presets.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<B> {
        let presets = |e: &'static Entry<B>| e.presets.iter().map(|p| p.name);
        self.entries.iter().flat_map(move |e| std::iter::once(e.name).chain(presets(e)))
    }
}
