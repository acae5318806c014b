//! Files of connections that are written row by row, without a run.

use crate::table::{self, Table};
use crate::tables::{self, Names};
use crate::{ConnectionRecord, Error};
use knee_columns::{Cells, Kind, each};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads a file of connections written by any program.
///
/// # Errors
/// [`Error::Io`] and [`Error::Malformed`] with the path.
pub fn read_connections(path: &Path) -> Result<Vec<ConnectionRecord>, Error> {
    table::read(path, &tables::connections())
}

/// Key of a note in files of a live host: its default controller, `net.ipv4.tcp_congestion_control`,
/// when the file began.
pub const DEFAULT_CONTROLLER: &str = "knee.default_controller";

/// Returns a note of a file of connections, if it has it.
///
/// # Errors
/// [`Error::Io`] and [`Error::Malformed`] with the path.
pub fn connections_note(path: &Path, key: &str) -> Result<Option<String>, Error> {
    table::metadata(path, key)
}

/// Returns the names of the flows in a file of connections, without the number within their group,
/// by index in the scenario; empty for a live host.
///
/// # Errors
/// [`Error::Io`], [`Error::Schema`] and [`Error::Malformed`] with the path.
pub fn flow_names(path: &Path) -> Result<BTreeMap<u32, String>, Error> {
    let columns = [("flow", Kind::Integer { nullable: true }), ("flow_name", Kind::Text)];
    let mut names = BTreeMap::new();
    table::read_columns(path, tables::CONNECTIONS.name, &columns, &[], |_, cells| {
        let [Cells::Integers(flows, known), Cells::Texts(texts, there)] = cells else { return };
        for (flow, name) in each(flows, known).zip(texts.each(there)) {
            let flow = flow.and_then(|flow| u32::try_from(*flow).ok());
            let name = name.and_then(|name| str::from_utf8(name).ok());
            if let Some((flow, name)) = flow.zip(name) {
                let group = name.split('[').next().unwrap_or(name);
                names.entry(flow).or_insert_with(|| group.to_string());
            }
        }
    })?;
    Ok(names)
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
