//! Reads a Parquet file, which may be damaged: the decoder reports most damage, but panics on some.

use crate::{Cells, Kind};
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;

/// A Parquet file that is being read. Errors are described in words.
pub struct Reader {
    file: SerializedFileReader<File>,
}

/// A row group that is being read.
pub struct Group {
    /// Number of rows.
    pub rows: usize,
    columns: Vec<(ColumnReader, ColumnDescPtr)>,
}

impl Reader {
    /// Reads the file's metadata.
    ///
    /// # Errors
    /// If it is not a Parquet file.
    pub fn open(file: File) -> Result<Reader, String> {
        let file = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        Ok(Reader { file })
    }

    /// Returns the value of a metadata key.
    pub fn note(&self, key: &str) -> Option<&str> {
        let metadata = self.file.metadata().file_metadata();
        let mut pairs = metadata.key_value_metadata().into_iter().flatten();
        pairs.find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref())
    }

    /// Returns whether there is a column `name`.
    pub fn has(&self, name: &str) -> bool {
        let metadata = self.file.metadata().file_metadata();
        metadata.schema_descr().columns().iter().any(|found| found.path().parts() == [name])
    }

    /// Returns the index of the column `name`, which must be of `kind`.
    ///
    /// # Errors
    /// If there is none, or it is of another kind.
    pub fn find(&self, name: &str, kind: Kind) -> Result<usize, String> {
        let metadata = self.file.metadata().file_metadata();
        let columns = metadata.schema_descr().columns();
        let at = columns.iter().position(|found| found.path().parts() == [name]);
        let at = at.ok_or_else(|| format!("column {name} is missing"))?;
        kind.check(&columns[at])?;
        Ok(at)
    }

    /// Returns the names of all columns.
    pub fn names(&self) -> Vec<String> {
        let columns = self.file.metadata().file_metadata().schema_descr().columns();
        columns.iter().map(|column| column.path().string()).collect()
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Returns the row group `number`, for reading the columns at `places`.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn group(&self, number: usize, places: &[usize]) -> Result<Group, String> {
        let group = self.file.get_row_group(number).map_err(|error| error.to_string())?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let column = |at: &usize| {
            let reader = group.get_column_reader(*at).map_err(|error| error.to_string())?;
            Ok((reader, schema.column(*at)))
        };
        let columns = places.iter().map(column).collect::<Result<_, String>>()?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| "a row group has a negative number of rows".to_string())?;
        Ok(Group { rows, columns })
    }
}

impl Group {
    /// Returns the next `rows` cells of a column, given by its index in the `places` of
    /// [`Reader::group`].
    ///
    /// # Errors
    /// If the file is damaged, or the column ends before the others.
    pub fn next(&mut self, column: usize, rows: usize) -> Result<Cells, String> {
        let (reader, described) = &mut self.columns[column];
        Cells::read(reader, described, rows)
    }
}
