//! The Python module `knee._knee`: `knee-lab` for Python, without logic of its own. The part
//! written in Python is `python/knee`.
//!
//! What this crate never does: compute results of a run, keep a second copy of its tables, hold the
//! interpreter during a run without Python code.
#![cfg(feature = "extension-module")]

mod algorithms;
mod controller;
mod errors;
mod evaluate;
mod ground;
mod rank;
mod round;
mod run;
mod scheduler;
mod sweep;
mod table;
mod text;
mod view;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _knee {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use crate::algorithms::importing;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::errors::{KneeError, ScenarioError};
    #[pymodule_export]
    use crate::evaluate::{evaluate, evaluation_rows, evaluation_runs};
    #[pymodule_export]
    use crate::rank::{rank, study};
    #[pymodule_export]
    use crate::run::{Run, run};
    #[pymodule_export]
    use crate::scheduler::{Duplicate, Path, Repeat, Send, View, Wait};
    #[pymodule_export]
    use crate::sweep::SweepPlan;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::view::{Ack, Connection, Decision, Init};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Runs the command line; `typed` begins with the program's name, and `load(class, source,
    /// place)` returns the factory of a class in a file of Python. Returns the exit code.
    #[pyfunction]
    fn command(py: Python<'_>, typed: Vec<OsString>, load: Py<PyAny>) -> u8 {
        let (algorithms, classes) = importing(load);
        py.detach(|| knee::main_with_algorithms(typed, algorithms, classes))
    }

    /// Sets the path of this module's file.
    #[pyfunction]
    fn set_program_file(path: PathBuf) {
        knee_lab::set_program_file(path);
    }
}
