//! Writes a Parquet file.

use crate::{Cells, Kind};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Maximum size of a column's dictionary. Integers that do not fit are written as differences.
const DICTIONARY_BYTES_MAX: usize = 16 << 10;

/// A Parquet file that is being written, one row group at a time. The same cells give the same
/// bytes: the settings are fixed, and nothing of the host or the clock is stored.
pub struct Writer {
    file: SerializedFileWriter<File>,
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
        let fields = fields.collect::<Result<_, _>>().map_err(told)?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build();
        let mut properties = WriterProperties::builder()
            .set_created_by("knee".to_string())
            .set_compression(Compression::SNAPPY)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(vec![KeyValue::new(key.to_string(), value.to_string())]));
        for (name, kind) in columns {
            if matches!(kind, Kind::Integer { .. }) {
                let column = ColumnPath::new(vec![name.to_string()]);
                properties = properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let properties = properties.build();
        schema
            .and_then(|schema| {
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            })
            .map(|file| Writer { file })
            .map_err(told)
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
        let mut group = self.file.next_row_group().map_err(told)?;
        for cells in columns {
            let Some(mut column) = group.next_column().map_err(told)? else { break };
            cells.write(column.untyped()).and_then(|()| column.close()).map_err(told)?;
        }
        group.close().map(|_| ()).map_err(told)
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The error of the system when writing.
    pub fn close(self) -> io::Result<()> {
        self.file.close().map(|_| ()).map_err(told)
    }
}

/// Reports a full disk as such, not as a corrupt file.
fn told(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
