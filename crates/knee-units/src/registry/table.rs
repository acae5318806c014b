//! A table of algorithms with one line for each, additions by a program, and the lookup of names.

use crate::registry::{Parameter, Selection, SelectionError, Settings, did_you_mean};

/// The entry of an algorithm; `B` is whatever builds one.
#[derive(Clone, Debug)]
pub struct Entry<B> {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description, in one line.
    pub summary: &'static str,
    /// Where the algorithm is described.
    pub source: &'static str,
    /// Parameters that can be set.
    pub parameters: &'static [Parameter],
    /// Names for parameter sets of this algorithm.
    pub presets: &'static [Preset],
    /// Builds an algorithm, mostly from its [`Settings`].
    pub build: B,
}

impl<B> Entry<B> {
    /// Returns the settings that `selection` of this algorithm, or of a preset of it, gives.
    pub(crate) fn settings(
        &self,
        preset: Option<&Preset>,
        selection: &Selection,
    ) -> Result<Settings, SelectionError> {
        let mut settings = Settings::defaults(self.parameters);
        for (name, value) in preset.into_iter().flat_map(|p| p.parameters) {
            settings.set_text(name, value);
        }
        for (name, value) in &selection.parameters {
            settings.set(&selection.name, name, value)?;
        }
        Ok(settings)
    }
}

/// A name for a parameter set of an algorithm.
#[derive(Debug)]
pub struct Preset {
    /// Name in scenarios.
    pub name: &'static str,
    /// Purpose, in one line.
    pub summary: &'static str,
    /// Parameters that it sets, with their values as a scenario writes them.
    pub parameters: &'static [(&'static str, &'static str)],
}

/// All algorithms of one kind.
#[derive(Clone, Debug)]
pub struct Table<B: 'static> {
    noun: &'static str,
    built_in: &'static [Entry<B>],
    added: Vec<Entry<B>>,
}

impl<B> Table<B> {
    /// Creates a table of built-in algorithms, which are in ascending order of their names; `noun`
    /// is used in messages: "controller".
    pub const fn new(noun: &'static str, built_in: &'static [Entry<B>]) -> Table<B> {
        Table { noun, built_in, added: Vec::new() }
    }

    /// Adds an algorithm.
    ///
    /// # Errors
    /// If its name, or the name of one of its presets, is taken.
    pub fn add(&mut self, entry: Entry<B>) -> Result<(), SelectionError> {
        let mut names = std::iter::once(entry.name).chain(entry.presets.iter().map(|p| p.name));
        if let Some(taken) = names.find(|name| self.names().any(|known| known == *name)) {
            return Err(SelectionError {
                parameter: None,
                problem: format!("there is a {} \"{taken}\" already", self.noun),
                advice: "choose another name".to_owned(),
            });
        }
        self.added.push(entry);
        Ok(())
    }

    /// Returns all algorithms: those built in, then those added.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<B>> {
        self.built_in.iter().chain(&self.added)
    }

    /// Returns the entry that `selection` names, with the settings to build it from.
    ///
    /// # Errors
    /// If the name or a parameter is unknown, or a value is of the wrong kind or out of range.
    pub fn resolve(&self, selection: &Selection) -> Result<(&Entry<B>, Settings), SelectionError> {
        let (entry, preset) = self.find(&selection.name)?;
        Ok((entry, entry.settings(preset, selection)?))
    }

    /// Checks whether [`resolve`](Self::resolve) would accept `selection`.
    ///
    /// # Errors
    /// The errors of [`resolve`](Self::resolve).
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.resolve(selection).map(|_| ())
    }

    fn find(&self, name: &str) -> Result<(&Entry<B>, Option<&'static Preset>), SelectionError> {
        for entry in self.entries() {
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

    /// Returns the names of all algorithms, each followed by its presets.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let presets = |e: &Entry<B>| e.presets.iter().map(|p| p.name);
        self.entries().flat_map(move |e| std::iter::once(e.name).chain(presets(e)))
    }
}
