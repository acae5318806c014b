//! A table of algorithms, one line for each, what a program adds to it, and how
//! names are found in it.

use crate::{Parameter, Selection, SelectionError, Settings, did_you_mean};

/// An algorithm as its registry knows it; `B` is whatever builds one.
#[derive(Clone, Debug)]
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

/// All algorithms of one kind.
#[derive(Clone, Debug)]
pub struct Table<B: 'static> {
    noun: &'static str,
    built_in: &'static [Entry<B>],
    added: Vec<Entry<B>>,
}

impl<B> Table<B> {
    /// The algorithms that are built in, by name in ascending order; `noun` is
    /// what messages call one of them: "controller".
    pub const fn new(noun: &'static str, built_in: &'static [Entry<B>]) -> Table<B> {
        Table { noun, built_in, added: Vec::new() }
    }

    /// Adds one.
    ///
    /// # Errors
    /// When there is one of its name already, or of that of a preset of its.
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

    /// All of them: those built in, then those added.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<B>> {
        self.built_in.iter().chain(&self.added)
    }

    /// The entry that `selection` names, with the settings to build it from.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, or a value is of the wrong
    /// kind or out of range.
    pub fn resolve(&self, selection: &Selection) -> Result<(&Entry<B>, Settings), SelectionError> {
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

    /// Names of all algorithms, each followed by its presets.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let presets = |e: &Entry<B>| e.presets.iter().map(|p| p.name);
        self.entries().flat_map(move |e| std::iter::once(e.name).chain(presets(e)))
    }
}
