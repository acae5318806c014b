//! A table as a list of columns, written to and read from Parquet.
//!
//! The same rows give the same bytes: writer settings are fixed, nothing of
//! the host or the clock goes in.

use crate::Error;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringDictionaryBuilder};
use arrow::array::{BooleanArray, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
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

/// A column for readers alone: text that follows from the row and its context.
pub(crate) struct Derived<'a, R> {
    pub name: &'static str,
    pub get: &'a dyn Fn(&R) -> &'a str,
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
                let array = cast(column, &DataType::Utf8).map_err(|error| error.to_string())?;
                for (row, value) in rows.iter_mut().zip(array.as_string::<i32>()) {
                    set(row, value.unwrap_or(""))?;
                }
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

/// Writes `rows` as a Parquet file at `path`, over what is there.
pub(crate) fn write<R>(
    path: &Path,
    version: &Version,
    columns: &[Column<R>],
    derived: &[Derived<'_, R>],
    rows: &[R],
) -> Result<(), Error> {
    let fields = columns.iter().map(Column::field);
    let fields = fields.chain(derived.iter().map(|column| text_field(column.name)));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let file = File::create(path).map_err(|source| Error::io("create", path, source))?;
    let failed = |error: parquet::errors::ParquetError| write_error(path, error);
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties(version.name)))
        .map_err(failed)?;
    for chunk in rows.chunks(BATCH_ROWS) {
        let own = columns.iter().map(|column| column.array(chunk));
        let more =
            derived.iter().map(|column| text_array(chunk.iter().map(|row| (column.get)(row))));
        let batch = RecordBatch::try_new(schema.clone(), own.chain(more).collect())
            .map_err(|error| Error::malformed(path, error))?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

pub(crate) fn properties(schema_name: &str) -> WriterProperties {
    let named = KeyValue::new(SCHEMA_KEY.to_string(), schema_name.to_string());
    WriterProperties::builder()
        .set_created_by("knee".to_string())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![named]))
        .build()
}

/// A full disk must be told as what it is, not as damage.
pub(crate) fn write_error(path: &Path, error: parquet::errors::ParquetError) -> Error {
    let source = match error {
        parquet::errors::ParquetError::External(inner) => {
            match inner.downcast::<std::io::Error>() {
                Ok(io) => *io,
                Err(other) => std::io::Error::other(other),
            }
        }
        other => std::io::Error::other(other),
    };
    Error::io("write", path, source)
}

/// Reads a file that [`write`] wrote.
pub(crate) fn read<R: Default + Clone>(
    path: &Path,
    version: &Version,
    columns: &[Column<R>],
) -> Result<Vec<R>, Error> {
    let file = File::open(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::Missing { path: path.to_path_buf() },
        _ => Error::io("read", path, source),
    })?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| Error::malformed(path, error))?;
    let older = is_older(path, &builder, version)?;
    let reader = builder
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| Error::malformed(path, error))?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| Error::malformed(path, error))?;
        let start = rows.len();
        rows.resize(start + batch.num_rows(), R::default());
        for column in columns {
            column
                .read(&batch, &mut rows[start..], older)
                .map_err(|reason| Error::malformed(path, reason))?;
        }
    }
    Ok(rows)
}

/// Whether a file is of the version before; any other is refused.
fn is_older(
    path: &Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    version: &Version,
) -> Result<bool, Error> {
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let found = metadata
        .into_iter()
        .flatten()
        .find(|pair| pair.key == SCHEMA_KEY)
        .and_then(|pair| pair.value.clone())
        .unwrap_or_else(|| "none".to_string());
    if found == version.name || version.before == Some(found.as_str()) {
        return Ok(found != version.name);
    }
    Err(Error::Schema { path: path.to_path_buf(), found, expected: version.name })
}
