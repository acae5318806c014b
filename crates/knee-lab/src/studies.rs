//! Studies, built in or in folders.

use crate::command::quoted;
use crate::error::Error;
use crate::ground::Grounds;
use crate::text::{FilesBeside, all_or_every_error};
use knee_scenario::{
    Embedded, Errors, Loader, Override, Scenario, Source, Study, StudyChanges, load_study,
};
use std::path::{Path, PathBuf};

/// File name of a study's definition; its folder is a study.
pub const STUDY: &str = "study.toml";

/// All files below `studies/` at build time.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"));
}

/// A study with its name.
#[derive(Debug)]
pub struct NamedStudy {
    /// Name of its folder.
    pub name: String,
    /// The word with which the user selects it.
    pub word: String,
    /// Its file; `None` for a built-in study.
    pub file: Option<PathBuf>,
    /// The study.
    pub study: Study,
    /// What was added to the seeds of its runs.
    pub seed_shift: u64,
    /// The command that repeats it, if that is not `knee reproduce`.
    pub repeat: Option<String>,
}

/// Names of the built-in studies, in alphabetical order.
pub fn built_in_studies() -> Vec<&'static str> {
    let names = embedded::FILES.iter().filter_map(|(name, _)| {
        let (folder, file) = name.split_once('/')?;
        (file == STUDY).then_some(folder)
    });
    names.collect()
}

/// Loads a built-in study; `grounds` are those that studies can name, `seed_shift` is added to the
/// seed of every run.
///
/// # Errors
/// All errors in it, or an unknown name.
pub fn load_built_in_study(
    name: &str,
    grounds: &Grounds,
    seed_shift: u64,
) -> Result<NamedStudy, Errors> {
    let file = format!("{name}/{STUDY}");
    let changed = StudyChanges { seed_shift, set: &[] };
    let study = load_study(&Embedded(embedded::FILES), &file, &grounds.names(), &changed)?;
    let (word, repeat) = (name.to_string(), None);
    Ok(NamedStudy { name: name.to_string(), word, file: None, study, seed_shift, repeat })
}

/// Loads a built-in scenario, `study/file.toml`, with overrides.
///
/// # Errors
/// All errors in it, or an unknown name.
pub(crate) fn built_in_scenario(name: &str, set: &[Override]) -> Result<Scenario, Errors> {
    let loader = &Embedded(embedded::FILES);
    let text = loader.load(name).unwrap_or_default();
    let source = Source { name, loader };
    knee_scenario::parse(&String::from_utf8_lossy(&text), &source, set)
}

/// Why studies cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// No study and no folder has this name.
    #[error("there is no study \"{0}\"")]
    Unknown(String),
    /// Two studies would share one output directory.
    #[error("two studies are called {0}")]
    SameName(String),
    /// The simulator, to which recorded outcomes refer, is missing.
    #[error("studies need the simulator for comparison")]
    WithoutSimulator,
    /// A built-in study has no file to record values in.
    #[error("{0} is in the program, not in a file")]
    NotAFile(String),
}

/// The studies that `words` name, built in or in folders; all built-in ones without words.
/// `seed_shift` is added to the seed of every run: other random numbers, the same claims.
///
/// # Errors
/// All errors in them, or a [`StudyError`].
pub fn choose_studies(
    words: &[impl AsRef<str>],
    grounds: &Grounds,
    seed_shift: u64,
) -> Result<Vec<NamedStudy>, Error> {
    let known = built_in_studies();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    if words.is_empty() {
        let load = |name: &&str| load_built_in_study(name, grounds, seed_shift);
        return all_or_every_error(known.iter().map(load));
    }
    let is_known = |word: &str| known.contains(&word);
    if let Some(word) = words.iter().find(|word| !is_known(word) && !is_folder(word)) {
        return Err(StudyError::Unknown(word.to_string()).into());
    }
    let studies = all_or_every_error(words.iter().map(|word| match is_known(word) {
        true => load_built_in_study(word, grounds, seed_shift),
        false => load_folder(Path::new(word), grounds, seed_shift),
    }))?;
    for (index, study) in studies.iter().enumerate() {
        if studies[..index].iter().any(|other| other.name == study.name) {
            return Err(StudyError::SameName(study.name.clone()).into());
        }
    }
    Ok(studies)
}

fn is_folder(word: &str) -> bool {
    Path::new(word).join(STUDY).is_file()
}

fn load_folder(folder: &Path, grounds: &Grounds, seed_shift: u64) -> Result<NamedStudy, Errors> {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let word = quoted(&folder.to_string_lossy());
    Ok(NamedStudy {
        name,
        word,
        file: Some(folder.join(STUDY)),
        study: read_folder(folder, grounds, seed_shift)?,
        seed_shift,
        repeat: None,
    })
}

/// Reads a study from a folder. Problems name its files relative to the working directory.
///
/// # Errors
/// All errors in it, or a file that cannot be read.
pub fn read_study(folder: &Path, grounds: &Grounds) -> Result<Study, Errors> {
    read_folder(folder, grounds, 0)
}

fn read_folder(folder: &Path, grounds: &Grounds, seed_shift: u64) -> Result<Study, Errors> {
    let name = folder.join(STUDY);
    let changed = StudyChanges { seed_shift, set: &[] };
    load_study(&FilesBeside(&name), &name.to_string_lossy(), &grounds.names(), &changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Claim, Outcome};

    fn load(name: &str) -> Result<NamedStudy, Errors> {
        load_built_in_study(name, &Grounds::built_in(), 0)
    }

    fn claims() -> impl Iterator<Item = Claim> {
        let studies = built_in_studies().into_iter().map(|name| load(name).unwrap());
        studies.flat_map(|study| study.study.claims)
    }

    #[test]
    fn every_claim_has_its_value_on_record() {
        for claim in claims().filter(|claim| claim.recorded != Outcome::NotTestedHere) {
            assert!(claim.on_record.is_some(), "{}", claim.id);
        }
    }

    /// Returns a figure with a unit in `text` that does not occur in `source`.
    fn own_figure(text: &str, source: &str) -> Option<String> {
        const UNITS: [&str; 9] =
            ["s", "ms", "us", "%", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "times"];
        let words: Vec<&str> = text.split(&[' ', ',', ';', ':', '(', ')', '\n'][..]).collect();
        let figures = words.windows(2).filter_map(|pair| {
            let unit = pair[1].trim_end_matches('.');
            let is_figure = pair[0].parse::<f64>().is_ok() && UNITS.contains(&unit);
            is_figure.then(|| format!("{} {unit}", pair[0]))
        });
        figures.into_iter().find(|figure| !source.contains(figure))
    }

    /// Figures in a finding are placeholders, the source's own, or from the set-up of a claim, so
    /// that none can become stale.
    #[test]
    fn findings_hold_no_figures_of_their_own() {
        let mut stale = Vec::new();
        for study in built_in_studies().into_iter().map(|name| load(name).unwrap().study) {
            for claim in &study.claims {
                let finding = claim.finding.as_deref().unwrap_or_default();
                let names = |id: &str| finding.contains(&format!("{{{id}}}"));
                let told = study.claims.iter().filter(|c| c.id == claim.id || names(&c.id));
                let source: String = told.map(|claim| set_up(&study, claim)).collect();
                let figure = own_figure(finding, &source);
                stale.extend(figure.map(|figure| format!("{}: {figure}", claim.id)));
            }
        }
        assert_eq!(stale, [""; 0]);
    }

    /// The claim's statement, and the scenarios of its runs.
    fn set_up(study: &Study, claim: &Claim) -> String {
        let targets = [Some(&claim.of), claim.relative_to.as_ref()].into_iter().flatten();
        let scenarios = targets.filter_map(|target| {
            let run = target.split('/').next();
            study.runs.iter().find(|known| Some(known.name.as_str()) == run)
        });
        let figure = claim.source_figure.as_deref().unwrap_or_default();
        let says = format!("{} {figure} ", claim.says);
        scenarios.fold(says, |text, run| text + &run.scenario.resolved)
    }

    /// Figures in a study's conclusion occur in its summary or in the statements of its claims.
    #[test]
    fn conclusions_hold_no_figures_of_their_own() {
        for study in built_in_studies().into_iter().map(|name| load(name).unwrap().study) {
            let said = study.claims.iter().map(|claim| {
                format!("{} {} ", claim.says, claim.source_figure.as_deref().unwrap_or_default())
            });
            let source: String = said.chain([study.summary.clone()]).collect();
            assert_eq!(own_figure(&study.conclusion, &source), None, "{}", study.name);
        }
    }

    #[test]
    fn every_built_in_study_is_sound() {
        for name in built_in_studies() {
            let study = load(name).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(!study.study.runs.is_empty() || !study.study.models.is_empty(), "{name}");
        }
    }
}
