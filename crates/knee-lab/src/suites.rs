//! Suites of test cases that a document gives for controllers: studies in which the flow named
//! [`CANDIDATE`] has the controller that is tried, and every claim must hold.

use crate::command::quoted;
use crate::error::Error;
use crate::ground::Grounds;
use crate::studies::{NamedStudy, STUDY};
use knee_scenario::{Embedded, Override, StudyChanges, load_study};

/// All files below `suites/` at build time.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/suites.rs"));
}

/// Name of the flow whose controller is tried.
pub(crate) const CANDIDATE: &str = "candidate";

/// Names of the suites, in alphabetical order.
pub fn built_in_suites() -> Vec<&'static str> {
    let names = embedded::FILES.iter().filter_map(|(name, _)| {
        let (folder, file) = name.split_once('/')?;
        (file == STUDY).then_some(folder)
    });
    names.collect()
}

/// Loads a suite for a controller, as a scenario names it, with further keys of its flow. `grounds`
/// are those that its runs can name.
///
/// # Errors
/// All errors in it: a controller or a key that does not exist, or an unknown name.
pub fn load_suite(
    name: &str,
    controller: &str,
    with: &[Override],
    grounds: &Grounds,
) -> Result<NamedStudy, Error> {
    let key = |key: &str| format!("flow.{CANDIDATE}.{key}");
    let set: Vec<Override> = std::iter::once(Override::new(&key("cc"), controller))
        .chain(with.iter().map(|one| {
            let (name, value) = one.text().split_once('=').unwrap_or_default();
            Override::new(&key(name), value)
        }))
        .collect();
    let changed = StudyChanges { seed_shift: 0, set: &set };
    let file = format!("{name}/{STUDY}");
    let study = load_study(&Embedded(embedded::FILES), &file, &grounds.names(), &changed)?;
    let with = with.iter().map(|one| format!(" --with {}", quoted(one.text())));
    let repeat =
        format!("knee evaluate {} --suite {name}{}", quoted(controller), with.collect::<String>());
    let (name, word) = (name.to_string(), name.to_string());
    Ok(NamedStudy { name, word, file: None, study, seed_shift: 0, repeat: Some(repeat) })
}
