//! What a scenario selects, and why a selection is refused.

use std::collections::BTreeMap;
use thiserror::Error;

/// An algorithm or preset by name, with the parameters that differ from its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Name of an algorithm or of a preset.
    pub name: String,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Value>,
}

impl Selection {
    /// Selects the algorithm or preset `name` with its defaults.
    pub fn named(name: impl Into<String>) -> Selection {
        Selection { name: name.into(), parameters: BTreeMap::new() }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: Value) -> Selection {
        self.parameters.insert(parameter.into(), value);
        self
    }
}

/// As it is written in a scenario: the name alone, or a table if there are parameters.
impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.parameters.is_empty() {
            return write!(f, "\"{}\"", self.name);
        }
        write!(f, "{{ name = \"{}\"", self.name)?;
        for (parameter, value) in &self.parameters {
            write!(f, ", {parameter} = {value}")?;
        }
        f.write_str(" }")
    }
}

/// Value of a parameter, as a scenario gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A dimensionless number.
    Number(f64),
    /// A quantity with its unit, or a word.
    Text(String),
    /// A list of numbers.
    Numbers(Vec<f64>),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{on}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Numbers(list) => write!(f, "{list:?}"),
        }
    }
}

/// Why a [`Selection`] is refused: what is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}: {advice}")]
pub struct SelectionError {
    /// The parameter at fault; `None` if it is the name of the algorithm, or the place where it is
    /// used.
    pub parameter: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}
