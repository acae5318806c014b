//! Sweeps: the plan, its runs a few at a time in any process, and the result.

use std::ffi::OsStr;

use knee_lab::record::{LeftOut, SweepKey, SweepRow, SweepRun, SweepSummary, sweep_columns};
use knee_lab::{Error, Job, SIMULATOR, Sweep, SweepSettings, Vary};
use pyo3::prelude::*;

use crate::algorithms::{Factories, Kit};
use crate::errors::{python, refused};
use crate::table::Table;
use crate::text::{Settings, Source, overrides};
use crate::watch::watched;

/// A run of a sweep, for its executor: its hash, its point, the number of the repeat, the settings.
type Task = (String, String, u64, Settings);

/// A checked plan of a sweep.
#[pyclass(frozen, module = "knee")]
pub struct SweepPlan {
    name: String,
    keys: Vec<SweepKey>,
    points: Vec<Vec<usize>>,
    /// The point of each run.
    runs: Vec<usize>,
    tasks: Vec<Task>,
    repeats: u64,
    left_out: Vec<LeftOut>,
}

#[pymethods]
impl SweepPlan {
    /// Combines the values of `vary`, and checks every combination.
    #[new]
    fn new(
        py: Python<'_>,
        given: Source,
        vary: Vec<(String, Vec<String>)>,
        set: Settings,
        repeat: u64,
        skip_invalid: bool,
        factories: (Factories, Factories),
    ) -> PyResult<SweepPlan> {
        let kit = Kit::new(py, factories.0, factories.1)?;
        let text = given.text(kit.algorithms.clone())?;
        let lab = kit.lab(None, None);
        let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
        let vary = vary.into_iter().map(|(key, values)| {
            let text = format!("{key}={}", values.join(","));
            Vary { text, key, values }
        });
        let settings = SweepSettings {
            set: overrides(&set),
            repeat: Some(repeat),
            skip_invalid,
            ..SweepSettings::on(on, vary.collect())
        };
        let sweep = py.detach(|| Sweep::new(text, settings)).map_err(python)?;
        let task = |run: &knee_lab::PlannedRun| {
            let point = &sweep.points[run.point];
            let varied = sweep.keys.iter().zip(&point.at);
            let varied = varied.map(|(key, at)| (key.name.clone(), key.values[*at].clone()));
            let seed = ("seed".to_string(), run.seed.to_string());
            let given = set.iter().filter(|(key, _)| key != "seed").cloned();
            let all = given.chain(varied).chain([seed]).collect();
            (run.id.clone(), point.label.clone(), run.repeat, all)
        };
        Ok(SweepPlan {
            tasks: sweep.runs.iter().map(task).collect(),
            runs: sweep.runs.iter().map(|run| run.point).collect(),
            points: sweep.points.iter().map(|point| point.at.clone()).collect(),
            name: sweep.name.clone(),
            keys: sweep.keys.clone(),
            left_out: sweep.left_out.clone(),
            repeats: repeat,
        })
    }

    /// The runs of the sweep.
    #[getter]
    fn tasks(&self) -> Vec<Task> {
        self.tasks.clone()
    }

    /// Makes some of the runs; returns the measurements as JSON.
    #[staticmethod]
    fn make(
        py: Python<'_>,
        given: Source,
        tasks: Vec<Task>,
        factories: (Factories, Factories),
    ) -> PyResult<Vec<String>> {
        let kit = Kit::new(py, factories.0, factories.1)?;
        let text = given.text(kit.algorithms.clone())?;
        let lab = kit.lab(Some(1), None);
        let on = lab.grounds.get(SIMULATOR).map_err(|error| python(error.into()))?;
        let made = watched(py, &lab.handle(), || -> Result<Vec<String>, Error> {
            let make = |(id, point, repeat, set): &Task| {
                let scenario = text.scenario(&overrides(set))?;
                let run = lab.run(&Job::new(&scenario, on))?;
                let measured = (&run.records, &run.summary);
                let kept = SweepRun::new("", (id, point, *repeat), &scenario, measured, 0.0);
                serde_json::to_string(&kept).map_err(|error| Error::Defect(error.to_string()))
            };
            tasks.iter().map(make).collect()
        })?;
        kit.raise_or(made)
    }

    /// Returns the table and the summary, as JSON, from results in the order of `tasks`.
    fn gather(&self, made: Vec<String>) -> PyResult<(Table, String)> {
        let read = |text: &String| {
            SweepRun::read(text.as_bytes()).ok_or_else(|| refused("a run came back damaged"))
        };
        let made: Vec<SweepRun> = made.iter().map(read).collect::<PyResult<_>>()?;
        let mut order: Vec<usize> = (0..made.len()).collect();
        order.sort_by_key(|number| (self.runs[*number], made[*number].repeat));
        let rows = order.iter().flat_map(|number| {
            let run = &made[*number];
            let at = &self.points[self.runs[*number]];
            run.groups.iter().map(move |group| SweepRow {
                run: &run.id,
                at,
                repeat: run.repeat,
                seed: run.seed,
                group,
            })
        });
        let table = Table::new(sweep_columns(&self.keys, &rows.collect::<Vec<_>>()))?;
        let mut points: Vec<(Vec<usize>, Vec<SweepRun>)> =
            self.points.iter().map(|at| (at.clone(), Vec::new())).collect();
        for number in order {
            points[self.runs[number]].1.push(made[number].clone());
        }
        let words = ("knee.sweep(…)".to_string(), "knee.run(…)".to_string());
        let counts = (self.repeats, self.runs.len());
        let (keys, left_out) = (self.keys.clone(), self.left_out.clone());
        let summary = SweepSummary::new(&self.name, words, keys, counts, &points, left_out);
        let summary = serde_json::to_string(&summary);
        Ok((table, summary.map_err(|error| refused(error.to_string()))?))
    }

    fn __len__(&self) -> usize {
        self.tasks.len()
    }

    fn __repr__(&self) -> String {
        let name = OsStr::new(&self.name);
        format!("<knee.SweepPlan of {} runs of {name:?}>", self.tasks.len())
    }
}
