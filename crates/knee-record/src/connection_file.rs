//! Files of connections that are written row by row, without a run.

use crate::table::{self, Table};
use crate::tables::{self, Names};
use crate::{ConnectionRecord, Error};
use std::path::Path;

/// Reads a file of connections written by any program.
///
/// # Errors
/// [`Error::Io`] and [`Error::Malformed`] with the path.
pub fn read_connections(path: &Path) -> Result<Vec<ConnectionRecord>, Error> {
    table::read(path, &tables::connections())
}

/// Number of rows read at a time.
const BATCH_ROWS: usize = 4096;

/// Reads some columns of a file of connections written by any program, and calls `take` with each
/// row and the file's epoch, nanoseconds since 1970 (UTC). Fields of columns that are not read have
/// their defaults.
///
/// # Errors
/// [`Error::Io`], [`Error::Schema`] and [`Error::Malformed`] with the path.
pub fn each_connection(
    path: &Path,
    columns: &[&str],
    mut take: impl FnMut(u64, &ConnectionRecord),
) -> Result<(), Error> {
    let mut layout = tables::connections();
    layout.columns.retain(|column| columns.contains(&column.name()));
    layout.group_rows = BATCH_ROWS;
    let epoch = table::metadata(path, table::EPOCH_KEY)?.unwrap_or_default();
    let epoch_unix_ns = epoch.parse().unwrap_or(0);
    table::read_batches(path, &layout, |rows| {
        rows.iter().for_each(|row| take(epoch_unix_ns, row));
    })
}

/// A `connections.parquet` without a run directory, for example of a live host. It appears whole
/// when it is finished; if it is dropped before, nothing remains.
pub struct ConnectionFile {
    table: Table<ConnectionRecord>,
    rows: u64,
}

impl ConnectionFile {
    /// Creates the file `path` for connections on `ground`, whose times count from `epoch_unix_ns`,
    /// nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub fn create(path: &Path, ground: &str, epoch_unix_ns: u64) -> Result<ConnectionFile, Error> {
        let mut table = Table::create(path, tables::connections())?;
        table.note(table::GROUND_KEY, ground.to_string());
        table.note(table::EPOCH_KEY, epoch_unix_ns.to_string());
        Ok(ConnectionFile { table, rows: 0 })
    }

    /// Adds a row; [`ConnectionRecord::flow`] is `None`.
    ///
    /// # Errors
    /// [`Error::Io`] with the path, for example when the disk is full.
    pub fn push(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.rows += 1;
        self.table.push(&Names::default(), row)
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes on disk so far, without the current row group.
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Adds a key and value to the file's metadata.
    pub fn note(&mut self, key: &str, value: String) {
        self.table.note(key, value);
    }

    /// Writes the remaining rows and moves the file to its path, where it survives a loss of power.
    ///
    /// # Errors
    /// The errors of [`ConnectionFile::push`].
    pub fn finish(self) -> Result<(), Error> {
        self.table.finish_durably(&Names::default())
    }
}
