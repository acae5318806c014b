//! Errors of `knee-lab` as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    knee,
    KneeError,
    PyException,
    "What kept a run, a sweep or a ranking from being; the text says what to do."
);
create_exception!(
    knee,
    ScenarioError,
    KneeError,
    "A scenario or study is wrong; the text names each place and what to write instead."
);

/// Converts an error to a Python exception.
pub fn python(error: knee_lab::Error) -> PyErr {
    match &error {
        knee_lab::Error::Files(_) => ScenarioError::new_err(error.to_string()),
        _ => KneeError::new_err(error.to_string()),
    }
}

/// Makes the exception for an invalid argument.
pub fn refused(what: impl Into<String>) -> PyErr {
    KneeError::new_err(what.into())
}
