//! Scenario and study files: parsed, checked, resolved.
//!
//! [`read`] and [`parse`] return a [`Scenario`] in which every name is resolved, every value is
//! possible and every file is read, or [`Errors`] with all problems: the place, what is wrong, and
//! what to write instead. [`read_study`] does the same for a study. The JSON Schema of both files
//! comes from the declarations that the reader uses.
//!
//! This crate never runs anything and never prints.

mod algorithms;
mod cache;
mod check;
mod error;
mod file;
mod lockstep;
pub mod measure;
mod model;
mod overrides;
mod path;
mod read;
mod ready;
mod source;
mod streams;
mod tree;
mod workload;

pub use algorithms::{Algorithms, ClassFile, Importer, class_file};
pub use cache::FileCache;
pub use check::{INPUTS, placeholders};
pub use error::{Errors, Problem, SourceText};
pub use knee_units::statistics::Statistic;
pub use knee_workload::Workload;
pub use measure::{Measure, SizeRange};
pub use model::{
    Claim, Flow, InputFile, Link, Model, ModelKind, Multipath, OnRecord, Outcome, Path, Program,
    Ready, Reverse, Scenario, Starts, Study, StudyRun,
};
pub use overrides::{Override, OverrideError};
pub use ready::{ReadyPath, ready_paths};
pub use source::{
    Embedded, Folder, Loader, Source, file_name, inside, load_file, load_inside, load_text,
    open_file, open_inside, read_file, read_open, read_open_text, read_text_file,
};
pub use streams::{ControllerStreams, application_stream, link_stream, send_stream, tunnel_hash};

use check::parse_document;
use file::{GroundWord, ScenarioFile, StudyFile};
use read::Value;
use source::{Reading, folder_of};
use tree::Node;

/// Reads a scenario file of this machine.
///
/// # Errors
/// All problems of the file, or that it cannot be read.
pub fn read(path: &std::path::Path, overrides: &[Override]) -> Result<Scenario, Errors> {
    let (folder, name) = split(path);
    let text = load_text(path).map_err(|reason| Errors::unreadable(&name, &reason))?;
    parse(&text, &Source { name: &name, loader: &folder }, overrides)
}

/// Reads a scenario from a text.
///
/// # Errors
/// All problems of the text.
pub fn parse(text: &str, source: &Source<'_>, overrides: &[Override]) -> Result<Scenario, Errors> {
    parse_with(text, source, overrides, Algorithms::built_in())
}

/// Reads a scenario from a text that may name `algorithms`.
///
/// # Errors
/// All problems of the text.
pub fn parse_with(
    text: &str,
    source: &Source<'_>,
    overrides: &[Override],
    algorithms: &Algorithms,
) -> Result<Scenario, Errors> {
    parse_cached(text, source, overrides, algorithms, &FileCache::default())
}

/// Reads a scenario from a text that may name `algorithms`; what was read before through the same
/// `cache` is not read and parsed again. So many scenarios can be made from one text, which differ
/// in their seeds or in other `overrides`.
///
/// # Errors
/// All problems of the text.
pub fn parse_cached(
    text: &str,
    source: &Source<'_>,
    overrides: &[Override],
    algorithms: &Algorithms,
    cache: &FileCache,
) -> Result<Scenario, Errors> {
    let mut reading = Reading::new(source.loader, algorithms, cache);
    let scenario = parse_document(source.name, text, &mut reading).and_then(|mut document| {
        let changes: Vec<_> =
            overrides.iter().map(|given| overrides::change(given, &mut reading)).collect();
        overrides::apply(&mut document, changes, &mut reading);
        let file = ScenarioFile::read(&document, &mut reading)?;
        Some(check::scenario(file, source.name, folder_of(source.name), &mut reading))
    });
    reading.finish(scenario)
}

/// Reads the study in a folder of this machine: its `study.toml` and the files that it names.
///
/// # Errors
/// All problems of these files, or that one cannot be read.
pub fn read_study(folder: &std::path::Path) -> Result<Study, Errors> {
    load_study(&Folder(folder.to_path_buf()), "study.toml", &[], &StudyChanges::default())
}

/// What differs from a study's file in all of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyChanges<'c> {
    /// Added to the seed of every run: other random numbers, the same claims.
    pub seed_shift: u64,
    /// Put into every scenario after what its run sets.
    pub set: &'c [Override],
}

/// Reads a study through a loader. `name` is its file with its folder; `grounds` are the grounds
/// that its runs can name in addition to those of this version of Knee.
///
/// # Errors
/// All problems of the study, or that it cannot be read.
pub fn load_study(
    loader: &dyn Loader,
    name: &str,
    grounds: &[&str],
    changed: &StudyChanges<'_>,
) -> Result<Study, Errors> {
    let text = load(loader, name)?;
    let cache = FileCache::default();
    let mut reading = Reading::new(loader, Algorithms::built_in(), &cache).with_grounds(grounds);
    let study = parse_document(name, &text, &mut reading).and_then(|document: Node| {
        let file = StudyFile::read(&document, &mut reading)?;
        Some(check::study(file, folder_of(name), changed, &mut reading))
    });
    reading.finish(study)
}

/// Returns the JSON Schema of the scenario file.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(ScenarioFile).to_value()
}

/// Returns the JSON Schema of the study file.
pub fn study_json_schema() -> serde_json::Value {
    schemars::schema_for!(StudyFile).to_value()
}

/// Returns the names of the grounds that a study can name in this version, whether or not they are
/// compiled in.
pub fn ground_names() -> impl Iterator<Item = &'static str> {
    GroundWord::WORDS.iter().map(|(name, _)| *name)
}

/// Returns a commented scenario that can be run as it is.
pub fn template() -> &'static str {
    include_str!("template.toml")
}

/// Splits a path into the file's folder and its name.
fn split(path: &std::path::Path) -> (Folder, String) {
    let folder = path.parent().map(std::path::Path::to_path_buf).unwrap_or_default();
    let name = path.file_name().unwrap_or(path.as_os_str());
    (Folder(folder), name.to_string_lossy().into_owned())
}

fn load(loader: &dyn Loader, name: &str) -> Result<String, Errors> {
    let text = loader.load(name).and_then(source::text);
    text.map_err(|reason| Errors::unreadable(name, &reason))
}
