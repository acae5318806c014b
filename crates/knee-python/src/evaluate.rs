//! Evaluations by RFC 9743: all at once, or the runs a few at a time in any process.

use std::path::PathBuf;

use knee_lab::record::EvaluationRow;
use knee_lab::{Evaluate, EvaluateSettings, Lab, SIMULATOR, evaluate_seeds};
use pyo3::prelude::*;

use crate::algorithms::{Factories, Kit};
use crate::errors::{python, refused};
use crate::text::{Settings, overrides};
use crate::watch::watched;

/// What to evaluate, as described at `knee.evaluate`.
#[derive(FromPyObject)]
pub struct Asked {
    #[pyo3(item)]
    candidate: String,
    #[pyo3(item)]
    sections: Vec<String>,
    #[pyo3(item)]
    repeat: Option<u64>,
    #[pyo3(item)]
    quick: bool,
    #[pyo3(item)]
    search: Option<usize>,
    /// Recorded links: names and bytes.
    #[pyo3(item)]
    traces: Vec<(String, Vec<u8>)>,
    #[pyo3(item)]
    set: Settings,
}

/// A value of a run: line, case, controller, repeat, seed, the value, or why there is none.
type Row = (usize, usize, usize, u64, u64, Option<f64>, String);

/// Empties the directory, and returns the numbers of the runs in the order in which they should
/// begin.
#[pyfunction]
pub fn evaluation_runs(
    py: Python<'_>,
    asked: Asked,
    directory: (PathBuf, bool),
    factories: Factories,
) -> PyResult<Vec<usize>> {
    let kit = Kit::for_evaluation(py, factories)?;
    let lab = kit.lab(None, None);
    let plan = asked.plan(&kit, &lab)?;
    lab.claim(&directory.0, [&directory.0], directory.1).map_err(python)?;
    Ok(plan.order())
}

/// Performs some of the runs; returns their values.
#[pyfunction]
pub fn evaluation_rows(
    py: Python<'_>,
    asked: Asked,
    numbers: Vec<usize>,
    factories: Factories,
) -> PyResult<Vec<Row>> {
    let kit = Kit::for_evaluation(py, factories)?;
    let lab = kit.lab(Some(1), None);
    let plan = asked.plan(&kit, &lab)?;
    let rows = watched(py, &lab.handle(), || lab.evaluate_runs(&plan, &numbers))?;
    Ok(kit.raise_or(rows)?.into_iter().map(passed).collect())
}

/// Evaluates a controller. Without `rows` performs all runs in this process; otherwise they are
/// those of all runs, and the directory is empty. Returns `evaluation.json`.
#[pyfunction]
pub fn evaluate(
    py: Python<'_>,
    asked: Asked,
    directory: (PathBuf, bool),
    factories: Factories,
    rows: Option<Vec<Row>>,
) -> PyResult<String> {
    let kit = Kit::for_evaluation(py, factories)?;
    let lab = kit.lab(None, None);
    let plan = asked.plan(&kit, &lab)?;
    let (directory, force) = directory;
    let rows = rows.map(|rows| rows.into_iter().map(received).collect());
    let evaluation = watched(py, &lab.handle(), || match rows {
        Some(rows) => lab.evaluate_rows(&plan, rows, &directory),
        None => {
            lab.claim(&directory, [&directory], force)?;
            lab.evaluate(&plan, &directory)
        }
    })?;
    let evaluation = serde_json::to_string(&kit.raise_or(evaluation)?);
    evaluation.map_err(|error| refused(error.to_string()))
}

impl Asked {
    fn plan<'g>(self, kit: &Kit, lab: &'g Lab) -> PyResult<Evaluate<'g>> {
        let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
        let settings = EvaluateSettings {
            candidate: self.candidate,
            with: overrides(&self.set),
            sections: self.sections,
            repeat: self.repeat.unwrap_or(evaluate_seeds(self.quick)),
            quick: self.quick,
            on,
            beside: Vec::new(),
            search: self.search,
            traces: self.traces,
            algorithms: kit.algorithms.clone(),
        };
        Evaluate::new(&settings).map_err(python)
    }
}

fn passed(row: EvaluationRow) -> Row {
    let EvaluationRow { line, case, controller, repeat, seed, value } = row;
    let (value, why) = match value {
        Ok(value) => (Some(value), String::new()),
        Err(why) => (None, why),
    };
    (line, case, controller, repeat, seed, value, why)
}

fn received(row: Row) -> EvaluationRow {
    let (line, case, controller, repeat, seed, value, why) = row;
    EvaluationRow { line, case, controller, repeat, seed, value: value.ok_or(why) }
}
