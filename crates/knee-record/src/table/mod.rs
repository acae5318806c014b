//! A table as a list of columns, written to and read from Parquet.
//!
//! The same rows give the same bytes: writer settings are fixed, nothing of
//! the host or the clock goes in.

mod read;
mod write;

pub use read::is_decoding;
pub(crate) use read::{read, read_series};
pub(crate) use write::{Table, properties, write, write_error};

use crate::tables::Names;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// Rows turned into columns at a time.
const BATCH_ROWS: usize = 64 * 1024;
/// Key under which a file names its schema.
const SCHEMA_KEY: &str = "knee.schema";

/// The schema of a file.
pub(crate) struct Version {
    /// What is written.
    pub name: &'static str,
    /// What is read too: the same without the columns that were added.
    pub before: Option<&'static str>,
}

/// A column of table rows `R`.
pub(crate) enum Column<R> {
    /// 64-bit signed integer; larger values are written as the largest.
    Integer {
        name: &'static str,
        nullable: bool,
        get: fn(&R) -> Option<u64>,
        /// False: the value does not fit.
        set: fn(&mut R, Option<u64>) -> bool,
    },
    /// 64-bit float.
    Float { name: &'static str, get: fn(&R) -> f64, set: fn(&mut R, f64) },
    /// Dictionary of strings; the empty string is null.
    Text { name: &'static str, get: fn(&R) -> &str, set: fn(&mut R, &str) -> Result<(), String> },
    /// True or false.
    Flag { name: &'static str, get: fn(&R) -> bool, set: fn(&mut R, bool) },
    /// One that files of the version before do not have; their rows keep the
    /// default.
    Added(Box<Column<R>>),
}

/// A column for readers alone: the name of what the row refers to by number.
pub(crate) struct Derived<R> {
    pub name: &'static str,
    pub get: for<'n> fn(&'n Names, &R) -> &'n str,
}

/// All columns of a table.
pub(crate) struct Layout<R> {
    pub version: Version,
    pub columns: Vec<Column<R>>,
    pub derived: Vec<Derived<R>>,
}

impl<R> Column<R> {
    /// The same column, as one that an older file may lack.
    pub(crate) fn added(self) -> Column<R> {
        Column::Added(Box::new(self))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Column::Integer { name, .. }
            | Column::Float { name, .. }
            | Column::Text { name, .. }
            | Column::Flag { name, .. } => name,
            Column::Added(column) => column.name(),
        }
    }

    fn field(&self) -> Field {
        match self {
            Column::Integer { name, nullable, .. } => Field::new(*name, DataType::Int64, *nullable),
            Column::Float { name, .. } => Field::new(*name, DataType::Float64, false),
            Column::Text { name, .. } => text_field(name),
            Column::Flag { name, .. } => Field::new(*name, DataType::Boolean, false),
            Column::Added(column) => column.field(),
        }
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match self {
            Column::Integer { get, .. } => {
                Arc::new(Int64Array::from_iter(rows.iter().map(|row| get(row).map(to_signed))))
            }
            Column::Float { get, .. } => {
                Arc::new(Float64Array::from_iter_values(rows.iter().map(get)))
            }
            Column::Text { get, .. } => text_array(rows.iter().map(get)),
            Column::Flag { get, .. } => {
                Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(get(row)))))
            }
            Column::Added(column) => column.array(rows),
        }
    }

    /// `older`: the file is of the version before.
    fn read(&self, batch: &RecordBatch, rows: &mut [R], older: bool) -> Result<(), String> {
        let name = self.name();
        if older && matches!(self, Column::Added(_)) {
            return Ok(());
        }
        let column =
            batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"))?;
        match self {
            Column::Added(column) => column.read(batch, rows, older)?,
            Column::Flag { set, .. } => {
                let array = typed(column, &DataType::Boolean, name)?;
                for (row, value) in rows.iter_mut().zip(array.as_boolean()) {
                    set(row, value.ok_or_else(|| format!("column {name} has a gap"))?);
                }
            }
            Column::Integer { nullable, set, .. } => {
                let array = typed(column, &DataType::Int64, name)?;
                let array = array.as_primitive::<Int64Type>();
                if !nullable && array.null_count() > 0 {
                    return Err(format!("column {name} has no value in some row"));
                }
                for (row, value) in rows.iter_mut().zip(array) {
                    let value = value.map(|value| to_unsigned(value, name)).transpose()?;
                    if !set(row, value) {
                        return Err(format!("column {name} has a value that is too large"));
                    }
                }
            }
            Column::Float { set, .. } => {
                let array = typed(column, &DataType::Float64, name)?;
                for (row, value) in rows.iter_mut().zip(array.as_primitive::<Float64Type>()) {
                    set(row, value.ok_or_else(|| format!("column {name} has a gap"))?);
                }
            }
            Column::Text { set, .. } => {
                each_text(column, name, |number, value| set(&mut rows[number], value))?;
            }
        }
        Ok(())
    }
}

fn to_signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn to_unsigned(value: i64, name: &str) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("column {name} has the negative value {value}"))
}

fn typed<'a>(column: &'a ArrayRef, wanted: &DataType, name: &str) -> Result<&'a ArrayRef, String> {
    if column.data_type() == wanted {
        return Ok(column);
    }
    let found = column.data_type();
    Err(format!("column {name} is {found}, not {wanted}"))
}

/// Calls `set` with each row's number and text, the empty one where it is null.
/// Other tools write a column anew as plain strings, long ones or views.
fn each_text(
    column: &ArrayRef,
    name: &str,
    mut set: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<(), String> {
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        let texts = texts(column, name)?;
        return texts.iter().enumerate().try_for_each(|(row, text)| set(row, text));
    };
    let texts = texts(dictionary.values(), name)?;
    if texts.is_empty() {
        return (0..column.len()).try_for_each(|row| set(row, ""));
    }
    // A row without a value has a key all the same.
    let keys = dictionary.normalized_keys();
    keys.into_iter().enumerate().try_for_each(|(row, key)| match dictionary.is_null(row) {
        true => set(row, ""),
        false => set(row, texts.get(key).ok_or_else(|| format!("column {name} is damaged"))?),
    })
}

/// The texts of a column of strings, the empty one where it is null.
fn texts<'a>(column: &'a dyn Array, name: &str) -> Result<Vec<&'a str>, String> {
    if let Some(array) = column.as_string_opt::<i32>() {
        Ok(array.iter().map(Option::unwrap_or_default).collect())
    } else if let Some(array) = column.as_string_opt::<i64>() {
        Ok(array.iter().map(Option::unwrap_or_default).collect())
    } else if let Some(array) = column.as_string_view_opt() {
        Ok(array.iter().map(Option::unwrap_or_default).collect())
    } else {
        Err(format!("column {name} is {}, not text", column.data_type()))
    }
}

pub(crate) fn text_field(name: &str) -> Field {
    let keys = Box::new(DataType::Int32);
    Field::new(name, DataType::Dictionary(keys, Box::new(DataType::Utf8)), true)
}

pub(crate) fn text_array<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for value in values {
        builder.append_option(Some(value).filter(|value| !value.is_empty()));
    }
    Arc::new(builder.finish())
}
