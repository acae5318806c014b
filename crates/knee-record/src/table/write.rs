//! Rows to Parquet, as they come.

use super::{BATCH_ROWS, Column, Layout, SCHEMA_KEY, text_array, text_field};
use crate::Error;
use crate::part::Part;
use crate::tables::Names;
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: they wait in memory, as compressed columns, until the
/// group is whole.
const GROUP_ROWS: usize = 2 * BATCH_ROWS;

/// Writes `rows` as the Parquet file `path`.
pub(crate) fn write<R: Clone>(
    path: &Path,
    layout: Layout<R>,
    names: &Names,
    rows: &[R],
) -> Result<(), Error> {
    let mut table = Table::create(path, layout)?;
    for row in rows {
        table.push(names, row.clone())?;
    }
    table.finish(names)
}

/// A Parquet file that is being written, row by row. It appears whole, at the
/// end; what is dropped before leaves nothing.
pub(crate) struct Table<R> {
    part: Part,
    writer: Option<ArrowWriter<File>>,
    schema: Arc<Schema>,
    layout: Layout<R>,
    /// Rows not yet turned into columns.
    rows: Vec<R>,
}

impl<R> Table<R> {
    /// Begins the file `path`.
    pub(crate) fn create(path: &Path, layout: Layout<R>) -> Result<Table<R>, Error> {
        let fields = layout.columns.iter().map(Column::field);
        let fields = fields.chain(layout.derived.iter().map(|column| text_field(column.name)));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (part, file) = Part::create(path)?;
        let properties = properties(layout.version.name);
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
            .map_err(|error| write_error(path, error))?;
        Ok(Table { part, writer: Some(writer), schema, layout, rows: Vec::new() })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, names: &Names, row: R) -> Result<(), Error> {
        self.rows.push(row);
        if self.rows.len() == BATCH_ROWS { self.write_rows(names) } else { Ok(()) }
    }

    /// Writes what is left and puts the file in its place.
    pub(crate) fn finish(mut self, names: &Names) -> Result<(), Error> {
        self.write_rows(names)?;
        if let Some(writer) = self.writer.take() {
            writer.close().map_err(|error| write_error(&self.part.path, error))?;
        }
        self.part.put_in_place()
    }

    fn write_rows(&mut self, names: &Names) -> Result<(), Error> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.rows.is_empty()) else {
            return Ok(());
        };
        let rows = &self.rows;
        let own = self.layout.columns.iter().map(|column| column.array(rows));
        let derived = self.layout.derived.iter();
        let derived =
            derived.map(|column| text_array(rows.iter().map(|row| (column.get)(names, row))));
        let batch = RecordBatch::try_new(self.schema.clone(), own.chain(derived).collect())
            .map_err(|error| Error::malformed(&self.part.path, error))?;
        self.rows.clear();
        writer.write(&batch).map_err(|error| write_error(&self.part.path, error))
    }
}

pub(crate) fn properties(schema_name: &str) -> WriterProperties {
    let named = KeyValue::new(SCHEMA_KEY.to_string(), schema_name.to_string());
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by("knee".to_string())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![named]))
        .build()
}

/// Reports a full disk as such, not as damage.
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
