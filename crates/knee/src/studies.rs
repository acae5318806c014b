//! The studies: those in the program, and those in folders.

use crate::check::STUDY;
use crate::failure::Failure;
use crate::input::{Beside, all_or_every_error};
use crate::run::quoted;
use knee_scenario::{Embedded, Errors, Loader, Override, Scenario, Source, Study, load_study};
use std::path::{Path, PathBuf};

/// Every file below `studies/` when the program was built.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"));
}

/// A study with the name it is called by.
#[derive(Debug)]
pub struct NamedStudy {
    /// Name of its folder.
    pub name: String,
    /// What is typed to run it.
    pub word: String,
    /// Its file, unless it is one of the program's own.
    pub file: Option<PathBuf>,
    /// What is in it.
    pub study: Study,
}

/// Names of the studies in the program, in alphabetical order.
pub fn built_in() -> Vec<&'static str> {
    let names = embedded::FILES.iter().filter_map(|(name, _)| {
        let (folder, file) = name.split_once('/')?;
        (file == STUDY).then_some(folder)
    });
    names.collect()
}

/// A study in the program.
pub fn load_built_in(name: &str) -> Result<NamedStudy, Errors> {
    let study = load_study(&Embedded(embedded::FILES), &format!("{name}/{STUDY}"))?;
    Ok(NamedStudy { name: name.to_string(), word: name.to_string(), file: None, study })
}

/// A scenario in the program, `study/file.toml`, with what is to be set
/// otherwise.
pub fn built_in_scenario(name: &str, set: &[Override]) -> Result<Scenario, Errors> {
    let loader = &Embedded(embedded::FILES);
    let text = loader.load(name).unwrap_or_default();
    let source = Source { name, loader };
    knee_scenario::parse(&String::from_utf8_lossy(&text), &source, set)
}

/// The studies that `words` name, or all of the program.
pub fn chosen(words: &[String]) -> Result<Vec<NamedStudy>, Failure> {
    let known = built_in();
    if words.is_empty() {
        return all_or_every_error(known.into_iter().map(load_built_in));
    }
    if let Some(word) =
        words.iter().find(|word| !known.contains(&word.as_str()) && !is_folder(word))
    {
        let what = format!("there is no study \"{word}\"");
        let advice = format!("write one of {}, or a folder with a {STUDY}", known.join(", "));
        return Err(Failure::Usage(what, advice));
    }
    let studies =
        all_or_every_error(words.iter().map(|word| match known.contains(&word.as_str()) {
            true => load_built_in(word),
            false => load_folder(Path::new(word)),
        }))?;
    for (index, study) in studies.iter().enumerate() {
        if studies[..index].iter().any(|other| other.name == study.name) {
            let what = format!("two studies are called {}", study.name);
            return Err(Failure::Usage(what, "name one of them".to_string()));
        }
    }
    Ok(studies)
}

fn is_folder(word: &str) -> bool {
    Path::new(word).join(STUDY).is_file()
}

fn load_folder(folder: &Path) -> Result<NamedStudy, Errors> {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let word = quoted(&folder.to_string_lossy());
    Ok(NamedStudy { name, word, file: Some(folder.join(STUDY)), study: read(folder)? })
}

/// The study in a folder of this machine. Problems name its files as they
/// are found from here.
pub fn read(folder: &Path) -> Result<Study, Errors> {
    let name = folder.join(STUDY);
    load_study(&Beside(&name), &name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Claim, Outcome};

    fn claims() -> impl Iterator<Item = Claim> {
        let studies = built_in().into_iter().map(|name| load_built_in(name).unwrap());
        studies.flat_map(|study| study.study.claims)
    }

    #[test]
    fn every_claim_has_its_value_on_record() {
        for claim in claims().filter(|claim| claim.recorded != Outcome::NotTestedHere) {
            assert!(claim.on_record.is_some(), "{}", claim.id);
        }
    }

    /// A figure with a unit in `text` that is not in `source`.
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

    /// Figures of a finding are placeholders or the source's own: none can
    /// grow stale.
    #[test]
    fn findings_hold_no_figures_of_their_own() {
        for claim in claims() {
            let finding = claim.finding.clone().unwrap_or_default();
            let source = format!("{} {}", claim.says, claim.source_figure.unwrap_or_default());
            assert_eq!(own_figure(&finding, &source), None, "{}", claim.id);
        }
    }

    /// So are those of a conclusion: the source's own, or of a claim's set-up.
    #[test]
    fn conclusions_hold_no_figures_of_their_own() {
        for study in built_in().into_iter().map(|name| load_built_in(name).unwrap().study) {
            let said = study.claims.iter().map(|claim| {
                format!("{} {} ", claim.says, claim.source_figure.as_deref().unwrap_or_default())
            });
            let source: String = said.chain([study.summary.clone()]).collect();
            assert_eq!(own_figure(&study.conclusion, &source), None, "{}", study.name);
        }
    }

    #[test]
    fn every_built_in_study_is_sound() {
        for name in built_in() {
            let study = load_built_in(name).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(!study.study.runs.is_empty() || !study.study.models.is_empty(), "{name}");
        }
    }
}
