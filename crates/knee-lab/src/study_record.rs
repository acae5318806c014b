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

/// Results of studies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecords {
    /// `knee-reproduce/1`.
    pub schema: String,
    /// The studies, in the order in which they were named.
    pub studies: Vec<StudyRecord>,
    /// The worst verdict among the runs.
    pub verdict: Verdict,
    /// Whether the outcome of every claim agrees with the one on record.
    pub as_recorded: bool,
    /// The command that repeats all of it.
    pub command: String,
}

/// Result of a study.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecord {
    /// Short name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Source of the claims.
    pub source: String,
    /// Subject of the study; can be empty.
    pub about: String,
    /// Conclusion from the results on the simulator, one paragraph; can be empty.
    #[serde(default)]
    pub conclusion: String,
    /// Number of claims that the study has. `claims` can be fewer: those that its conclusion cites.
    /// The conclusion then counts the others, and findings cite them, as they are on record.
    #[serde(default)]
    pub claims_in_all: Option<usize>,
    /// Claims over its runs and models, then those of each run.
    pub claims: Vec<ClaimOutcome>,
    /// Its runs on the simulator.
    pub runs: Vec<RunRecord>,
    /// Results on the kernel; absent if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<GroundRecord>,
    /// Results on other grounds, by name; absent if none was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grounds: BTreeMap<String, GroundRecord>,
    /// Command that repeats the study.
    pub command: String,
}

/// Results of a study on a ground other than the simulator.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroundRecord {
    /// The claims, in the same order as for the simulator.
    pub claims: Vec<ClaimOutcome>,
    /// The runs that the ground can do.
    pub runs: Vec<RunRecord>,
    /// The runs that it cannot do.
    pub not_run: Vec<NotRun>,
}

/// A run that a ground cannot do.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotRun {
    /// Name in the study.
    pub name: String,
    /// The reason.
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

    /// Says how many claims were run if that is not all of them.
    pub fn in_part(&self) -> Option<String> {
        in_part(&self.studies)
    }

    /// All claims, as evaluated on the simulator.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimOutcome> + Clone {
        self.studies.iter().flat_map(|study| &study.claims)
    }
}

/// Says how many claims of the studies were run if that is not all of them.
pub(crate) fn in_part(studies: &[StudyRecord]) -> Option<String> {
    let run: usize = studies.iter().map(|study| study.claims.len()).sum();
    let all = studies.iter().map(|study| study.claims_in_all.unwrap_or(study.claims.len()));
    let all: usize = all.sum();
    (run < all).then(|| {
        format!(
            "{run} of {all} claims were run, those that the conclusions cite; the others stand as on \
             record, and --all runs them."
        )
    })
}

/// Results of a run of a study.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Name in the study.
    pub name: String,
    /// Directory, relative to that of the document, with `/` as separator.
    pub directory: String,
    /// The contents of the directory's `summary.json`.
    pub summary: Summary,
}
