//! Scenario files as named by the user.

use crate::error::Error;
use crate::origin::Files;
use knee_record::{INPUTS, SCENARIO};
use knee_scenario::{
    Algorithms, Errors, FileCache, Loader, Override, Problem, Scenario, Source, SourceText,
    file_name, inside, load_file, load_inside, load_text, parse_cached,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario file, or a text in its place.
#[derive(Clone, Debug)]
pub struct ScenarioText {
    /// Its name, as typed.
    pub name: String,
    /// The same name as a path, which need not be UTF-8.
    path: PathBuf,
    /// The file's contents.
    text: String,
    /// Algorithms that it may name, if not Knee's own.
    algorithms: Option<Arc<Algorithms>>,
    /// Copies of the files that it names, used instead of those on disk.
    kept: Option<Files>,
    /// Whether it can name only files in its own folder.
    confined: bool,
    /// The text as parsed, and the files that it names: read once for all its scenarios.
    cache: Arc<FileCache>,
}

/// Name and bytes of a file that was read.
pub type Input<'b> = (&'b str, &'b [u8]);

impl ScenarioText {
    /// Creates a scenario from a text in place of the file `name`; files that it names are resolved
    /// relative to `name`.
    pub fn new(name: &str, text: &str) -> ScenarioText {
        ScenarioText::of(name.to_string(), name.into(), text.to_string())
    }

    fn of(name: String, path: PathBuf, text: String) -> ScenarioText {
        let (algorithms, kept, cache) = (None, None, Arc::default());
        ScenarioText { name, path, text, algorithms, kept, confined: false, cache }
    }

    /// Reads the file without parsing it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(path: &Path) -> Result<ScenarioText, Errors> {
        let name = path.to_string_lossy().into_owned();
        match load_text(path) {
            Ok(text) => Ok(ScenarioText::of(name, path.into(), text)),
            Err(reason) => Err(unreadable(name, &reason)),
        }
    }

    /// Reads the scenario of a run's folder, which can name only files in that folder.
    ///
    /// # Errors
    /// A file that cannot be read, or a link that leads out of the folder.
    pub fn of_run(directory: &Path) -> Result<ScenarioText, Errors> {
        let path = directory.join(SCENARIO);
        let leads_out =
            |error: io::Error| unreadable(path.to_string_lossy().into(), &error.to_string());
        inside(directory, Path::new(SCENARIO)).map_err(leads_out)?;
        Ok(ScenarioText { confined: true, ..ScenarioText::read(&path)? })
    }

    /// Returns another text in place of this one: what it names is found where this one finds it.
    #[cfg(feature = "play")]
    pub(crate) fn replaced(&self, text: &str) -> ScenarioText {
        ScenarioText { text: text.to_string(), cache: Arc::default(), ..self.clone() }
    }

    /// Adds controllers and schedulers that the scenario may name. It must run on a
    /// [`Simulator::with_algorithms`](crate::Simulator::with_algorithms) that has them too.
    pub fn with_algorithms(self, algorithms: Arc<Algorithms>) -> ScenarioText {
        ScenarioText { algorithms: Some(algorithms), ..self }
    }

    /// Replaces the files that it names with these.
    pub(crate) fn with_files(self, files: Files) -> ScenarioText {
        ScenarioText { kept: Some(files), cache: Arc::default(), ..self }
    }

    /// The file's contents.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns the scenario with overrides. Text and files are parsed the first time, not once for
    /// each seed.
    ///
    /// # Errors
    /// All errors in it.
    pub fn scenario(&self, overrides: &[Override]) -> Result<Scenario, Errors> {
        let (beside, within, kept);
        let loader: &dyn Loader = match &self.kept {
            None if self.confined => {
                within = Within(&self.path);
                &within
            }
            None => {
                beside = FilesBeside(&self.path);
                &beside
            }
            Some(files) => {
                kept = Kept { path: &self.path, files };
                &kept
            }
        };
        let source = Source { name: &self.name, loader };
        let algorithms = self.algorithms.as_deref().unwrap_or(Algorithms::built_in());
        parse_cached(&self.text, &source, overrides, algorithms, &self.cache)
    }

    /// All files read for `scenario`: this one and those that it names.
    pub fn inputs<'b>(&'b self, scenario: &'b Scenario) -> Vec<Input<'b>> {
        let mut inputs = vec![(self.name.as_str(), self.text.as_bytes())];
        inputs.extend(named_files(scenario));
        inputs
    }

    /// File name without folder and extension.
    pub fn stem(&self) -> String {
        let stem = Path::new(&self.name).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// The files that a scenario names, by name as written.
pub fn named_files(scenario: &Scenario) -> impl Iterator<Item = Input<'_>> {
    scenario.files.iter().map(|file| (file.written.as_str(), &*file.bytes))
}

/// Loads files from the folder of the given file. Their names are built like its own: relative to
/// the working directory, with invalid UTF-8 replaced.
#[derive(Debug)]
pub struct FilesBeside<'p>(pub &'p Path);

/// Loads copies by name as written.
#[derive(Debug)]
struct Kept<'f> {
    path: &'f Path,
    files: &'f Files,
}

impl Loader for Kept<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let written = below(self.path, name).unwrap_or(name);
        let found = self.files.get(written).map(|bytes| bytes.to_vec());
        found.ok_or_else(|| "there is no copy of it".to_string())
    }

    /// Resolved scenarios name it without its folder.
    fn load_class(&self, name: &str) -> Result<(Vec<u8>, Option<PathBuf>), String> {
        let copy = |written: &&String| file_name(written) == file_name(name);
        let found = self.files.keys().find(copy).map_or(name, String::as_str);
        Ok((self.load(found)?, None))
    }
}

/// Loads files from the folder of the given file, and from no other.
#[derive(Debug)]
struct Within<'p>(&'p Path);

impl Loader for Within<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let folder = self.0.parent().unwrap_or(Path::new(""));
        let name = below(self.0, name).unwrap_or(name);
        load_inside(folder, Path::new(name))
    }

    fn load_class(&self, name: &str) -> Result<(Vec<u8>, Option<PathBuf>), String> {
        Ok((self.load(&format!("{INPUTS}/{}", file_name(name)))?, None))
    }
}

/// A resolved scenario for a file that is kept beside those of these names.
pub(crate) fn among_inputs<'n>(text: String, names: impl Iterator<Item = &'n String>) -> String {
    names.fold(text, |text, name| {
        text.replace(&format!("\"{INPUTS}/{name}\""), &format!("\"{name}\""))
    })
}

/// The name relative to the folder of `path`, if it lies below it.
fn below<'n>(path: &Path, name: &'n str) -> Option<&'n str> {
    let known = path.to_string_lossy();
    let folder = known.rsplit_once('/').map(|(folder, _)| format!("{folder}/"))?;
    name.strip_prefix(&folder)
}

impl Loader for FilesBeside<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        match (below(self.0, name), self.0.parent()) {
            (Some(name), Some(folder)) => load_file(&folder.join(name)),
            _ => load_file(Path::new(name)),
        }
    }

    /// As typed, then beside the scenario, then where a run or an evaluation keeps its copy.
    fn load_class(&self, name: &str) -> Result<(Vec<u8>, Option<PathBuf>), String> {
        let typed = below(self.0, name).unwrap_or(name);
        let folder = self.0.parent().unwrap_or(Path::new(""));
        let places =
            [PathBuf::from(typed), folder.join(typed), folder.join(INPUTS).join(file_name(typed))];
        let place = places.iter().find(|place| place.is_file()).unwrap_or(&places[0]);
        Ok((load_file(place)?, Some(place.clone())))
    }
}

fn unreadable(name: String, reason: &str) -> Errors {
    let problem = Problem {
        source: 0,
        span: 0..0,
        message: format!("cannot read it: {reason}"),
        help: "write the name of a scenario file, or create one with knee init FILE".to_string(),
    };
    Errors { problems: vec![problem], sources: vec![SourceText { name, text: String::new() }] }
}

/// Returns all results, or the errors of all that failed.
///
/// # Errors
/// All errors of all results.
pub fn all_or_every_error<T, E: Into<Error>>(
    results: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, Error> {
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for result in results {
        match result.map_err(E::into) {
            Ok(value) => good.push(value),
            Err(Error::Files(files)) => wrong.extend(files),
            Err(other) => return Err(other),
        }
    }
    if wrong.is_empty() { Ok(good) } else { Err(Error::Files(wrong)) }
}
