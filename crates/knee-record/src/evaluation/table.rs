//! `evaluation.parquet`: a row per run and line.

use super::{EvaluationLine, EvaluationPlan, EvaluationRow, SCHEMA};
use crate::Error;
use crate::table::write_columns;
use knee_columns::{Cells, Kind};
use std::path::Path;

/// Writes the table. The file appears whole or not at all, and the same runs give the same bytes.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_evaluation(
    path: &Path,
    plan: &EvaluationPlan,
    lines: &[EvaluationLine],
    rows: &[EvaluationRow],
) -> Result<(), Error> {
    let text = |name: &str, get: &dyn for<'r> Fn(&'r EvaluationRow) -> &'r str| {
        (name.to_string(), Kind::Text, Cells::texts(rows.iter().map(get)))
    };
    let integer = |name: &str, get: fn(&EvaluationRow) -> u64| {
        let values = rows.iter().map(|row| i64::try_from(get(row)).unwrap_or(i64::MAX));
        let cells = Cells::Integers(values.collect(), None);
        (name.to_string(), Kind::Integer { nullable: false }, cells)
    };
    let controllers: Vec<&str> =
        std::iter::once(&plan.candidate).chain(&plan.standards).map(String::as_str).collect();
    let of_line = |get: fn(&EvaluationLine) -> &str| {
        Cells::texts(rows.iter().map(|row| get(&lines[row.line])))
    };
    let cases = rows.iter().map(|row| lines[row.line].cases[row.case].as_str());
    let names = rows.iter().map(|row| controllers[row.controller]);
    let values = Cells::floats(rows.iter().map(|row| row.value.as_ref().ok().copied()));
    let columns = [
        ("section".to_string(), Kind::Text, of_line(|line| &line.section)),
        ("line".to_string(), Kind::Text, of_line(|line| &line.claim)),
        ("case".to_string(), Kind::Text, Cells::texts(cases)),
        ("controller".to_string(), Kind::Text, Cells::texts(names)),
        integer("repeat", |row| row.repeat),
        integer("seed", |row| row.seed),
        ("value".to_string(), Kind::Float { nullable: true }, values),
        text("why", &|row| row.value.as_ref().err().map_or("", String::as_str)),
    ];
    write_columns(path, SCHEMA, &columns)
}
