//! Scenarios passed from Python.

use std::path::PathBuf;
use std::sync::Arc;

use knee_lab::ScenarioText;
use knee_lab::scenario::{Algorithms, Override};
use pyo3::prelude::*;

use crate::errors::{python, refused};

/// A file, a text in TOML, or a document in JSON to be converted; the Python part says which.
#[derive(Clone, FromPyObject)]
pub enum Source {
    /// `("path", path)` or `("toml", text)` or `("json", text)`.
    #[pyo3(transparent)]
    Pair((String, PathBuf)),
}

/// Argument `set`: keys and values as for `--set`.
pub type Settings = Vec<(String, String)>;

impl Source {
    /// Returns the text of the scenario, which may name these algorithms.
    pub fn text(&self, algorithms: Option<Arc<Algorithms>>) -> PyResult<ScenarioText> {
        let Source::Pair((kind, what)) = self;
        let text = match kind.as_str() {
            "path" => ScenarioText::read(what).map_err(|errors| python(errors.into()))?,
            "toml" => ScenarioText::new("scenario.toml", &what.to_string_lossy()),
            _ => ScenarioText::new("scenario.toml", &toml_of(&what.to_string_lossy())?),
        };
        Ok(match algorithms {
            Some(algorithms) => text.with_algorithms(algorithms),
            None => text,
        })
    }
}

fn toml_of(json: &str) -> PyResult<String> {
    let cannot = |why: String| refused(format!("the scenario is no TOML: {why}"));
    let document: toml::Table = serde_json::from_str(json).map_err(|e| cannot(e.to_string()))?;
    toml::to_string(&document).map_err(|error| cannot(error.to_string()))
}

/// Converts settings for the reader of scenarios.
pub fn overrides(settings: &Settings) -> Vec<Override> {
    settings.iter().map(|(key, value)| Override::new(key, value)).collect()
}
