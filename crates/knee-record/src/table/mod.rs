//! A table as a list of columns, written to and read from Parquet.
//!
//! The same rows give the same bytes: the writer settings are fixed, and nothing of the host or the
//! clock is stored.

mod columns;
mod read;
mod write;

pub use columns::{DeclaredColumn, InMemory, RunTables, TableColumns, ValueKind, Values};
pub(crate) use read::{decoding, metadata, read, read_batches, read_each, read_series};
pub use read::{is_decoding, read_columns};
pub(crate) use write::write_columns;
pub use write::{ColumnFile, write_columns_durably};
pub(crate) use write::{Table, write};

use crate::tables::Names;
use knee_columns::{Cells, Kind, each};

/// Rows of a row group, which is kept in memory until it is complete. Reading proceeds in batches
/// of as many rows.
pub(crate) const GROUP_ROWS: usize = 64 * 1024;
/// Key under which a file names its schema.
const SCHEMA_KEY: &str = "knee.schema";
/// Key under which a file of connections names its ground.
pub(crate) const GROUND_KEY: &str = "knee.ground";
/// Key under which a file of connections gives its epoch, nanoseconds since 1970 (UTC); zero for
/// virtual time.
pub(crate) const EPOCH_KEY: &str = "knee.epoch_unix_ns";

/// The schema versions of a file.
pub(crate) struct Version {
    /// Version that is written.
    pub name: &'static str,
    /// Previous version, which is read too: it lacks the columns added since.
    pub before: Option<&'static str>,
}

/// A column of table rows `R`.
pub(crate) enum Column<R> {
    /// 64-bit signed integer; larger values are written as the largest.
    Integer {
        name: &'static str,
        nullable: bool,
        /// Appends the values of rows, and for a column that may be null which rows have one.
        append: fn(&[R], &mut Vec<i64>, &mut Option<Vec<i16>>),
        /// Returns false if the value does not fit.
        set: fn(&mut R, Option<u64>) -> bool,
    },
    /// 64-bit float.
    Float { name: &'static str, get: fn(&R) -> f64, set: fn(&mut R, f64) },
    /// Text; the empty string is null.
    Text { name: &'static str, get: fn(&R) -> &str, set: fn(&mut R, &str) -> Result<(), String> },
    /// 64-bit float that may be null.
    OptionalFloat { name: &'static str, get: fn(&R) -> Option<f64>, set: fn(&mut R, Option<f64>) },
    /// True, false or null.
    OptionalFlag { name: &'static str, get: fn(&R) -> Option<bool>, set: fn(&mut R, Option<bool>) },
    /// True or false.
    Flag { name: &'static str, get: fn(&R) -> bool, set: fn(&mut R, bool) },
    /// A column that files of the previous version lack; their rows keep the default.
    Added(Box<Column<R>>),
}

/// A column for other readers: the name of what the row refers to by number.
pub(crate) struct Derived<R> {
    pub name: &'static str,
    pub get: for<'n> fn(&'n Names, &R) -> &'n str,
}

/// All columns of a table.
pub(crate) struct Layout<R> {
    pub version: Version,
    pub columns: Vec<Column<R>>,
    pub derived: Vec<Derived<R>>,
    /// Rows of a row group.
    pub group_rows: usize,
}

impl<R> Layout<R> {
    pub(crate) fn new(
        version: Version,
        columns: Vec<Column<R>>,
        derived: Vec<Derived<R>>,
    ) -> Layout<R> {
        Layout { version, columns, derived, group_rows: GROUP_ROWS }
    }
}

impl<R> Layout<R> {
    /// Returns the cells of all columns, without rows.
    fn no_cells(&self) -> Vec<Cells> {
        let own = self.columns.iter().map(|column| Cells::none(column.kind()));
        own.chain(self.derived.iter().map(|_| Cells::none(Kind::Text))).collect()
    }

    /// Adds the cells of rows to those of the rows before, column by column.
    fn add(&self, names: &Names, rows: &[R], cells: &mut [Cells]) {
        let (own, derived) = cells.split_at_mut(self.columns.len());
        self.columns.iter().zip(own).for_each(|(column, cells)| column.add(rows, cells));
        for (column, cells) in self.derived.iter().zip(derived) {
            rows.iter().for_each(|row| cells.add_text((column.get)(names, row)));
        }
    }
}

impl<R> Column<R> {
    /// Marks the column as one that an older file may lack.
    pub(crate) fn added(self) -> Column<R> {
        Column::Added(Box::new(self))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Column::Integer { name, .. }
            | Column::Float { name, .. }
            | Column::Text { name, .. }
            | Column::OptionalFloat { name, .. }
            | Column::OptionalFlag { name, .. }
            | Column::Flag { name, .. } => name,
            Column::Added(column) => column.name(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Column::Integer { nullable, .. } => Kind::Integer { nullable: *nullable },
            Column::Float { .. } => Kind::Float { nullable: false },
            Column::Text { .. } => Kind::Text,
            Column::Flag { .. } => Kind::Flag { nullable: false },
            Column::OptionalFloat { .. } => Kind::Float { nullable: true },
            Column::OptionalFlag { .. } => Kind::Flag { nullable: true },
            Column::Added(column) => column.kind(),
        }
    }

    /// Adds the cells of rows to those of the rows before.
    fn add(&self, rows: &[R], cells: &mut Cells) {
        match (self, cells) {
            (Column::Added(column), cells) => column.add(rows, cells),
            (Column::Integer { append, .. }, Cells::Integers(values, present)) => {
                append(rows, values, present);
            }
            (Column::Text { get, .. }, cells) => {
                rows.iter().for_each(|row| cells.add_text(get(row)))
            }
            (Column::Float { get, .. }, Cells::Floats(values, _)) => {
                values.extend(rows.iter().map(get));
            }
            (Column::Flag { get, .. }, Cells::Flags(values, _)) => {
                values.extend(rows.iter().map(get));
            }
            (Column::OptionalFloat { get, .. }, Cells::Floats(values, present)) => {
                add_optional(rows, get, values, present);
            }
            (Column::OptionalFlag { get, .. }, Cells::Flags(values, present)) => {
                add_optional(rows, get, values, present);
            }
            _ => {}
        }
    }

    /// Stores `cells`, one per row, in the fields of the rows.
    fn fill(&self, cells: &Cells, rows: &mut [R]) -> Result<(), String> {
        let name = self.name();
        match (self, cells) {
            (Column::Added(column), _) => column.fill(cells, rows)?,
            (Column::OptionalFlag { set, .. }, Cells::Flags(values, present)) => {
                let values = each(values, present);
                rows.iter_mut().zip(values).for_each(|(row, value)| set(row, value.copied()));
            }
            (Column::OptionalFloat { set, .. }, Cells::Floats(values, present)) => {
                let values = each(values, present);
                rows.iter_mut().zip(values).for_each(|(row, value)| set(row, value.copied()));
            }
            (Column::Flag { set, .. }, Cells::Flags(values, _)) => {
                rows.iter_mut().zip(values).for_each(|(row, value)| set(row, *value));
            }
            (Column::Integer { set, .. }, Cells::Integers(values, present)) => {
                for (row, value) in rows.iter_mut().zip(each(values, present)) {
                    let value = value.map(|value| to_unsigned(*value, name)).transpose()?;
                    if !set(row, value) {
                        return Err(format!("column {name} has a value that is too large"));
                    }
                }
            }
            (Column::Float { set, .. }, Cells::Floats(values, _)) => {
                rows.iter_mut().zip(values).for_each(|(row, value)| set(row, *value));
            }
            (Column::Text { set, .. }, Cells::Texts(values, present)) => {
                for (row, value) in rows.iter_mut().zip(values.each(present)) {
                    let text = value.map_or(Ok(""), str::from_utf8);
                    set(row, text.map_err(|_| format!("column {name} is not UTF-8"))?)?;
                }
            }
            _ => return Err(format!("column {name} is of another type")),
        }
        Ok(())
    }
}

/// Adds an integer of each row; larger ones are added as the largest.
pub(crate) fn add_integers<R>(rows: &[R], values: &mut Vec<i64>, get: impl Fn(&R) -> u64) {
    // Counted by hand, here and below, in slices of known length: this crate shares iterators over
    // integers with dependencies, which are not optimised.
    let added = &mut knee_columns::more(values, rows.len())[..rows.len()];
    let mut at = 0;
    while at < rows.len() {
        added[at] = to_signed(get(&rows[at]));
        at += 1;
    }
}

/// Adds the integer of each row that has one: zero means that there is no value.
pub(crate) fn add_positive<R>(
    rows: &[R],
    get: impl Fn(&R) -> u64,
    values: &mut Vec<i64>,
    present: &mut Option<Vec<i16>>,
) {
    let Some(present) = present else { return };
    let before = values.len();
    let added = &mut knee_columns::more(values, rows.len())[..rows.len()];
    let marks = &mut knee_columns::more_marks(present, rows.len())[..rows.len()];
    let (mut at, mut count) = (0, 0);
    while at < rows.len() {
        let value = get(&rows[at]);
        added[count] = to_signed(value);
        marks[at] = (value > 0) as i16;
        count += (value > 0) as usize;
        at += 1;
    }
    values.truncate(before + count);
}

/// Adds the value of each row that has one.
pub(crate) fn add_optional<R, T>(
    rows: &[R],
    get: impl Fn(&R) -> Option<T>,
    values: &mut Vec<T>,
    present: &mut Option<Vec<i16>>,
) {
    let Some(present) = present else { return };
    for row in rows {
        let value = get(row);
        present.push(i16::from(value.is_some()));
        if let Some(value) = value {
            values.push(value);
        }
    }
}

pub(crate) fn to_signed(value: u64) -> i64 {
    const MOST: u64 = i64::MAX as u64;
    if value > MOST { i64::MAX } else { value as i64 }
}

fn to_unsigned(value: i64, name: &str) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("column {name} has the negative value {value}"))
}
