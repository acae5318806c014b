//! A file of connections that somebody else than a run writes, row by row.

use crate::table::{self, Table};
use crate::tables::{self, Names};
use crate::{ConnectionRecord, Error};
use std::path::Path;

/// Reads a file of connections, whoever wrote it.
///
/// # Errors
/// [`Error::Io`] and [`Error::Malformed`] with the path.
pub fn read_connections(path: &Path) -> Result<Vec<ConnectionRecord>, Error> {
    table::read(path, &tables::connections())
}

/// Rows that are read at a time.
const BATCH_ROWS: usize = 4096;

/// Reads columns of a file of connections, whoever wrote it, and hands over each row with
/// the file's epoch, nanoseconds since 1970 (UTC). Other columns are not read: their
/// fields have their defaults.
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

/// `connections.parquet` without a run around it, as of a live host. It appears whole,
/// at the end; what is dropped before leaves nothing.
pub struct ConnectionFile {
    table: Table<ConnectionRecord>,
    rows: u64,
}

impl ConnectionFile {
    /// Begins the file `path` of connections on `ground`, whose times count from
    /// `epoch_unix_ns`, nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub fn create(path: &Path, ground: &str, epoch_unix_ns: u64) -> Result<ConnectionFile, Error> {
        let mut table = Table::create(path, tables::connections())?;
        table.note(table::GROUND_KEY, ground.to_string());
        table.note(table::EPOCH_KEY, epoch_unix_ns.to_string());
        Ok(ConnectionFile { table, rows: 0 })
    }

    /// Adds a row; [`ConnectionRecord::flow`] is none.
    ///
    /// # Errors
    /// [`Error::Io`] with the path, as when the disk is full.
    pub fn push(&mut self, row: ConnectionRecord) -> Result<(), Error> {
        self.rows += 1;
        self.table.push(&Names::default(), row)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes on disk so far, without the rows of the group under way.
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Notes something that the file says of itself.
    pub fn note(&mut self, key: &str, value: String) {
        self.table.note(key, value);
    }

    /// Writes what is left and puts the file in its place.
    ///
    /// # Errors
    /// As [`ConnectionFile::push`].
    pub fn finish(self) -> Result<(), Error> {
        self.table.finish(&Names::default())
    }
}
