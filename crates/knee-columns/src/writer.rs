//! Writes a Parquet file.

use crate::encoding::Encodings;
use crate::{Cells, Kind};
use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, Type};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A Parquet file that is being written, one row group at a time. The same cells give the same
/// bytes: nothing of the host or the clock is stored.
pub struct Writer {
    file: SerializedFileWriter<File>,
    columns: Vec<ColumnDescPtr>,
    encodings: Encodings,
}

impl Writer {
    /// Begins a file of the columns `(name, kind)`, with `value` under the metadata key `key`.
    ///
    /// # Errors
    /// The error of the system when writing.
    pub fn create(
        file: File,
        (key, value): (&str, &str),
        columns: &[(&str, Kind)],
    ) -> io::Result<Writer> {
        let fields = columns.iter().map(|(name, kind)| kind.declare(name));
        let fields = fields.collect::<Result<_, _>>().map_err(io_error)?;
        let properties = WriterProperties::builder()
            .set_created_by("knee".to_string())
            .set_key_value_metadata(Some(vec![KeyValue::new(key.to_string(), value.to_string())]))
            .build();
        let schema = Type::group_type_builder("schema").with_fields(fields).build();
        let file = schema.and_then(|schema| {
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
        });
        let file = file.map_err(io_error)?;
        let columns = file.schema_descr().columns().to_vec();
        Ok(Writer { file, columns, encodings: Encodings::new() })
    }

    /// Returns the bytes of the row groups written.
    pub fn bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Adds a key and value to the metadata.
    pub fn note(&mut self, key: &str, value: String) {
        self.file.append_key_value_metadata(KeyValue::new(key.to_string(), value));
    }

    /// Writes a row group: the cells of each column, in the order of the columns.
    ///
    /// # Errors
    /// The error of the system when writing; [`io::ErrorKind::Other`] if cells are not of the kind
    /// of their column, or not as many as those of the others.
    pub fn write(&mut self, columns: &mut dyn Iterator<Item = &Cells>) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(io_error)?;
        for (cells, column) in columns.zip(&self.columns) {
            let (chunk, described) = encoded(cells, column, &self.encodings).map_err(io_error)?;
            group.append_column(&chunk, described).map_err(io_error)?;
        }
        group.close().map(|_| ()).map_err(io_error)
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The error of the system when writing.
    pub fn close(self) -> io::Result<()> {
        self.file.close().map(|_| ()).map_err(io_error)
    }
}

/// Encodes a column chunk, each in its own way, which a writer of the whole file could not do.
fn encoded(
    cells: &Cells,
    column: &ColumnDescPtr,
    encodings: &Encodings,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut chunk = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut chunk));
    let mut writer = get_column_writer(column.clone(), encodings.of(cells), pages);
    cells.write(&mut writer)?;
    let described = writer.close()?;
    Ok((chunk.into_inner()?.into(), described))
}

/// Reports a full disk as such, not as a corrupt file.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
