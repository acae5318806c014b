//! A table of algorithms of one kind with their constructors: those built in, and those that a
//! program registers.

use crate::registry::{Entry, Selection, SelectionError, Settings, Table};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How the algorithms of one kind, such as controllers or schedulers, are built.
pub trait Build: Clone + fmt::Debug + Sized + 'static {
    /// Noun used in messages: "controller".
    const NOUN: &'static str;
    /// The crate's algorithms, by name in ascending order.
    const BUILT_IN: &'static [Entry<Self>];
    /// Type of the algorithms built.
    type Built;
    /// What an algorithm is built from, in addition to its settings.
    type Init;

    /// Wraps a program's factory.
    fn given(factory: ExternalFactory<Self>) -> Self;

    /// Builds an algorithm from settings that [`check`](Self::check) accepts.
    ///
    /// # Errors
    /// If parameters need something that is not known here, or if the factory refuses.
    fn build(
        entry: &Entry<Self>,
        settings: &Settings,
        init: Self::Init,
    ) -> Result<Self::Built, SelectionError>;

    /// Checks whether parameters that are valid one by one contradict each other.
    ///
    /// # Errors
    /// If they do.
    fn check(_entry: &Entry<Self>, _settings: &Settings) -> Result<(), SelectionError> {
        Ok(())
    }
}

/// Builds an algorithm, or returns why it cannot.
pub type Factory<B> =
    dyn Fn(&Settings, <B as Build>::Init) -> Result<<B as Build>::Built, String> + Send + Sync;

/// A program's factory.
pub struct ExternalFactory<B: Build>(Arc<Factory<B>>);

impl<B: Build> ExternalFactory<B> {
    /// Wraps a factory.
    pub fn new(
        factory: impl Fn(&Settings, B::Init) -> Result<B::Built, String> + Send + Sync + 'static,
    ) -> ExternalFactory<B> {
        ExternalFactory(Arc::new(factory))
    }

    /// Builds the algorithm of `entry`.
    ///
    /// # Errors
    /// If the factory refuses.
    pub fn build(
        &self,
        entry: &Entry<B>,
        settings: &Settings,
        init: B::Init,
    ) -> Result<B::Built, SelectionError> {
        (self.0)(settings, init).map_err(|reason| SelectionError {
            parameter: None,
            problem: format!("there is no {} now: {reason}", entry.name),
            advice: "see to what makes it".to_owned(),
        })
    }
}

impl<B: Build> Clone for ExternalFactory<B> {
    fn clone(&self) -> ExternalFactory<B> {
        ExternalFactory(self.0.clone())
    }
}

impl<B: Build> fmt::Debug for ExternalFactory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}

/// An algorithm with its parameters, of which any number can be built.
#[derive(Debug)]
pub struct Prepared<'a, B: 'static> {
    entry: &'a Entry<B>,
    settings: Settings,
}

impl<B: Build> Prepared<'_, B> {
    /// Builds the algorithm.
    ///
    /// # Errors
    /// The errors of [`Build::build`].
    pub fn build(&self, init: B::Init) -> Result<B::Built, SelectionError> {
        B::build(self.entry, &self.settings, init)
    }
}

/// Algorithms of one kind by name: those of a crate, and those that a program registers. The reader
/// and the runner of a scenario need the same registry.
#[derive(Debug)]
pub struct Registry<B: Build> {
    table: Table<B>,
    /// Those that were found while scenarios were read.
    found: Mutex<Vec<&'static Entry<B>>>,
}

impl<B: Build> Clone for Registry<B> {
    fn clone(&self) -> Registry<B> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Registry { table: self.table.clone(), found: Mutex::new(found) }
    }
}

impl<B: Build> Default for Registry<B> {
    fn default() -> Registry<B> {
        Registry::built_in()
    }
}

impl<B: Build> Registry<B> {
    /// Returns the algorithms of the crate.
    pub const fn built_in() -> Registry<B> {
        Registry { table: Table::new(B::NOUN, B::BUILT_IN), found: Mutex::new(Vec::new()) }
    }

    /// Adds an algorithm without parameters. Its name is kept for the life of the process.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&Settings, B::Init) -> Result<B::Built, String> + Send + Sync + 'static,
    ) -> Result<(), SelectionError> {
        self.add(Entry {
            name: name.into().leak(),
            summary: "registered by the program",
            source: "the program",
            parameters: &[],
            presets: &[],
            build: B::given(ExternalFactory::new(factory)),
        })
    }

    /// Adds an algorithm with its complete entry.
    ///
    /// # Errors
    /// If its name, or the name of one of its presets, is taken.
    pub fn add(&mut self, entry: Entry<B>) -> Result<(), SelectionError> {
        self.table.add(entry)
    }

    /// Adds an algorithm to a registry in use, such as a class in a file that a scenario names;
    /// `make` is called unless there is one of that name. It is kept for the life of the process.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn find(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Entry<B>, SelectionError>,
    ) -> Result<(), SelectionError> {
        if self.found(name).is_none() {
            let entry: &'static Entry<B> = Box::leak(Box::new(make()?));
            self.found.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
        Ok(())
    }

    fn found(&self, name: &str) -> Option<&'static Entry<B>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().copied().find(|entry| entry.name == name)
    }

    /// Returns all algorithms but those found later: those of the crate by name in ascending order,
    /// then those registered.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<B>> {
        self.table.entries()
    }

    /// Builds the algorithm of `selection` with its parameters.
    ///
    /// # Errors
    /// If the name or a parameter is unknown, or a value is of the wrong kind or out of range; and
    /// the errors of [`Build::build`].
    pub fn build(&self, selection: &Selection, init: B::Init) -> Result<B::Built, SelectionError> {
        self.prepare(selection)?.build(init)
    }

    /// Reads `selection`, to build its algorithm many times.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn prepare(&self, selection: &Selection) -> Result<Prepared<'_, B>, SelectionError> {
        let (entry, settings) = self.resolve(selection)?;
        Ok(Prepared { entry, settings })
    }

    /// Returns the entry that `selection` names, and all its parameters.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn resolve(&self, selection: &Selection) -> Result<(&Entry<B>, Settings), SelectionError> {
        let (entry, settings) = match self.found(&selection.name) {
            Some(entry) => (entry, entry.settings(None, selection)?),
            None => self.table.resolve(selection)?,
        };
        B::check(entry, &settings)?;
        Ok((entry, settings))
    }

    /// Returns all parameters of `selection`, for a ground that runs the same algorithm in another
    /// form.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn settings(&self, selection: &Selection) -> Result<Settings, SelectionError> {
        self.resolve(selection).map(|(_, settings)| settings)
    }

    /// Checks whether `selection` can be built, apart from what is known only when it is built.
    ///
    /// # Errors
    /// If the name or a parameter is unknown, a value is of the wrong kind or out of range, or
    /// parameters contradict each other.
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.resolve(selection).map(|_| ())
    }
}
