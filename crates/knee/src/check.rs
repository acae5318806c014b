//! `knee check`.

use crate::arguments::Check;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::{Grounds, STUDY, ScenarioText, all_or_every_error, read_study};
use knee_record::offered_load;
use knee_scenario::{Errors, Override, Scenario, Study};
use std::path::{Path, PathBuf};

/// Reports all errors in files, or summarises their contents.
pub fn check(arguments: &Check) -> Result<Ending, Failure> {
    let study = arguments.files.iter().find(|file| study_folder(file).is_some());
    if let Some(study) = study.filter(|_| !arguments.set.is_empty()) {
        let what = format!("--set is for scenarios, and {} is a study", study.display());
        return Err(Failure::Usage(what, "leave it out, or name a scenario of it".to_string()));
    }
    let found = all_or_every_error(arguments.files.iter().map(|file| look(file, &arguments.set)))?;
    screen::print(&found.concat())?;
    Ok(Ending::Done)
}

fn look(path: &Path, set: &[Override]) -> Result<String, Errors> {
    let name = path.display();
    if let Some(folder) = study_folder(path) {
        return read_study(&folder, &Grounds::built_in())
            .map(|study| format!("{name}: valid, {}\n", study_in(&study)));
    }
    let scenario = ScenarioText::read(path)?.scenario(set)?;
    let told = scenario.files.iter().filter(|file| !file.read_as.is_empty());
    let read = told.map(|file| format!("  {}: {}\n", file.written, file.read_as));
    let (read, load) = (read.collect::<String>(), load(&scenario));
    Ok(format!("{name}: valid, {}\n{read}{load}", scenario_in(&scenario)))
}

/// The load that the scenario offers to its links, one line each, with a warning about those that
/// get too much.
fn load(scenario: &Scenario) -> String {
    let loads = offered_load(scenario);
    let lines = loads.iter().map(|load| {
        let warning = match load.is_overloaded() {
            true => {
                ": overloaded, no answer will come of it; offer less, such as by a longer \
                     arrival_interval"
            }
            false => "",
        };
        let words = format!("offered load: {}{warning}", load.in_words());
        format!("  {}", screen::wrapped(&words))
    });
    lines.collect()
}

/// The study's folder, if `path` is a study.
fn study_folder(path: &Path) -> Option<PathBuf> {
    if path.join(STUDY).is_file() {
        return Some(path.to_path_buf());
    }
    let named_so = path.file_name().is_some_and(|name| name == STUDY);
    path.parent().filter(|_| named_so && path.is_file()).map(Path::to_path_buf)
}

fn scenario_in(scenario: &Scenario) -> String {
    let Scenario { links, paths, flows, claims, .. } = scenario;
    [
        counted(links.len(), "link"),
        counted(paths.len(), "path"),
        counted(flows.len(), "flow"),
        counted(claims.len(), "claim"),
        format!("{} long", scenario.duration),
    ]
    .join(", ")
}

fn study_in(study: &Study) -> String {
    let of_runs: usize = study.runs.iter().map(|run| run.scenario.claims.len()).sum();
    [
        counted(study.runs.len(), "run"),
        counted(study.models.len(), "model"),
        counted(study.claims.len() + of_runs, "claim"),
    ]
    .join(", ")
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
