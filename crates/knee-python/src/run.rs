//! A single run.

use std::path::PathBuf;
use std::sync::PoisonError;

use knee_lab::directory::write_page;
use knee_lab::scenario::Override;
use knee_lab::{Error, Job};
use pyo3::prelude::*;

use crate::algorithms::{Factories, Kit};
use crate::errors::{python, refused};
use crate::ground::Kept;
use crate::table::Table;
use crate::text::{Settings, Source, overrides};
use crate::watch::watched;

/// A completed run. Its tables are those of its directory (docs/records.md).
#[pyclass(frozen, get_all, module = "knee")]
pub struct Run {
    /// A row per flow.
    flows: Py<Table>,
    /// Time series of the flows.
    samples: Py<Table>,
    /// Time series of the links.
    links: Py<Table>,
    /// Time series of the classes of links that distinguish several.
    classes: Py<Table>,
    /// A row per path of a flow over several paths.
    paths: Py<Table>,
    /// Time series of these paths.
    path_samples: Py<Table>,
    /// A row per object of a page and segment of a video.
    objects: Py<Table>,
    /// A row per connection that ended.
    connections: Py<Table>,
    /// The summary as JSON (`knee-summary`).
    summary_json: String,
    /// The scenario with all defaults, in TOML.
    scenario: String,
    /// Directory in which it was kept, if any.
    directory: Option<PathBuf>,
}

/// Runs a scenario, as described at `knee.run`.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    given: Source,
    set: Settings,
    on: &str,
    directory: Option<(PathBuf, bool)>,
    factories: (Factories, Factories),
) -> PyResult<Run> {
    let kit = Kit::new(py, factories.0, factories.1)?;
    let text = given.text(kit.algorithms.clone())?;
    let set: Vec<Override> = overrides(&set);
    let scenario = text.scenario(&set).map_err(|errors| python(errors.into()))?;
    let kept = Kept::default();
    let mut lab = kit.lab(None, Some(&kept));
    if directory.is_some() {
        lab.program = knee::program();
    }
    let ground = lab.grounds.get(on).map_err(|error| python(error.into()))?;
    ground.check_host().and_then(|()| ground.check(&scenario)).map_err(|e| python(e.into()))?;
    let ran = watched(py, &lab.handle(), || -> Result<_, Error> {
        let Some((directory, force)) = &directory else {
            return lab.run(&Job::new(&scenario, ground));
        };
        lab.claim(directory, [directory], *force)?;
        let mut run = lab.run(&Job::kept(&scenario, ground, directory))?;
        lab.keep(directory, &scenario, &mut run, &text.inputs(&scenario))?;
        write_page(directory, &scenario, &run.records, &run.summary, None, "knee.run(…)")?;
        Ok(run)
    })?;
    let run = kit.raise_or(ran)?;
    let tables = kept.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    let table = |columns| Py::new(py, Table::new(columns)?);
    let summary_json = serde_json::to_string(&run.summary);
    Ok(Run {
        flows: table(tables.flows)?,
        samples: table(tables.samples)?,
        links: table(tables.links)?,
        classes: table(tables.classes)?,
        paths: table(tables.paths)?,
        path_samples: table(tables.path_samples)?,
        objects: table(tables.objects)?,
        connections: table(tables.connections)?,
        summary_json: summary_json.map_err(|error| refused(error.to_string()))?,
        scenario: scenario.resolved.clone(),
        directory: directory.map(|(directory, _)| directory),
    })
}

#[pymethods]
impl Run {
    /// The summary: flow by flow, link by link, claims. Names of numbers end with their unit.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.summary_json,))
    }
}
