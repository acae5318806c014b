//! Writes rows to Parquet as they arrive.

use super::{EPOCH_KEY, Layout, SCHEMA_KEY};
use crate::Error;
use crate::part::Part;
use crate::tables::Names;
use knee_columns::{Cells, Kind, Writer};
use std::path::Path;
use std::slice;

/// Writes `rows` as the Parquet file `path`.
pub(crate) fn write<R: Clone>(
    path: &Path,
    layout: Layout<R>,
    names: &Names,
    rows: &[R],
) -> Result<(), Error> {
    let mut table = Table::create(path, layout)?;
    for row in rows {
        table.push(names, row)?;
    }
    table.finish(names)
}

/// Writes columns that hold all rows as the Parquet file `path`, with the schema name under
/// `knee.schema`. The file appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] with the path.
pub(crate) fn write_columns(
    path: &Path,
    schema_name: &str,
    columns: &[(String, Kind, Cells)],
) -> Result<(), Error> {
    part_of_columns(path, schema_name, columns)?.put_in_place()
}

/// As `write_columns`, after which the file survives a loss of power.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_columns_durably(
    path: &Path,
    schema_name: &str,
    columns: &[(String, Kind, Cells)],
) -> Result<(), Error> {
    part_of_columns(path, schema_name, columns)?.put_in_place_durably()
}

fn part_of_columns(
    path: &Path,
    schema_name: &str,
    columns: &[(String, Kind, Cells)],
) -> Result<Part, Error> {
    let (part, file) = Part::create(path)?;
    let declared: Vec<_> = columns.iter().map(|(name, kind, _)| (name.as_str(), *kind)).collect();
    let mut cells = columns.iter().map(|(_, _, cells)| cells);
    Writer::create(file, (SCHEMA_KEY, schema_name), &declared)
        .and_then(|mut writer| {
            writer.write(&mut cells)?;
            writer.close()
        })
        .map_err(|error| Error::io("write", path, error))?;
    Ok(part)
}

/// A Parquet file of columns that is written one row group at a time. It appears whole when finished;
/// if dropped before, nothing remains.
pub struct ColumnFile {
    part: Part,
    writer: Writer,
}

impl ColumnFile {
    /// Creates the file `path` of the columns `(name, kind)`, with the schema name under
    /// `knee.schema`, whose times count from `epoch_unix_ns`, nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub fn create(
        path: &Path,
        schema_name: &str,
        epoch_unix_ns: u64,
        columns: &[(&str, Kind)],
    ) -> Result<ColumnFile, Error> {
        let (part, file) = Part::create(path)?;
        let mut writer = Writer::create(file, (SCHEMA_KEY, schema_name), columns)
            .map_err(|error| Error::io("write", path, error))?;
        writer.note(EPOCH_KEY, epoch_unix_ns.to_string());
        Ok(ColumnFile { part, writer })
    }

    /// Writes a row group: the cells of each column, in the order of the columns.
    ///
    /// # Errors
    /// [`Error::Io`] with the path, for example when the disk is full.
    pub fn write(&mut self, cells: &[Cells]) -> Result<(), Error> {
        let written = self.writer.write(&mut cells.iter());
        written.map_err(|error| Error::io("write", &self.part.path, error))
    }

    /// Returns the bytes of the row groups written.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Moves the file to its path, where it survives a loss of power.
    ///
    /// # Errors
    /// The errors of [`ColumnFile::write`].
    pub fn finish(self) -> Result<(), Error> {
        self.writer.close().map_err(|error| Error::io("write", &self.part.path, error))?;
        self.part.put_in_place_durably()
    }
}

/// Rows that are kept as such before they are added to the columns, few enough to stay in a cache.
const ROWS_TOGETHER: usize = 256;

/// A Parquet file that is being written row by row. It appears whole when finished; if dropped
/// before, nothing remains.
pub(crate) struct Table<R> {
    part: Part,
    writer: Writer,
    layout: Layout<R>,
    /// The last rows of the current row group.
    rows: Vec<R>,
    /// The other rows of it, column by column.
    cells: Vec<Cells>,
    /// Their number.
    in_cells: usize,
}

impl<R: Clone> Table<R> {
    /// Creates the file `path`.
    pub(crate) fn create(path: &Path, layout: Layout<R>) -> Result<Table<R>, Error> {
        let own = layout.columns.iter().map(|column| (column.name(), column.kind()));
        let derived = layout.derived.iter().map(|column| (column.name, Kind::Text));
        let columns: Vec<_> = own.chain(derived).collect();
        let (part, file) = Part::create(path)?;
        let writer = Writer::create(file, (SCHEMA_KEY, layout.version.name), &columns)
            .map_err(|error| Error::io("write", path, error))?;
        let cells = layout.no_cells();
        Ok(Table { part, writer, layout, rows: Vec::new(), cells, in_cells: 0 })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, names: &Names, row: &R) -> Result<(), Error> {
        // `push` would move a clone, and copy the row twice.
        self.rows.extend_from_slice(slice::from_ref(row));
        if self.rows.len() == ROWS_TOGETHER {
            self.take_rows(names);
        }
        let rows = self.in_cells + self.rows.len();
        if rows == self.layout.group_rows { self.write_rows(names) } else { Ok(()) }
    }

    /// Returns the bytes on disk so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Adds a key and value to the file's metadata.
    pub(crate) fn note(&mut self, key: &str, value: String) {
        self.writer.note(key, value);
    }

    /// Writes the remaining rows and moves the file to its path.
    pub(crate) fn finish(self, names: &Names) -> Result<(), Error> {
        self.close(names)?.put_in_place()
    }

    /// As [`Table::finish`], after which the file survives a loss of power.
    pub(crate) fn finish_durably(self, names: &Names) -> Result<(), Error> {
        self.close(names)?.put_in_place_durably()
    }

    fn close(mut self, names: &Names) -> Result<Part, Error> {
        self.write_rows(names)?;
        self.writer.close().map_err(|error| Error::io("write", &self.part.path, error))?;
        Ok(self.part)
    }

    fn take_rows(&mut self, names: &Names) {
        self.layout.add(names, &self.rows, &mut self.cells);
        self.in_cells += self.rows.len();
        self.rows.clear();
    }

    fn write_rows(&mut self, names: &Names) -> Result<(), Error> {
        self.take_rows(names);
        if self.in_cells == 0 {
            return Ok(());
        }
        self.writer
            .write(&mut self.cells.iter())
            .map_err(|error| Error::io("write", &self.part.path, error))?;
        self.cells.iter_mut().for_each(Cells::clear);
        self.in_cells = 0;
        Ok(())
    }
}
