//! Results of studies, as printed by `knee reproduce --json` and stored in `reproduce.json`.

use crate::directory::STUDIES;
use crate::error::Error;
use crate::ground::KERNEL;
use knee_record::{ClaimOutcome, Summary, Verdict, read_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Source of the claims.
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
    pub kernel: Option<GroundRecord>,
    /// What came out on other grounds, by name; absent where none was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grounds: BTreeMap<String, GroundRecord>,
    /// The line that repeats the study.
    pub command: String,
}

/// What came out of a study on a ground beside the simulator.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroundRecord {
    /// The claims, in the order of the simulator's.
    pub claims: Vec<ClaimOutcome>,
    /// The runs that the ground could make.
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
    /// Results on the grounds other than the simulator, with their names; the kernel first.
    pub fn beside(&self) -> impl Iterator<Item = (&str, &GroundRecord)> {
        let kernel = self.kernel.iter().map(|record| (KERNEL, record));
        kernel.chain(self.grounds.iter().map(|(name, record)| (name.as_str(), record)))
    }

    /// All runs, the simulator's first.
    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().chain(self.beside().flat_map(|(_, record)| &record.runs))
    }
}

impl GroundRecord {
    /// The outcome on this ground of a claim of the simulator's.
    pub fn partner(&self, claim: &ClaimOutcome) -> Option<&ClaimOutcome> {
        let same = |other: &&ClaimOutcome| {
            (&other.id, &other.says, &other.of) == (&claim.id, &claim.says, &claim.of)
        };
        self.claims.iter().find(same)
    }
}

impl StudyRecords {
    /// Reads the document that `knee reproduce` wrote into a directory.
    ///
    /// # Errors
    /// A missing or damaged document.
    pub fn read(directory: &Path) -> Result<StudyRecords, Error> {
        Ok(read_json(&directory.join(STUDIES), SCHEMA)?)
    }

    /// All claims, as evaluated on the simulator.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimOutcome> + Clone {
        self.studies.iter().flat_map(|study| &study.claims)
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
