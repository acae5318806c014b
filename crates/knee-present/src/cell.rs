//! Cells of a table: the text shown and the numbers behind it, in full precision.

use crate::words::{NONE, count, time_us, value, with_interval};
use knee_record::{Interval, Unit};
use knee_units::printable;
use serde::{Serialize, Serializer};

/// A cell. Serialised as the text shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Text shown.
    pub shown: String,
    /// The numbers behind the text, as in the records; empty for plain text.
    pub numbers: Vec<Number>,
}

/// A number behind a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Role among several numbers: `low`, `high`; empty for the first.
    pub part: &'static str,
    /// Unit suffix of column names: `bps`, `us`; may be empty.
    pub unit: &'static str,
    /// Value as in JSON documents.
    pub value: f64,
}

impl Cell {
    /// A number of a record; `None` is shown as a dash.
    pub fn figure(unit: Unit, number: Option<f64>) -> Cell {
        Cell { shown: value(unit, number), numbers: numbers(suffix(unit), &[("", number)]) }
    }

    /// A time in microseconds.
    pub fn us(value: Option<f64>) -> Cell {
        Cell { shown: time_us(value), numbers: numbers("us", &[("", value)]) }
    }

    /// A number with custom text.
    pub fn shown(shown: String, value: f64) -> Cell {
        Cell { shown, numbers: numbers("", &[("", Some(value))]) }
    }

    /// A number in full, without a unit; empty for `None`.
    pub fn plain(value: Option<f64>) -> Cell {
        value.map_or_else(Cell::default, |value| Cell::shown(value.to_string(), value))
    }

    /// A count.
    pub fn count(value: impl Into<u64>) -> Cell {
        let value: u64 = value.into();
        Cell { shown: count(value), numbers: numbers("", &[("", Some(value as f64))]) }
    }

    /// A mean with its confidence interval.
    pub fn interval(unit: Unit, interval: &Interval) -> Cell {
        let Interval { mean, low, high, .. } = *interval;
        Cell {
            shown: with_interval(|value| unit.show(value), interval),
            numbers: numbers(suffix(unit), &[("", Some(mean)), ("low", low), ("high", high)]),
        }
    }

    /// Adds the bounds of its number, in the same unit, shown by `show` behind it.
    pub fn between(mut self, [low, high]: [f64; 2], show: impl Fn(f64) -> String) -> Cell {
        let unit = self.numbers.first().map_or("", |number| number.unit);
        self.numbers.extend(numbers(unit, &[("low", Some(low)), ("high", Some(high))]));
        self.shown = format!("{} ({} to {})", self.shown, show(low), show(high));
        self
    }

    /// Replaces the text shown.
    pub fn reading(self, shown: String) -> Cell {
        Cell { shown, ..self }
    }

    /// Adds a number without a unit.
    pub fn with(mut self, part: &'static str, value: f64) -> Cell {
        self.numbers.push(Number { part, unit: "", value });
        self
    }

    /// Whether it says that there is no value.
    pub fn is_none(&self) -> bool {
        self.shown == NONE
    }
}

fn numbers(unit: &'static str, all: &[(&'static str, Option<f64>)]) -> Vec<Number> {
    let there = all.iter().filter_map(|(part, value)| Some((*part, (*value)?)));
    there.map(|(part, value)| Number { part, unit, value }).collect()
}

/// Suffix of the names of columns.
pub(crate) fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "bps",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
        Unit::Fraction | Unit::Number | Unit::Ratio => "",
    }
}

/// Escapes characters of a name that would break the table.
impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { shown: printable(&text, |c| c == '\n').into_owned(), numbers: Vec::new() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_string())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::from(text.clone())
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}
