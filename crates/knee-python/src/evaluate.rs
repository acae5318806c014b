//! Evaluations by RFC 9743.

use std::fs;
use std::path::PathBuf;

use knee_lab::{Evaluate, EvaluateSettings, SIMULATOR, evaluate_seeds};
use pyo3::prelude::*;

use crate::algorithms::{Factories, Kit};
use crate::errors::{python, refused};
use crate::text::{Settings, overrides};
use crate::watch::watched;

/// Evaluates a controller, as described at `knee.evaluate`. Returns `evaluation.json`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python hands them over one by one")]
pub fn evaluate(
    py: Python<'_>,
    candidate: String,
    sections: Vec<String>,
    repeat: Option<u64>,
    quick: bool,
    search: Option<usize>,
    traces: Vec<PathBuf>,
    set: Settings,
    directory: (PathBuf, bool),
    factories: Factories,
) -> PyResult<String> {
    let kit = Kit::for_evaluation(py, factories)?;
    let lab = kit.lab(None, None);
    let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
    let settings = EvaluateSettings {
        candidate,
        with: overrides(&set),
        sections,
        repeat: repeat.unwrap_or(evaluate_seeds(quick)),
        quick,
        on,
        beside: Vec::new(),
        search,
        traces: read(&traces)?,
        algorithms: kit.algorithms.clone(),
    };
    let plan = Evaluate::new(&settings).map_err(python)?;
    let (directory, force) = directory;
    let evaluation = watched(py, &lab.handle(), || {
        lab.claim(&directory, [&directory], force)?;
        lab.evaluate(&plan, &directory)
    })?;
    let evaluation = serde_json::to_string(&kit.told(evaluation)?);
    evaluation.map_err(|error| refused(error.to_string()))
}

/// Recorded links: names and bytes.
fn read(traces: &[PathBuf]) -> PyResult<Vec<(String, Vec<u8>)>> {
    let read = |path: &PathBuf| Ok((path.to_string_lossy().into_owned(), fs::read(path)?));
    traces.iter().map(read).collect()
}
