//! Compares runs, sets of repeats and points of sweeps with the first of them: by the measures that
//! matter for their workload, and number by number.

mod page;
mod sides;

use crate::command::quoted;
use crate::directory::{COMPARISON, REPORT};
use crate::error::Error;
use crate::given::{DifferingInput, differing};
use crate::lab::Lab;
use knee_record::{
    Comparison, MeasureCompared, Side, Summary, compare_sides, compared_in_words, write_json,
    write_text,
};
use page::SideSeries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sides::Found;
pub use sides::with_rates;
pub(crate) use sides::{PointOf, Source};
use std::path::{Path, PathBuf};

/// Schema name of a comparison of several runs.
pub(crate) const SCHEMA: &str = "knee-comparisons/1";

/// Why directories cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A single run and a set of repeats.
    #[error("one side is a single run, the other has repeats")]
    Kinds,
    /// Fewer than two runs.
    #[error("a comparison needs at least two runs")]
    TooFew,
    /// The repeats have fewer than two seeds in common.
    #[error("the repeats have fewer than two seeds in common")]
    NoCommonSeeds,
    /// What cannot be used leaves too few runs: which runs are left out.
    #[error("too few runs remain that can be compared. {0}")]
    TooFewLeft(String),
    /// No run of a side can be used.
    #[error("{0} has no run that can be compared: {1}")]
    NoEvidence(String, String),
    /// The sweep has no such point.
    #[error("the sweep in {sweep} has no point with {wanted}")]
    NoPoint {
        /// The sweep's folder.
        sweep: String,
        /// The requested setting.
        wanted: String,
        /// Each key with its values: `flow.a.cc=bbr|reno`.
        known: Vec<String>,
    },
}

/// Comparison of several runs with the first of them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunsCompared {
    /// `knee-comparisons/1`.
    pub schema: String,
    /// The sides, as in the command line; the others are compared with the first.
    pub directories: Vec<String>,
    /// Short names of the sides.
    #[serde(default)]
    pub names: Vec<String>,
    /// Runs of each side that differ only in their seed.
    #[serde(default)]
    pub runs: Vec<usize>,
    /// The command that repeats the comparison.
    #[serde(default)]
    pub command: String,
    /// Inputs that differ between the sides.
    pub given: Vec<DifferingInput>,
    /// The result: a sentence for each side but the first, and one for each side of
    /// which runs are left out.
    #[serde(default)]
    pub says: Vec<String>,
    /// The measures that matter for the workload, group by group.
    #[serde(default)]
    pub measures: Vec<MeasureCompared>,
    /// Each side compared with the first, number by number; empty if a side is a point
    /// of a sweep, which has no summary.
    pub comparisons: Vec<Comparison>,
}

/// A comparison, and the time series of each side's first run.
#[derive(Debug)]
pub struct ComparedRuns {
    /// The comparison.
    pub compared: RunsCompared,
    /// Folder of each side: of its run, its repeats or its sweep.
    pub folders: Vec<PathBuf>,
    series: Vec<SideSeries>,
}

/// Compares runs, sets of repeats and points of sweeps with the first of them.
/// `SWEEP@KEY=VALUE` names points of a sweep, its folder alone all of them.
///
/// # Errors
/// A directory that cannot be read, or a [`CompareError`].
pub fn compare_runs(directories: &[PathBuf]) -> Result<ComparedRuns, Error> {
    let sources = sides::sources(directories)?;
    if sources.len() < 2 {
        return Err(CompareError::TooFew.into());
    }
    let names = sides::names(&sources);
    let (mut sides, mut summaries, mut series) = (Vec::new(), Vec::new(), Vec::new());
    let mut left_out = Vec::new();
    for (source, name) in sources.iter().zip(&names) {
        let Found { side, records, summaries: own, left_out: without } =
            source.read(name.clone())?;
        left_out.extend((without > 0).then(|| {
            let plural = if without == 1 { "" } else { "s" };
            format!("Left out: {without} run{plural} of {name}, invalid or interrupted.")
        }));
        series.extend(records.map(|records| SideSeries::new(sides.len(), name, &records)));
        sides.push(side);
        summaries.push(own);
    }
    check(&sides).map_err(|error| match left_out.is_empty() {
        true => error,
        false => CompareError::TooFewLeft(left_out.join(" ")).into(),
    })?;
    let measures = compare_sides(&sides);
    let compared = RunsCompared {
        schema: SCHEMA.to_string(),
        directories: sources.iter().map(Source::typed).collect(),
        runs: sides.iter().map(|side| side.runs.len()).collect(),
        command: command(directories),
        given: differing(&sources)?,
        says: compared_in_words(&names, &measures).into_iter().chain(left_out).collect(),
        names,
        measures,
        comparisons: number_by_number(&summaries)?,
    };
    let folders = sources.iter().map(|source| source.folder().to_path_buf()).collect();
    Ok(ComparedRuns { compared, folders, series })
}

/// Checks that all sides are single runs, or all have several runs with common seeds.
fn check(sides: &[Side]) -> Result<(), Error> {
    let Some((first, others)) = sides.split_first() else { return Ok(()) };
    for side in others {
        if (side.runs.len() > 1) != (first.runs.len() > 1) {
            return Err(CompareError::Kinds.into());
        }
        let shared = |seed: u64| first.runs.iter().any(|run| run.seed == seed);
        let common = side.runs.iter().filter(|run| shared(run.seed)).count();
        if side.runs.len() > 1 && common < 2 {
            return Err(CompareError::NoCommonSeeds.into());
        }
    }
    Ok(())
}

/// Compares all numbers of the sides' runs with those of the first; nothing if a side has no
/// summaries, being a point of a sweep.
fn number_by_number(summaries: &[Vec<Summary>]) -> Result<Vec<Comparison>, Error> {
    let Some((first, others)) = summaries.split_first() else { return Ok(Vec::new()) };
    if summaries.iter().any(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let one = |other: &Vec<Summary>| match (&first[..], &other[..]) {
        ([before], [after]) => Ok(Comparison::new(before, after)),
        _ => Comparison::of_repeats(first, other).ok_or(CompareError::NoCommonSeeds.into()),
    };
    others.iter().map(one).collect()
}

fn command(directories: &[PathBuf]) -> String {
    let named = directories.iter().map(|path| quoted(&path.to_string_lossy()));
    format!("knee compare {}", named.collect::<Vec<_>>().join(" "))
}

impl Lab {
    /// Writes a comparison and its page into a directory, which must have been [`Lab::claim`]ed.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_comparison(&self, runs: &ComparedRuns, directory: &Path) -> Result<(), Error> {
        write_json(&directory.join(COMPARISON), &runs.compared)?;
        write_text(&directory.join(REPORT), &runs.page()?)?;
        Ok(())
    }
}

/// Renders the page of the comparison stored in a directory, from the runs that it names.
pub(crate) fn saved_page(compared: &RunsCompared) -> Result<String, Error> {
    let names: Vec<PathBuf> = compared.directories.iter().map(PathBuf::from).collect();
    compare_runs(&names)?.page()
}
