//! Algorithms that a scenario can select by name.

use crate::source::file_name;
use knee_cc::Entry;
use knee_units::registry::SelectionError;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The controllers and schedulers that a scenario can name: Knee's own, and those that a program
/// registers. Reading a scenario ([`parse_with`]) and running it need the same value.
///
/// [`parse_with`]: crate::parse_with
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    /// Congestion controllers.
    pub controllers: knee_cc::Registry,
    /// Multipath schedulers.
    pub schedulers: knee_multipath::sched::Registry,
    /// Makes controllers from files that scenarios name.
    pub importer: Importer,
}

/// A class in a file of Python that a scenario names as `FILE.py:CLASS`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassFile {
    /// Name of the controller in records: the last part of the file's name, and the class as
    /// written.
    pub name: String,
    /// The class; `None` for the only controller of the file.
    pub class: Option<String>,
    /// Contents of the file.
    pub bytes: Arc<[u8]>,
    /// Where the file is, if it is on this machine's disk.
    pub place: Option<PathBuf>,
}

/// What a program makes of a [`ClassFile`].
type Import = dyn Fn(&ClassFile) -> Result<Entry, SelectionError> + Send + Sync;

/// Makes controllers from files; a program without Python has none.
#[derive(Default)]
pub struct Importer {
    import: Option<Arc<Import>>,
    /// What the names imported so far stand for.
    imported: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl Importer {
    /// An importer that makes controllers with `import`.
    pub fn new(
        import: impl Fn(&ClassFile) -> Result<Entry, SelectionError> + Send + Sync + 'static,
    ) -> Importer {
        Importer { import: Some(Arc::new(import)), imported: Mutex::default() }
    }
}

impl Clone for Importer {
    fn clone(&self) -> Importer {
        let imported = self.imported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Importer { import: self.import.clone(), imported: Mutex::new(imported) }
    }
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer").field("import", &self.import.is_some()).finish_non_exhaustive()
    }
}

static PROGRAM: OnceLock<Algorithms> = OnceLock::new();

impl Algorithms {
    /// Returns the algorithms that this program has from the start: Knee's own, unless it
    /// [installed](Self::install) others.
    pub fn built_in() -> &'static Algorithms {
        PROGRAM.get_or_init(Algorithms::default)
    }

    /// Makes these the algorithms of this program, before it reads a scenario.
    ///
    /// # Errors
    /// The algorithms, if there are some already.
    pub fn install(self) -> Result<(), Box<Algorithms>> {
        PROGRAM.set(self).map_err(Box::new)
    }

    /// Makes the controller of a file known by its name.
    ///
    /// # Errors
    /// If the program cannot run it, the file has no such controller, or another file of that name
    /// was imported.
    pub fn import(&self, file: ClassFile) -> Result<(), SelectionError> {
        let Some(import) = &self.importer.import else {
            return Err(SelectionError {
                parameter: None,
                problem: format!(
                    "{} is written in Python, which this program cannot run",
                    file.name
                ),
                advice: "install the Python package, whose knee can: pip install \
                         ./crates/knee-python"
                    .to_string(),
            });
        };
        let imported = || self.importer.imported.lock().unwrap_or_else(PoisonError::into_inner);
        if imported().get(&file.name).is_some_and(|known| *known != file.bytes) {
            return Err(SelectionError {
                parameter: None,
                problem: format!("two different files have the controller {}", file.name),
                advice: "rename one of the files".to_string(),
            });
        }
        self.controllers.find(&file.name, || import(&file))?;
        imported().insert(file.name, file.bytes);
        Ok(())
    }
}

/// Splits the name of a controller in a file, `FILE.py` or `FILE.py:CLASS`; `None` for other names.
pub fn class_file(name: &str) -> Option<(&str, Option<&str>)> {
    let (file, class) = match name.rsplit_once(':') {
        Some((file, class)) => (file, Some(class)),
        None => (name, None),
    };
    file.ends_with(".py").then_some((file, class))
}

impl ClassFile {
    /// Describes a class of a file, for the only one if `class` is `None`.
    pub fn new(
        file: &str,
        class: Option<&str>,
        bytes: Arc<[u8]>,
        place: Option<PathBuf>,
    ) -> ClassFile {
        let last = file_name(file);
        let name = class.map_or_else(|| last.to_string(), |class| format!("{last}:{class}"));
        ClassFile { name, class: class.map(str::to_string), bytes, place }
    }
}
