//! `sweep.parquet`: one row per run and group of flows, one column per varied setting and per
//! measure.

use super::{GroupMeasures, SweepKey, sweep_measures};
use crate::Error;
use crate::table::{TableColumns, read_columns, write_columns};
use knee_columns::{Cells, Kind};
use knee_units::{Bytes, Fraction, Rate, Time};
use std::path::Path;

/// Schema name of the table.
const SCHEMA: &str = "knee-sweep/1";

/// A row: a group of flows in a run.
#[derive(Clone, Copy, Debug)]
pub struct SweepRow<'r> {
    /// Short name of the run.
    pub run: &'r str,
    /// For each key, the index of its value.
    pub at: &'r [usize],
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// What was measured.
    pub group: &'r GroupMeasures,
}

/// Writes the table. The file appears whole or not at all, and the same rows give the same bytes.
///
/// The column of a key holds its values as typed. If all are quantities of one kind, another column
/// holds them as numbers (`link.a.rate_bps`).
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_sweep(path: &Path, keys: &[SweepKey], rows: &[SweepRow<'_>]) -> Result<(), Error> {
    write_columns(path, SCHEMA, &columns(keys, rows))
}

/// Returns the same columns in memory.
pub fn sweep_columns(keys: &[SweepKey], rows: &[SweepRow<'_>]) -> TableColumns {
    TableColumns::of(columns(keys, rows))
}

/// A run of a sweep and its point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepRunAt {
    /// Name of the run, also used for its file.
    pub run: String,
    /// For each key, the index of its value.
    pub at: Vec<usize>,
}

/// Reads the point of each run, in the order of the table.
///
/// # Errors
/// If the table is missing or damaged.
pub fn read_sweep_runs(path: &Path, keys: &[SweepKey]) -> Result<Vec<SweepRunAt>, Error> {
    let names = std::iter::once("run").chain(keys.iter().map(|key| key.name.as_str()));
    let columns = texts(path, &names.collect::<Vec<_>>())?;
    let Some((runs, settings)) = columns.split_first() else { return Ok(Vec::new()) };
    let mut all: Vec<SweepRunAt> = Vec::new();
    for (row, run) in runs.iter().enumerate() {
        let place = |(key, column): (&SweepKey, &Vec<String>)| {
            key.values.iter().position(|value| column.get(row) == Some(value))
        };
        let at: Option<Vec<usize>> = keys.iter().zip(settings).map(place).collect();
        let at =
            at.ok_or_else(|| Error::malformed(path, "a value does not belong to the sweep"))?;
        // A run has one row for each group of flows.
        let found = SweepRunAt { run: run.clone(), at };
        if all.last() != Some(&found) {
            all.push(found);
        }
    }
    Ok(all)
}

/// Reads whole text columns; a missing value is the empty string.
fn texts(path: &Path, names: &[&str]) -> Result<Vec<Vec<String>>, Error> {
    let wanted: Vec<(&str, Kind)> = names.iter().map(|name| (*name, Kind::Text)).collect();
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    read_columns(path, SCHEMA, &wanted, &[], |_, cells| {
        for (column, cells) in columns.iter_mut().zip(cells) {
            let Cells::Texts(values, present) = cells else { continue };
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            column.extend(values.each(present).map(|value| value.map_or_else(String::new, text)));
        }
    })?;
    Ok(columns)
}

fn columns(keys: &[SweepKey], rows: &[SweepRow<'_>]) -> Vec<(String, Kind, Cells)> {
    let text = |name: &str, get: &dyn Fn(&SweepRow<'_>) -> String| {
        let values: Vec<String> = rows.iter().map(get).collect();
        (name.to_string(), Kind::Text, Cells::texts(values.iter().map(String::as_str)))
    };
    let integer = |name: &str, get: fn(&SweepRow<'_>) -> u64| {
        let values = rows.iter().map(|row| i64::try_from(get(row)).unwrap_or(i64::MAX));
        let cells = Cells::Integers(values.collect(), None);
        (name.to_string(), Kind::Integer { nullable: false }, cells)
    };
    let float = |name: &str, get: &dyn Fn(&SweepRow<'_>) -> Option<f64>| {
        let cells = Cells::floats(rows.iter().map(get));
        (name.to_string(), Kind::Float { nullable: true }, cells)
    };
    let mut columns = vec![text("run", &|row| row.run.to_string())];
    for (number, key) in keys.iter().enumerate() {
        columns.push(text(&key.name, &|row| key.values[row.at[number]].clone()));
        if let Some((unit, values)) = quantities(&key.values) {
            columns
                .push(float(&format!("{}_{unit}", key.name), &|row| Some(values[row.at[number]])));
        }
    }
    columns.push(integer("repeat", |row| row.repeat));
    columns.push(integer("seed", |row| row.seed));
    columns.push(text("flow_group", &|row| row.group.group.clone()));
    for measure in sweep_measures() {
        columns.push(float(&measure.name, &|row| value(row.group, &measure.name)));
    }
    columns
}

/// Returns the value; infinity if the event that the measure waits for did not occur.
fn value(group: &GroupMeasures, name: &str) -> Option<f64> {
    let never = || group.never.iter().any(|never| never == name).then_some(f64::INFINITY);
    group.measures.get(name).copied().or_else(never)
}

/// Returns the values of a key as numbers, with the unit suffix of the column.
fn quantities(values: &[String]) -> Option<(&'static str, Vec<f64>)> {
    fn all(values: &[String], read: impl Fn(&str) -> Option<f64>) -> Option<Vec<f64>> {
        values.iter().map(|text| read(text)).collect()
    }
    let rate = |text: &str| Some(text.parse::<Rate>().ok()?.as_bits_per_second() as f64);
    let time = |text: &str| Some(text.parse::<Time>().ok()?.as_secs_f64());
    let bytes = |text: &str| Some(text.parse::<Bytes>().ok()?.get() as f64);
    let part = |text: &str| Some(text.parse::<Fraction>().ok()?.get());
    let plain = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    all(values, rate)
        .map(|values| ("bps", values))
        .or_else(|| all(values, time).map(|values| ("s", values)))
        .or_else(|| all(values, bytes).map(|values| ("bytes", values)))
        .or_else(|| all(values, part).map(|values| ("ratio", values)))
        .or_else(|| all(values, plain).map(|values| ("number", values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<(&'static str, Vec<f64>)> {
        quantities(&values.iter().map(|text| text.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_one_kind_are_numbers() {
        assert_eq!(read(&["500 kbit/s", "1 Mbit/s"]), Some(("bps", vec![5e5, 1e6])));
        assert_eq!(read(&["20 ms", "1 s"]), Some(("s", vec![0.02, 1.0])));
        assert_eq!(read(&["0.5 %"]), Some(("ratio", vec![0.005])));
        assert_eq!(read(&["64 kB"]), Some(("bytes", vec![64e3])));
        assert_eq!(read(&["1", "2.5"]), Some(("number", vec![1.0, 2.5])));
        assert_eq!(read(&["cubic", "bbr"]), None);
        assert_eq!(read(&["2 BDP", "64 kB"]), None);
    }
}
