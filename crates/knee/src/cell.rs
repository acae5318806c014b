//! Cells of tables: what a person reads, and the numbers behind it in full.

use crate::repeats::with_interval;
use knee_lab::words::{NONE, named, time_us};
use knee_record::{Interval, Unit};
use knee_units::printable;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What a person reads.
    pub shown: String,
    /// The numbers that it is made of, as records hold them; none: it is a text.
    pub numbers: Vec<Number>,
}

/// A number behind a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Which of several: `low`, `high`; empty for the first.
    pub part: &'static str,
    /// How names of columns end for its unit: `bps`, `us`; can be empty.
    pub unit: &'static str,
    /// As in JSON documents.
    pub value: f64,
}

impl Cell {
    /// A number of a record; none is shown as a dash.
    pub fn figure(unit: Unit, value: Option<f64>) -> Cell {
        let shown = value.map_or_else(|| NONE.to_string(), |value| unit.show(value));
        Cell { shown, numbers: numbers(suffix(unit), &[("", value)]) }
    }

    /// A time that the record holds in microseconds.
    pub fn us(value: Option<f64>) -> Cell {
        Cell { shown: time_us(value), numbers: numbers("us", &[("", value)]) }
    }

    /// A number of a summary, by its name, which says the unit.
    pub fn named(name: &str, value: f64) -> Cell {
        Cell { shown: named(name, value), numbers: numbers("", &[("", Some(value))]) }
    }

    /// A number beside other words than its own.
    pub fn shown(shown: String, value: f64) -> Cell {
        Cell { shown, numbers: numbers("", &[("", Some(value))]) }
    }

    /// A count.
    pub fn count(value: impl Into<u64>) -> Cell {
        let value: u64 = value.into();
        Cell { shown: value.to_string(), numbers: numbers("", &[("", Some(value as f64))]) }
    }

    /// A mean with its interval.
    pub fn interval(unit: Unit, interval: &Interval) -> Cell {
        let Interval { mean, low, high, .. } = *interval;
        Cell {
            shown: with_interval(|value| unit.show(value), interval),
            numbers: numbers(suffix(unit), &[("", Some(mean)), ("low", low), ("high", high)]),
        }
    }

    /// The same numbers under other words.
    pub fn reading(self, shown: String) -> Cell {
        Cell { shown, ..self }
    }

    /// The same with one more number, which has no unit.
    pub fn with(mut self, part: &'static str, value: f64) -> Cell {
        self.numbers.push(Number { part, unit: "", value });
        self
    }
}

fn numbers(unit: &'static str, all: &[(&'static str, Option<f64>)]) -> Vec<Number> {
    let there = all.iter().filter_map(|(part, value)| Some((*part, (*value)?)));
    there.map(|(part, value)| Number { part, unit, value }).collect()
}

fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "bps",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
        Unit::Fraction | Unit::Number | Unit::Ratio => "",
    }
}

/// A name may hold what would change the table.
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
