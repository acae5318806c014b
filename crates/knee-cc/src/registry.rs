//! Controllers by name.

use std::collections::BTreeMap;

/// A controller or preset by name, with parameters that differ from its
/// defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Name of a controller or of a preset.
    pub name: String,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Value>,
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
