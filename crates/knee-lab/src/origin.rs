//! Inputs of a sweep, a ranking or an evaluation, kept in its folder: the scenarios and the files
//! they name as read, and the settings.

use crate::directory::{ORIGIN, cannot_write};
use crate::error::Error;
use crate::lab::Lab;
use crate::text::ScenarioText;
use knee_record::{Brought, INPUTS, Program, read_json, sha256_hex, write_bytes, write_json};
use knee_scenario::{file_name, open_inside, read_open};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Schema name of the document.
pub const SCHEMA: &str = "knee-origin/1";
/// Size limit of an input, bytes.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// The inputs from which a folder was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// `knee-origin/1`.
    pub schema: String,
    /// Version of Knee.
    pub version: String,
    /// The build of the program.
    pub program: Program,
    /// Controllers and schedulers that the program provided itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brought: BTreeMap<String, Brought>,
    /// The command line.
    pub arguments: Vec<String>,
    /// Ground of the runs.
    pub ground: String,
    /// The scenarios, in the order in which they were named.
    pub scenarios: Vec<KeptScenario>,
    /// The files that an evaluation reads: recorded links, and a candidate written
    /// in Python.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
    /// Settings of the command.
    pub settings: OriginSettings,
}

/// A scenario as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptScenario {
    /// The file itself.
    pub file: KeptFile,
    /// The files that it names.
    pub inputs: Vec<KeptFile>,
}

/// A copy of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFile {
    /// Its name, as given.
    pub written: String,
    /// Path of the copy, relative to the folder.
    pub kept: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// Settings of a sweep, a ranking or an evaluation, as given on the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OriginSettings {
    /// Settings of `knee sweep`.
    Sweep {
        /// Keys with their values.
        vary: Vec<String>,
        /// Keys that were set.
        set: Vec<String>,
        /// Seed of the first repeat; null for the scenario's.
        seed: Option<u64>,
        /// Runs at each point; null for one.
        repeat: Option<u64>,
        /// Whether invalid combinations were left out.
        skip_invalid: bool,
        /// The key whose values the headline compares; null for the default.
        #[serde(default)]
        about: Option<String>,
    },
    /// Settings of `knee rank`.
    Rank {
        /// The candidates.
        cc: Vec<String>,
        /// Controllers beside which each candidate runs.
        against: Vec<String>,
        /// Keys that were set.
        set: Vec<String>,
        /// The flow that they replaced; null for the first.
        flow: Option<String>,
        /// Seed of the first repeat; null for the scenarios'.
        seed: Option<u64>,
        /// Number of runs of each combination.
        repeat: u64,
    },
    /// Settings of `knee evaluate`.
    Evaluate {
        /// The candidate.
        candidate: String,
        /// Keys of the candidate's flows.
        with: Vec<String>,
        /// Sections; empty for all.
        section: Vec<String>,
        /// Seeds of each run.
        repeat: u64,
        /// Whether only the cases of `--quick` were run.
        quick: bool,
        /// Scenarios tried by the search for each metric; null without a search.
        search: Option<usize>,
        /// Recorded links, as named.
        trace: Vec<String>,
    },
}

impl OriginSettings {
    /// The keys that were set.
    pub(crate) fn set(&self) -> &[String] {
        match self {
            OriginSettings::Sweep { set, .. } | OriginSettings::Rank { set, .. } => set,
            OriginSettings::Evaluate { with, .. } => with,
        }
    }
}

/// Files by name as written in the scenario.
pub(crate) type Files = BTreeMap<String, Arc<[u8]>>;

/// A scenario and the files it named when it was read.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub text: ScenarioText,
    pub files: Files,
}

/// Writes scenarios, inputs and settings into a folder.
pub(crate) fn keep(
    lab: &Lab,
    directory: &Path,
    ground: &str,
    sources: &[Sources],
    settings: OriginSettings,
) -> Result<(), Error> {
    let mut taken = BTreeSet::new();
    let mut scenarios = Vec::new();
    for source in sources {
        let named = source.text.bytes();
        let mut copy =
            |written: &str, bytes: &[u8]| keep_one(directory, written, bytes, &mut taken);
        let file = copy(&source.text.name, named)?;
        let inputs = source.files.iter().map(|(written, bytes)| copy(written, bytes));
        scenarios.push(KeptScenario { file, inputs: inputs.collect::<Result<_, _>>()? });
    }
    write(lab, directory, ground, (scenarios, Vec::new()), settings)
}

/// Writes the settings of an evaluation into a folder that holds its files already, each below
/// [`INPUTS`] by the last part of its name.
pub(crate) fn keep_evaluation(
    lab: &Lab,
    directory: &Path,
    ground: &str,
    files: &Files,
    settings: OriginSettings,
) -> Result<(), Error> {
    let files = files.iter().map(|(written, bytes)| KeptFile {
        written: written.clone(),
        kept: format!("{INPUTS}/{}", file_name(written)),
        sha256: sha256_hex(bytes),
    });
    write(lab, directory, ground, (Vec::new(), files.collect()), settings)
}

fn write(
    lab: &Lab,
    directory: &Path,
    ground: &str,
    (scenarios, files): (Vec<KeptScenario>, Vec<KeptFile>),
    settings: OriginSettings,
) -> Result<(), Error> {
    let origin = Origin {
        schema: SCHEMA.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        program: lab.program.clone(),
        brought: lab.brought.known(),
        arguments: lab.arguments.clone(),
        ground: ground.to_string(),
        scenarios,
        files,
        settings,
    };
    Ok(write_json(&directory.join(ORIGIN), &origin)?)
}

/// Copies a file under an unused name.
fn keep_one(
    directory: &Path,
    written: &str,
    bytes: &[u8],
    taken: &mut BTreeSet<String>,
) -> Result<KeptFile, Error> {
    let last = file_name(written);
    let numbered = (2..).map(|number| format!("{INPUTS}/{number}-{last}"));
    let mut names = std::iter::once(format!("{INPUTS}/{last}")).chain(numbered);
    let kept = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(kept.clone());
    let folder = directory.join(INPUTS);
    std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, error))?;
    write_bytes(&directory.join(&kept), bytes)?;
    Ok(KeptFile { written: written.to_string(), kept, sha256: sha256_hex(bytes) })
}

impl Origin {
    /// Reads the origin of a folder.
    ///
    /// # Errors
    /// A missing or damaged document.
    pub fn read(directory: &Path) -> Result<Origin, Error> {
        Ok(read_json(&directory.join(ORIGIN), SCHEMA)?)
    }

    /// The scenarios, read from the copies.
    pub(crate) fn texts(&self, directory: &Path) -> Result<Vec<ScenarioText>, Error> {
        self.scenarios.iter().map(|scenario| scenario.text(directory)).collect()
    }

    /// All copies.
    pub(crate) fn files(&self) -> impl Iterator<Item = &KeptFile> {
        let scenarios =
            self.scenarios.iter().flat_map(|one| std::iter::once(&one.file).chain(&one.inputs));
        scenarios.chain(&self.files)
    }
}

impl KeptScenario {
    fn text(&self, directory: &Path) -> Result<ScenarioText, Error> {
        let text = String::from_utf8_lossy(&self.file.bytes(directory)?).into_owned();
        let inputs = self.inputs.iter();
        let files = inputs.map(|file| Ok((file.written.clone(), file.bytes(directory)?.into())));
        let files: Files = files.collect::<Result<_, Error>>()?;
        Ok(ScenarioText::new(&self.file.written, &text).with_files(files))
    }
}

impl KeptFile {
    /// Reads the copy. A path that leads out of the folder counts as damage.
    pub(crate) fn bytes(&self, directory: &Path) -> Result<Vec<u8>, Error> {
        let path = directory.join(&self.kept);
        let failed = |source| Error::Read { path: path.clone(), source };
        let below = self.kept.strip_prefix(INPUTS).and_then(|rest| rest.strip_prefix('/'));
        let plain = |name: &str| !name.contains(['/', '\\']) && name != "..";
        if !below.is_some_and(plain) {
            return Err(failed(std::io::Error::other("its name points outside the folder")));
        }
        let file = open_inside(directory, Path::new(&self.kept)).map_err(failed)?;
        read_open(file, INPUT_BYTES_MAX).map_err(failed)
    }
}
