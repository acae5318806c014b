//! What came out of studies: what `knee reproduce --json` prints and
//! `reproduce.json` keeps.

use crate::directory::STUDIES;
use crate::failure::Failure;
use crate::run::quoted;
use knee_record::{ClaimOutcome, Records, Summary, Verdict, read_run};
use knee_report::{RunPage, StudyPage, study_report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
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
    /// Claims over its runs and models, then those of each run.
    pub claims: Vec<ClaimOutcome>,
    /// Its runs on the simulator.
    pub runs: Vec<RunRecord>,
    /// The line that repeats the study.
    pub command: String,
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
        let path = directory.join(STUDIES);
        let wrong = |what: String| {
            let what = format!("{} {what}", path.display());
            Failure::Usage(what, "run knee reproduce again".to_string())
        };
        let text = fs::read_to_string(&path).map_err(|error| {
            let what = format!("cannot read {}: {error}", path.display());
            Failure::Host(what, "make it readable".to_string())
        })?;
        let read: StudyRecords =
            serde_json::from_str(&text).map_err(|error| wrong(format!("is damaged: {error}")))?;
        match read.schema == SCHEMA {
            true => Ok(read),
            false => Err(wrong(format!("has schema {:?}, not {SCHEMA:?}", read.schema))),
        }
    }

    /// The report, from the directories of the runs.
    pub fn saved_page(&self, directory: &Path) -> Result<String, Failure> {
        let runs = self.studies.iter().flat_map(|study| &study.runs);
        let sources = runs.map(|run| {
            let saved = read_run(&directory.join(&run.directory))?;
            Ok(RunSource { records: saved.records, scenario: saved.scenario })
        });
        let sources: Vec<RunSource> = sources.collect::<Result<_, Failure>>()?;
        self.page(directory, &sources)
    }

    /// The report. `sources`: of all runs, in the order of the document.
    pub fn page(&self, directory: &Path, sources: &[RunSource]) -> Result<String, Failure> {
        let runs: Vec<&RunRecord> = self.studies.iter().flat_map(|study| &study.runs).collect();
        let commands: Vec<String> = runs.iter().map(|run| command(directory, run)).collect();
        let mut pages =
            runs.iter().zip(sources).zip(&commands).map(|((run, source), command)| RunPage {
                name: &run.name,
                summary: &run.summary,
                records: &source.records,
                scenario: &source.scenario,
                command,
            });
        let studies: Vec<StudyPage<'_>> = self
            .studies
            .iter()
            .map(|record| StudyPage {
                name: &record.name,
                title: &record.title,
                source: &record.source,
                about: &record.about,
                claims: &record.claims,
                runs: pages.by_ref().take(record.runs.len()).collect(),
                command: &record.command,
            })
            .collect();
        Ok(study_report(&studies, &self.command)?)
    }
}

/// The line that repeats a run of a study: its directory has all it needs.
fn command(directory: &Path, run: &RunRecord) -> String {
    let scenario = directory.join(&run.directory).join(knee_record::SCENARIO);
    format!("knee run {}", quoted(&scenario.to_string_lossy()))
}
