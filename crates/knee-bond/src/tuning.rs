//! Controllers and schedulers in a configuration.

use knee_cc::{Selection, Value};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::BTreeMap;

/// A controller or scheduler: its name, or a table with its name and parameters.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write a name, or a table with name and parameters")]
enum Written {
    Name(String),
    Table {
        name: String,
        #[serde(flatten)]
        parameters: BTreeMap<String, Setting>,
    },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write true or false, a number, a text or a list of numbers")]
enum Setting {
    Switch(bool),
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
}

impl From<Written> for Selection {
    fn from(written: Written) -> Selection {
        let (name, parameters) = match written {
            Written::Name(name) => return Selection::named(name),
            Written::Table { name, parameters } => (name, parameters),
        };
        parameters.into_iter().fold(Selection::named(name), |selection, (parameter, setting)| {
            let value = match setting {
                Setting::Switch(on) => Value::Switch(on),
                Setting::Number(number) => Value::Number(number),
                Setting::Text(text) => Value::Text(text),
                Setting::Numbers(list) => Value::Numbers(list),
            };
            selection.with(parameter, value)
        })
    }
}

/// Reads the controller of each link.
///
/// # Errors
/// It is unknown, or does not work over QUIC.
pub fn controller<'de, D: Deserializer<'de>>(from: D) -> Result<Selection, D::Error> {
    let selection = Selection::from(Written::deserialize(from)?);
    knee_quic::check_controller(&selection).map_err(D::Error::custom)?;
    Ok(selection)
}

/// Reads the scheduler.
///
/// # Errors
/// It is unknown.
pub fn scheduler<'de, D: Deserializer<'de>>(from: D) -> Result<Selection, D::Error> {
    let selection = Selection::from(Written::deserialize(from)?);
    knee_multipath::sched::build(&selection).map_err(D::Error::custom)?;
    Ok(selection)
}
