//! Parquet to rows. The file may be damaged: what the decoder makes of it is
//! an error that names the file.

use super::{Column, Layout, SCHEMA_KEY, Version};
use crate::Error;
use crate::run::not_read;
use crate::series::{Series, Timed};
use knee_columns::{Cells, Kind, Reader};
use knee_scenario::open_file;
use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Reads a file that [`super::write`] wrote.
pub(crate) fn read<R: Default + Clone>(path: &Path, layout: &Layout<R>) -> Result<Vec<R>, Error> {
    let mut all = Vec::new();
    read_batches(path, layout, |rows| all.extend_from_slice(rows))?;
    Ok(all)
}

/// Reads the same as a series: of a long one as many rows as stay in memory.
pub(crate) fn read_series<R: Default + Timed>(
    path: &Path,
    layout: &Layout<R>,
) -> Result<Vec<R>, Error> {
    let mut series = Series::default();
    read_batches(path, layout, |rows| rows.iter().for_each(|row| series.push(*row)))?;
    Ok(series.into_rows())
}

/// Reads the same and hands over each row.
pub(crate) fn read_each<R: Default + Clone>(
    path: &Path,
    layout: &Layout<R>,
    mut take: impl FnMut(R),
) -> Result<(), Error> {
    read_batches(path, layout, |rows| rows.iter().cloned().for_each(&mut take))
}

/// What a file says of itself under a key.
pub(crate) fn metadata(path: &Path, key: &str) -> Result<Option<String>, Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    let found = decoding(path, || {
        let reader = Reader::open(file).map_err(|error| Error::malformed(path, error))?;
        Ok(reader.note(key).map(str::to_string))
    })?;
    Ok(found)
}

/// Reads columns of a Parquet file that names this schema, and hands over the rows of
/// each row group: how many, and the cells of each column.
///
/// # Errors
/// [`Error::Io`], [`Error::Schema`] and [`Error::Malformed`] with the path.
pub fn read_columns(
    path: &Path,
    schema_name: &'static str,
    columns: &[(&str, Kind)],
    mut take: impl FnMut(usize, &[Cells]),
) -> Result<(), Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    decoding(path, || {
        let malformed = |reason: String| Error::malformed(path, reason);
        let reader = Reader::open(file).map_err(malformed)?;
        is_older(path, &reader, &Version { name: schema_name, before: None })?;
        let places = columns.iter().map(|(name, kind)| reader.find(name, *kind));
        let places = places.collect::<Result<Vec<_>, _>>().map_err(malformed)?;
        for number in 0..reader.groups() {
            let mut group = reader.group(number, &places).map_err(malformed)?;
            let rows = group.rows;
            let cells = (0..places.len()).map(|column| group.next(column, rows));
            take(rows, &cells.collect::<Result<Vec<_>, _>>().map_err(malformed)?);
        }
        Ok(())
    })
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is decoding a table. A panic meanwhile says that the
/// file is damaged: it is caught and becomes [`Error::Malformed`].
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Hands the rows over, some at a time. The decoder of Parquet panics on some
/// of what a damaged file can hold.
pub(crate) fn read_batches<R: Default + Clone>(
    path: &Path,
    layout: &Layout<R>,
    take: impl FnMut(&[R]),
) -> Result<(), Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    decoding(path, || decode(path, file, layout, take))
}

fn decoding<T>(path: &Path, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(read));
    DECODING.set(false);
    decoded.unwrap_or_else(|_| Err(Error::malformed(path, "it is not what a table looks like")))
}

fn decode<R: Default + Clone>(
    path: &Path,
    file: File,
    layout: &Layout<R>,
    mut take: impl FnMut(&[R]),
) -> Result<(), Error> {
    let malformed = |error: &dyn Display| Error::malformed(path, error);
    let reader = Reader::open(file).map_err(|error| malformed(&error))?;
    let older = is_older(path, &reader, &layout.version)?;
    let columns = layout.columns.iter();
    let columns = columns.filter(|column| match column {
        // One that may be null was added without another version: it is null
        // where the file lacks it.
        Column::Added(inner) => {
            let is_nullable = matches!(**inner, Column::Integer { nullable: true, .. });
            let is_lacking = is_nullable && find(inner, &reader).is_err();
            !older && !is_lacking
        }
        _ => true,
    });
    let (columns, places): (Vec<&Column<R>>, Vec<usize>) = columns
        .map(|column| find(column, &reader).map(|at| (column, at)))
        .collect::<Result<_, _>>()
        .map_err(|reason| malformed(&reason))?;
    let mut rows = Vec::new();
    for number in 0..reader.groups() {
        let mut group = reader.group(number, &places).map_err(|error| malformed(&error))?;
        let mut left = group.rows;
        while left > 0 {
            let next = left.min(layout.group_rows);
            rows.clear();
            rows.resize(next, R::default());
            for (number, column) in columns.iter().enumerate() {
                let cells = group.next(number, next);
                cells
                    .and_then(|cells| fill(column, &cells, &mut rows))
                    .map_err(|reason| malformed(&reason))?;
            }
            take(&rows);
            left -= next;
        }
    }
    Ok(())
}

/// The place of a column in the file, which is of the column's type.
fn find<R>(column: &Column<R>, reader: &Reader) -> Result<usize, String> {
    reader.find(column.name(), column.kind())
}

/// Puts a column's cells into the rows; one without gaps must have none.
fn fill<R>(column: &Column<R>, cells: &Cells, rows: &mut [R]) -> Result<(), String> {
    if !column.kind().is_nullable() && !cells.is_whole(rows.len()) {
        return Err(format!("column {} has no value in some row", column.name()));
    }
    column.fill(cells, rows)
}

/// Whether a file is of the version before; any other is refused.
fn is_older(path: &Path, reader: &Reader, version: &Version) -> Result<bool, Error> {
    let found = reader.note(SCHEMA_KEY).unwrap_or("none");
    if found == version.name || version.before == Some(found) {
        return Ok(found != version.name);
    }
    let found = found.to_string();
    Err(Error::Schema { path: path.to_path_buf(), found, expected: version.name })
}
