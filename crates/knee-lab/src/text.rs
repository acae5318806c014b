//! Scenario files as people name them.

use crate::error::Error;
use crate::origin::Files;
use knee_scenario::{
    Algorithms, Errors, Loader, Override, Problem, Scenario, Source, SourceText, load_file,
    parse_with,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario file of this machine, or a text in place of one.
#[derive(Clone, Debug)]
pub struct ScenarioText {
    /// Its name, as typed.
    pub name: String,
    /// The same, exactly: it need not be UTF-8.
    path: PathBuf,
    /// The file's contents.
    text: String,
    /// What it may name, where that is not what Knee has.
    algorithms: Option<Arc<Algorithms>>,
    /// Copies of the files that it names, in place of those beside it.
    kept: Option<Files>,
}

/// A file that was read, and its bytes.
pub type Input<'b> = (&'b str, &'b [u8]);

impl ScenarioText {
    /// A text in place of the file `name`: those that it names are looked for
    /// beside that.
    pub fn new(name: &str, text: &str) -> ScenarioText {
        let (name, path, text) = (name.to_string(), name.into(), text.to_string());
        ScenarioText { name, path, text, algorithms: None, kept: None }
    }

    /// Reads the file, without looking into it.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn read(path: &Path) -> Result<ScenarioText, Errors> {
        let name = path.to_string_lossy().into_owned();
        let text = load_file(path).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "it is not a text in UTF-8".to_string())
        });
        match text {
            Ok(text) => {
                let path = path.into();
                Ok(ScenarioText { name, path, text, algorithms: None, kept: None })
            }
            Err(reason) => Err(unreadable(name, &reason)),
        }
    }

    /// The same, which may name these controllers and schedulers. It runs on a
    /// [`Simulator::with_algorithms`](crate::Simulator::with_algorithms) that
    /// has them too.
    pub fn with_algorithms(self, algorithms: Arc<Algorithms>) -> ScenarioText {
        ScenarioText { algorithms: Some(algorithms), ..self }
    }

    /// The same, which reads these in place of the files that it names.
    pub(crate) fn with_files(self, files: Files) -> ScenarioText {
        ScenarioText { kept: Some(files), ..self }
    }

    /// The file's contents.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The scenario, with what is to be set otherwise.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn scenario(&self, overrides: &[Override]) -> Result<Scenario, Errors> {
        let (beside, kept);
        let loader: &dyn Loader = match &self.kept {
            None => {
                beside = Beside(&self.path);
                &beside
            }
            Some(files) => {
                kept = Kept { path: &self.path, files };
                &kept
            }
        };
        let source = Source { name: &self.name, loader };
        let algorithms = self.algorithms.as_deref().unwrap_or(Algorithms::built_in());
        parse_with(&self.text, &source, overrides, algorithms)
    }

    /// All that was read for `scenario`: this file and those it names.
    pub fn inputs<'b>(&'b self, scenario: &'b Scenario) -> Vec<Input<'b>> {
        let mut inputs = vec![(self.name.as_str(), self.text.as_bytes())];
        inputs.extend(named_files(scenario));
        inputs
    }

    /// The name of the file without folder and ending.
    pub fn stem(&self) -> String {
        let stem = Path::new(&self.name).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// The files that a scenario names, as it writes them.
pub fn named_files(scenario: &Scenario) -> impl Iterator<Item = Input<'_>> {
    scenario.files.iter().map(|file| (file.written.as_str(), &*file.bytes))
}

/// Files beside one of this machine, which are named like it: relative to the
/// working directory, and with what is not UTF-8 replaced.
#[derive(Debug)]
pub struct Beside<'p>(pub &'p Path);

/// Copies, by their name as written.
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
}

/// The name relative to the folder of `path`, if it is below that.
fn below<'n>(path: &Path, name: &'n str) -> Option<&'n str> {
    let known = path.to_string_lossy();
    let folder = known.rsplit_once('/').map(|(folder, _)| format!("{folder}/"))?;
    name.strip_prefix(&folder)
}

impl Loader for Beside<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        match (below(self.0, name), self.0.parent()) {
            (Some(name), Some(folder)) => load_file(&folder.join(name)),
            _ => load_file(Path::new(name)),
        }
    }
}

fn unreadable(name: String, reason: &str) -> Errors {
    let problem = Problem {
        source: 0,
        span: 0..0,
        message: format!("cannot read it: {reason}"),
        help: "write the name of a scenario file, or begin one with knee init FILE".to_string(),
    };
    Errors { problems: vec![problem], sources: vec![SourceText { name, text: String::new() }] }
}

/// All the results.
///
/// # Errors
/// Everything that is wrong with any of them.
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
