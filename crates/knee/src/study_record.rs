//! What came out of studies: what `knee reproduce --json` prints and
//! `reproduce.json` keeps.

use crate::directory::STUDIES;
use crate::failure::Failure;
use crate::grounds;
use crate::reproduce::{partner, tables_of_both};
use crate::run::quoted;
use knee_record::{ClaimOutcome, Fidelity, Records, Summary, Verdict, read_json, read_run};
use knee_report::{Comparison, RunPage, StudyPage, comparison_report, study_report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema name of the document.
pub const SCHEMA: &str = "knee-reproduce/1";

/// What came out of studies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecords {
    /// `knee-reproduce/1`.
    pub schema: String,
    /// In the order in which they were named.
    pub studies: Vec<StudyRecord>,
    /// The worst verdict among the runs: were they sound.
    pub verdict: Verdict,
    /// Whether every claim came out as on record.
    pub as_recorded: bool,
    /// The line that repeats it all.
    pub command: String,
}

/// What came out of a study.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecord {
    /// Short name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Where the claims stand.
    pub source: String,
    /// What is studied; can be empty.
    pub about: String,
    /// What came of it on the simulator, in a paragraph; can be empty.
    #[serde(default)]
    pub conclusion: String,
    /// Claims over its runs and models, then those of each run.
    pub claims: Vec<ClaimOutcome>,
    /// Its runs on the simulator.
    pub runs: Vec<RunRecord>,
    /// What came out on the kernel; absent where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelRecord>,
    /// The line that repeats the study.
    pub command: String,
}

/// What came out of a study on the kernel.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct KernelRecord {
    /// The claims, in the order of the simulator's.
    pub claims: Vec<ClaimOutcome>,
    /// The runs that the kernel could make.
    pub runs: Vec<RunRecord>,
    /// Those that it could not.
    pub not_run: Vec<NotRun>,
}

/// A run that a ground cannot make.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotRun {
    /// Name in the study.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl StudyRecord {
    /// Those on the simulator, then those on the kernel.
    fn all_runs(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().chain(self.kernel.iter().flat_map(|kernel| &kernel.runs))
    }
}

/// What came out of a run of a study.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Name in the study.
    pub name: String,
    /// Its directory below that of the document, with `/`.
    pub directory: String,
    /// As in the directory's `summary.json`.
    pub summary: Summary,
}

/// What a run's page needs beside its summary.
#[derive(Debug)]
pub struct RunSource {
    /// The rows.
    pub records: Records,
    /// The resolved scenario, TOML.
    pub scenario: String,
}

impl StudyRecords {
    /// Reads the document in a directory that `knee reproduce` wrote.
    pub fn read(directory: &Path) -> Result<StudyRecords, Failure> {
        Ok(read_json(&directory.join(STUDIES), SCHEMA)?)
    }

    /// The report, from the directories of the runs.
    pub fn saved_page(&self, directory: &Path) -> Result<String, Failure> {
        let runs = self.studies.iter().flat_map(StudyRecord::all_runs);
        let sources = runs.map(|run| {
            let saved = read_run(&directory.join(&run.directory))?;
            Ok(RunSource { records: saved.records, scenario: saved.scenario })
        });
        let sources: Vec<RunSource> = sources.collect::<Result<_, Failure>>()?;
        self.page(directory, &sources)
    }

    /// The report. `sources`: of all runs, in the order of the document.
    pub fn page(&self, directory: &Path, sources: &[RunSource]) -> Result<String, Failure> {
        let runs: Vec<&RunRecord> = self.studies.iter().flat_map(StudyRecord::all_runs).collect();
        let names: Vec<String> = runs.iter().map(|run| page_name(run)).collect();
        let commands: Vec<String> = runs.iter().map(|run| command(directory, run)).collect();
        let mut pages = runs.iter().zip(sources).zip(&commands).zip(&names).map(
            |(((run, source), command), name)| RunPage {
                name,
                summary: &run.summary,
                records: &source.records,
                scenario: &source.scenario,
                command,
            },
        );
        let studies: Vec<StudyPage<'_>> = self
            .studies
            .iter()
            .map(|record| StudyPage {
                name: &record.name,
                title: &record.title,
                source: &record.source,
                about: &record.about,
                conclusion: &record.conclusion,
                claims: &record.claims,
                on_kernel: on_kernel(record),
                runs: pages.by_ref().take(record.all_runs().count()).collect(),
                command: &record.command,
            })
            .collect();
        if self.studies.iter().all(|study| study.kernel.is_none()) {
            return Ok(study_report(&studies, &self.command)?);
        }
        let tables = self.studies.iter().map(|study| tables(directory, study));
        let tables = tables.collect::<Result<Vec<_>, Failure>>()?;
        let compared: Vec<_> = studies.into_iter().zip(tables).collect();
        Ok(comparison_report(&compared, "Studies on both grounds", &self.command)?)
    }
}

/// What came of each claim there; nothing where the kernel was not asked.
fn on_kernel(record: &StudyRecord) -> Vec<Option<&ClaimOutcome>> {
    let there = record.kernel.iter();
    there.flat_map(|kernel| record.claims.iter().map(|claim| partner(claim, kernel))).collect()
}

/// The line that repeats a run of a study: its directory has all it needs.
fn command(directory: &Path, run: &RunRecord) -> String {
    let scenario = directory.join(&run.directory).join(knee_record::SCENARIO);
    let on = if run.summary.ground == "sim" { "" } else { " --on kernel" };
    format!("knee run {}{on}", quoted(&scenario.to_string_lossy()))
}

fn page_name(run: &RunRecord) -> String {
    match run.summary.ground.as_str() {
        "sim" => run.name.clone(),
        ground => format!("{} ({ground})", run.name),
    }
}

/// Claims and runs on both grounds, from the comparisons beside the runs.
fn tables(directory: &Path, study: &StudyRecord) -> Result<Vec<Comparison>, Failure> {
    let Some(kernel) = &study.kernel else { return Ok(Vec::new()) };
    let mut fidelities: Vec<(String, Fidelity)> = Vec::new();
    for run in &kernel.runs {
        let at = directory.join(&run.directory);
        if let Some(both) = at.parent().filter(|both| grounds::are_in(both)) {
            fidelities.push((run.name.clone(), grounds::read(both)?));
        }
    }
    Ok(tables_of_both(&study.claims, kernel, &fidelities))
}
