//! Controllers and schedulers written in Python, registered for a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use knee_cc::{Build, Controller, ExternalFactory, SelectionError};
use knee_lab::record::Brought;
use knee_lab::scenario::{Algorithms, ClassFile, Importer};
use knee_lab::{Classes, Grounds, Handle, Kernel, Lab, Simulator};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand_core::Rng;

use crate::controller::PythonController;
use crate::errors::refused;
use crate::ground::{Kept, RunSeed, WithEffects};
use crate::scheduler::PythonScheduler;

/// A class or another factory with its metadata: class, module, hash and location of its source.
#[derive(FromPyObject)]
pub struct Factory {
    make: Py<PyAny>,
    #[pyo3(attribute("class_"))]
    class: String,
    module: String,
    sha256: Option<String>,
    place: String,
}

/// Factories by their names in scenarios.
pub type Factories = BTreeMap<String, Factory>;

/// The exception raised by Python code, which ends the run and is kept until then.
#[derive(Default)]
pub struct Raised {
    error: Mutex<Option<PyErr>>,
    handle: OnceLock<Handle>,
    /// An exception fails only the run in which it was raised; others continue.
    pub fails_run: bool,
}

impl Raised {
    /// Keeps the first error and stops the runs, unless errors fail single runs.
    pub fn keep(&self, error: PyErr) {
        if self.fails_run {
            return;
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        if let Some(handle) = self.handle.get() {
            handle.stop();
        }
    }

    fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a run, a sweep or a ranking needs besides the scenario.
pub struct Kit {
    /// The algorithms that scenarios may name, if there are more than the built-in ones.
    pub algorithms: Option<Arc<Algorithms>>,
    /// What is noted of them in records.
    pub brought: Classes,
    raised: Arc<Raised>,
    seed: Arc<RunSeed>,
}

impl Kit {
    /// Makes a kit with these algorithms.
    pub fn new(py: Python<'_>, controllers: Factories, schedulers: Factories) -> PyResult<Kit> {
        Kit::made(py, controllers, schedulers, Raised::default())
    }

    /// Makes a kit for runs that may fail individually, with the exception as the reason.
    pub fn for_evaluation(py: Python<'_>, controllers: Factories) -> PyResult<Kit> {
        let raised = Raised { fails_run: true, ..Raised::default() };
        Kit::made(py, controllers, Factories::new(), raised)
    }

    fn made(
        py: Python<'_>,
        controllers: Factories,
        schedulers: Factories,
        raised: Raised,
    ) -> PyResult<Kit> {
        let (raised, seed) = (Arc::new(raised), Arc::<RunSeed>::default());
        let brought = Classes::default();
        if controllers.is_empty() && schedulers.is_empty() {
            return Ok(Kit { algorithms: None, brought, raised, seed });
        }
        let mut algorithms = Algorithms::built_in().clone();
        for (name, factory) in controllers {
            brought.add(&name, factory.brought());
            let make = making(factory, raised.clone());
            let added = algorithms.controllers.register(name, move |_, init| make(init));
            added.map_err(|error| refused(error.to_string()))?;
        }
        for (name, factory) in schedulers {
            brought.add(&name, factory.brought());
            let (factory, raised) = (Arc::new(factory), raised.clone());
            let seed = seed.clone();
            let make = move |_: &_, ()| {
                let seed = seed.next_scheduler();
                Python::attach(|py| {
                    let Factory { make, place, .. } = &*factory;
                    PythonScheduler::boxed(py, make, place, &seed, &raised)
                        .map_err(|error| not_made(py, error, place, &raised))
                })
            };
            let added = algorithms.schedulers.register(name, make);
            added.map_err(|error| refused(error.to_string()))?;
        }
        let _ = py;
        Ok(Kit { algorithms: Some(Arc::new(algorithms)), brought, raised, seed })
    }

    /// Makes a laboratory with the kit's algorithms.
    pub fn lab(&self, parallel: Option<u16>, kept: Option<&Kept>) -> Lab {
        let attached = self.algorithms.is_some();
        let simulator = match &self.algorithms {
            Some(algorithms) => Simulator::with_algorithms(algorithms.clone()),
            None => Simulator::default(),
        };
        let (kept, seed) = (kept.cloned(), self.seed.clone());
        let kernel =
            WithEffects { inner: Kernel, attached: false, kept: kept.clone(), seed: seed.clone() };
        let grounds = Grounds::new()
            .with(WithEffects { inner: simulator, attached, kept, seed })
            .with(kernel);
        let mut lab = Lab::new(grounds);
        // Python can run only one of them at a time.
        lab.parallel = if attached { Some(1) } else { parallel };
        lab.brought = self.brought.clone();
        // A kit serves one laboratory at a time.
        let _ = self.raised.handle.set(lab.handle());
        lab
    }

    /// Raises the exception of Python code, if any, otherwise Knee's error.
    pub fn raise_or<T>(&self, outcome: Result<T, knee_lab::Error>) -> PyResult<T> {
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => outcome.map_err(crate::errors::python),
        }
    }
}

/// Returns what builds a controller with a factory.
fn making(
    factory: Factory,
    raised: Arc<Raised>,
) -> impl Fn(knee_cc::Init) -> Result<Box<dyn Controller>, String> + Send + Sync + 'static {
    move |mut init| {
        let seed = init.rng.next_u64();
        Python::attach(|py| {
            let Factory { make, place, .. } = &factory;
            PythonController::boxed(py, make, place, &init, seed, &raised)
                .map_err(|error| not_made(py, error, place, &raised))
        })
    }
}

/// Makes the algorithms of a command line, which include the classes of files that scenarios name;
/// `load` loads one. Each exception fails the run in which it is raised.
pub fn importing(load: Py<PyAny>) -> (Algorithms, Classes) {
    let raised = Arc::new(Raised { fails_run: true, ..Raised::default() });
    let classes = Classes::default();
    let import = {
        let classes = classes.clone();
        move |file: &ClassFile| {
            let factory = Python::attach(|py| loaded(py, &load, file))?;
            classes.add(&file.name, factory.brought());
            let make = making(factory, raised.clone());
            Ok(knee_cc::Entry {
                name: file.name.clone().leak(),
                summary: "a class in Python",
                source: "the file",
                parameters: &[],
                presets: &[],
                build: Build::Given(ExternalFactory::new(move |_, init| make(init))),
            })
        }
    };
    (Algorithms { importer: Importer::new(import), ..Algorithms::default() }, classes)
}

/// Loads a class; the exception says in its arguments what is wrong and what to write.
fn loaded(py: Python<'_>, load: &Py<PyAny>, file: &ClassFile) -> Result<Factory, SelectionError> {
    let source = PyBytes::new(py, &file.bytes);
    let given = (&file.name, &file.class, source, &file.place);
    let factory = load.bind(py).call1(given).and_then(|made| Ok(made.extract::<Factory>()?));
    factory.map_err(|error| {
        let value = error.value(py);
        let words = value.getattr("args").and_then(|args| args.extract::<(String, String)>());
        let (problem, advice) = words.unwrap_or_else(|_| {
            (format!("{}: {value}", file.name), "correct the file".to_string())
        });
        SelectionError { parameter: None, problem, advice }
    })
}

impl Factory {
    fn brought(&self) -> Brought {
        let Factory { class, module, sha256, .. } = self;
        Brought { class: class.clone(), module: module.clone(), sha256: sha256.clone() }
    }
}

/// Keeps the exception of a factory, which replaces Knee's message.
fn not_made(py: Python<'_>, error: PyErr, place: &str, raised: &Raised) -> String {
    let said = format!("{place}: {}", error.value(py));
    raised.keep(error);
    said
}
