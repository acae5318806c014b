//! A table of algorithms of one kind with what builds them: those built in, and
//! those that a program registers.

use crate::{Entry, Selection, SelectionError, Settings, Table};
use std::fmt;
use std::sync::Arc;

/// How the algorithms of one kind are built: controllers, schedulers.
pub trait Build: Clone + fmt::Debug + Sized + 'static {
    /// What messages call one: "controller".
    const NOUN: &'static str;
    /// Those of the crate, by name in ascending order.
    const BUILT_IN: &'static [Entry<Self>];
    /// What comes out.
    type Built;
    /// What one is built from beside its settings.
    type Init;

    /// How one is built that a program brings.
    fn given(factory: Given<Self>) -> Self;

    /// Builds one.
    ///
    /// # Errors
    /// When parameters contradict each other or what is not known here, or its
    /// factory refuses.
    fn build(
        entry: &Entry<Self>,
        settings: &Settings,
        init: Self::Init,
    ) -> Result<Self::Built, SelectionError>;

    /// Whether parameters that are right one by one contradict each other.
    ///
    /// # Errors
    /// That they do.
    fn check(_entry: &Entry<Self>, _settings: &Settings) -> Result<(), SelectionError> {
        Ok(())
    }
}

/// Makes an algorithm, or says why it cannot.
pub type Factory<B> =
    dyn Fn(&Settings, <B as Build>::Init) -> Result<<B as Build>::Built, String> + Send + Sync;

/// A factory that a program brings.
pub struct Given<B: Build>(Arc<Factory<B>>);

impl<B: Build> Given<B> {
    /// What the factory makes for `entry`.
    ///
    /// # Errors
    /// When it refuses.
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

impl<B: Build> Clone for Given<B> {
    fn clone(&self) -> Given<B> {
        Given(self.0.clone())
    }
}

impl<B: Build> fmt::Debug for Given<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}

/// Algorithms of one kind by name: those of a crate, and those that a program
/// registers. Who reads a scenario and who runs it are given the same one.
#[derive(Clone, Debug)]
pub struct Registry<B: Build>(Table<B>);

impl<B: Build> Default for Registry<B> {
    fn default() -> Registry<B> {
        Registry::built_in()
    }
}

impl<B: Build> Registry<B> {
    /// Those of the crate.
    pub const fn built_in() -> Registry<B> {
        Registry(Table::new(B::NOUN, B::BUILT_IN))
    }

    /// Adds one without parameters. Its name is kept for the life of the
    /// process.
    ///
    /// # Errors
    /// When there is one of this name.
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
            build: B::given(Given(Arc::new(factory))),
        })
    }

    /// Adds one with all that is known of it.
    ///
    /// # Errors
    /// When there is one of its name, or of that of a preset of its.
    pub fn add(&mut self, entry: Entry<B>) -> Result<(), SelectionError> {
        self.0.add(entry)
    }

    /// All: those of the crate by name in ascending order, then those
    /// registered.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<B>> {
        self.0.entries()
    }

    /// What `selection` names, built with its parameters.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, or a value is of the wrong kind
    /// or out of range; and [`Build::build`]'s.
    pub fn build(&self, selection: &Selection, init: B::Init) -> Result<B::Built, SelectionError> {
        let (entry, settings) = self.0.resolve(selection)?;
        B::build(entry, &settings, init)
    }

    /// The entry that `selection` names, and all its parameters.
    ///
    /// # Errors
    /// The same as [`check`](Self::check)'s.
    pub fn resolve(&self, selection: &Selection) -> Result<(&Entry<B>, Settings), SelectionError> {
        let (entry, settings) = self.0.resolve(selection)?;
        B::check(entry, &settings)?;
        Ok((entry, settings))
    }

    /// All parameters of what `selection` names, for a ground that runs the same
    /// algorithm in another form.
    ///
    /// # Errors
    /// The same as [`check`](Self::check)'s.
    pub fn settings(&self, selection: &Selection) -> Result<Settings, SelectionError> {
        self.resolve(selection).map(|(_, settings)| settings)
    }

    /// Whether `selection` can be built, once all is known that it is built
    /// from.
    ///
    /// # Errors
    /// When the name or a parameter is unknown, a value is of the wrong kind or
    /// out of range, or parameters contradict each other.
    pub fn check(&self, selection: &Selection) -> Result<(), SelectionError> {
        self.resolve(selection).map(|_| ())
    }
}
