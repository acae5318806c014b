//! Rankings and studies.

use std::path::PathBuf;

use knee_lab::present::Cell;
use knee_lab::report::rank_data;
use knee_lab::{
    Candidates, Error, Rank, RankSettings, Reproduction, SIMULATOR, Scope, choose_studies,
};
use pyo3::prelude::*;

use crate::algorithms::{Factories, Kit};
use crate::errors::{python, refused};
use crate::text::{Settings, Source, overrides};
use crate::watch::watched;

/// A number, a switch, a text, or nothing: one of the three is there.
type Value = (Option<f64>, Option<bool>, Option<String>);
/// The names of columns, and the rows.
type Rows = (Vec<String>, Vec<Vec<Value>>);

/// Ranks controllers, as described at `knee.rank`. Returns the summary as JSON, and its table.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python hands them over one by one")]
pub fn rank(
    py: Python<'_>,
    scenarios: Vec<Source>,
    candidates: Option<Vec<String>>,
    rivals: Option<Vec<String>>,
    set: Settings,
    flow: Option<String>,
    repeat: u64,
    directory: (PathBuf, bool),
    factories: (Factories, Factories),
) -> PyResult<(String, Rows)> {
    let kit = Kit::new(py, factories.0, factories.1)?;
    let texts = scenarios.iter().map(|given| given.text(kit.algorithms.clone()));
    let texts = texts.collect::<PyResult<Vec<_>>>()?;
    let lab = kit.lab(None, None);
    let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
    let all = RankSettings::on(on);
    let settings = RankSettings {
        candidates: candidates.map_or(all.candidates.clone(), Candidates),
        rivals: rivals.map_or(all.rivals.clone(), Candidates),
        set: overrides(&set),
        flow,
        repeat,
        call: kit.algorithms.is_some().then(|| "knee.rank(…)".to_string()),
        ..all
    };
    let rank = Rank::new(&texts, &settings).map_err(python)?;
    let (directory, force) = directory;
    let ranked = watched(py, &lab.handle(), || {
        lab.claim(&directory, [&directory], force)?;
        lab.rank(&rank, &directory)
    })?;
    let ranked = kit.raise_or(ranked)?;
    let json = serde_json::to_string(&ranked.summary);
    let data = rank_data(&ranked.summary);
    let heads: Vec<String> = data.heads.into_iter().map(|head| head.text).collect();
    let rows = data.rows.iter().map(|row| row.cells.iter().map(value).collect());
    Ok((json.map_err(|error| refused(error.to_string()))?, (heads, rows.collect())))
}

fn value(cell: &Cell) -> Value {
    match (cell.numbers.first(), cell.shown.as_str()) {
        (Some(number), _) => (Some(number.value), None, None),
        (None, "") => (None, None, None),
        (None, word @ ("true" | "false")) => (None, Some(word == "true"), None),
        (None, text) => (None, None, Some(text.to_string())),
    }
}

/// Runs studies, built-in ones by name and others by folder, as described at `knee.study`. Returns
/// their record as JSON.
#[pyfunction]
pub fn study(py: Python<'_>, names: Vec<String>, directory: (PathBuf, bool)) -> PyResult<String> {
    let kit = Kit::new(py, Factories::new(), Factories::new())?;
    let lab = kit.lab(None, None);
    let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
    let studies = choose_studies(&names, &lab.grounds, 0).map_err(python)?;
    let (directory, force) = directory;
    let records = watched(py, &lab.handle(), || {
        let plan = Reproduction::new(&studies, Scope::AllClaims, vec![on], directory.clone())?;
        lab.claim(&directory, plan.directories(), force)?;
        lab.reproduce(&plan)?.ok_or(Error::Stopped)
    })?;
    let records = serde_json::to_string(&kit.raise_or(records)?);
    records.map_err(|error| refused(error.to_string()))
}
