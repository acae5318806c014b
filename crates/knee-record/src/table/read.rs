//! Reads rows from Parquet. A damaged file results in an error that names the file.

use super::{Column, Layout, SCHEMA_KEY, Version};
use crate::Error;
use crate::run::not_read;
use crate::series::Series;
use crate::timed::Timed;
use crate::track::Rows;
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

/// Reads a file as a series: a long one is reduced to the rows that stay in memory.
pub(crate) fn read_series<R: Default + Timed>(
    path: &Path,
    layout: &Layout<R>,
) -> Result<Rows<R>, Error> {
    let mut series = Series::default();
    read_batches(path, layout, |rows| rows.iter().for_each(|row| series.push(row)))?;
    Ok(series.into_rows())
}

/// Reads a file and calls `take` with each row.
pub(crate) fn read_each<R: Default + Clone>(
    path: &Path,
    layout: &Layout<R>,
    mut take: impl FnMut(R),
) -> Result<(), Error> {
    read_batches(path, layout, |rows| rows.iter().cloned().for_each(&mut take))
}

/// Reads the value of a key from a file's metadata.
pub(crate) fn metadata(path: &Path, key: &str) -> Result<Option<String>, Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    let found = decoding(path, || {
        let reader = Reader::open(file).map_err(|error| Error::malformed(path, error))?;
        Ok(reader.note(key).map(str::to_string))
    })?;
    Ok(found)
}

/// Reads columns of a Parquet file with the given schema, and calls `take` with the number of rows
/// and the cells of each column, row group by row group. Integer columns of `added` may be missing,
/// in files that earlier versions wrote: their cells are zero then.
///
/// # Errors
/// [`Error::Io`], [`Error::Schema`] and [`Error::Malformed`] with the path.
pub fn read_columns(
    path: &Path,
    schema_name: &'static str,
    columns: &[(&str, Kind)],
    added: &[&str],
    mut take: impl FnMut(usize, &[Cells]),
) -> Result<(), Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    decoding(path, || {
        let malformed = |reason: String| Error::malformed(path, reason);
        let reader = Reader::open(file).map_err(malformed)?;
        is_older(path, &reader, &Version { name: schema_name, before: None })?;
        let has = |name: &str| !added.contains(&name) || reader.has(name);
        let found: Vec<bool> = columns.iter().map(|(name, _)| has(name)).collect();
        let there = columns.iter().zip(&found).filter(|(_, found)| **found);
        let places = there.map(|((name, kind), _)| reader.find(name, *kind));
        let places = places.collect::<Result<Vec<_>, _>>().map_err(malformed)?;
        for number in 0..reader.groups() {
            let mut group = reader.group(number, &places).map_err(malformed)?;
            let rows = group.rows;
            let mut places = 0..places.len();
            let cells = found.iter().map(|found| match found.then(|| places.next()).flatten() {
                Some(place) => group.next(place, rows),
                None => Ok(Cells::Integers(vec![0; rows], None)),
            });
            take(rows, &cells.collect::<Result<Vec<_>, _>>().map_err(malformed)?);
        }
        Ok(())
    })
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is decoding a table. A panic while decoding means that the file is
/// damaged: it is caught and becomes [`Error::Malformed`].
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Reads the rows in batches. The Parquet decoder panics on some damaged files.
pub(crate) fn read_batches<R: Default + Clone>(
    path: &Path,
    layout: &Layout<R>,
    take: impl FnMut(&[R]),
) -> Result<(), Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    decoding(path, || decode(path, file, layout, take))
}

/// Calls `read`; a panic in it means that the file at `path` is damaged.
pub(crate) fn decoding<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(read));
    DECODING.set(false);
    decoded.unwrap_or_else(|_| Err(Error::malformed(path, "it is not a valid table")))
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
        // Nullable columns were added without a new version: if the file lacks one, its values are
        // null.
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

/// Returns the index of a column in the file; its type must match.
fn find<R>(column: &Column<R>, reader: &Reader) -> Result<usize, String> {
    reader.find(column.name(), column.kind())
}

/// Stores a column's cells in the rows; a column that is not nullable must be complete.
fn fill<R>(column: &Column<R>, cells: &Cells, rows: &mut [R]) -> Result<(), String> {
    if !column.kind().is_nullable() && !cells.is_whole(rows.len()) {
        return Err(format!("column {} has no value in some row", column.name()));
    }
    column.fill(cells, rows)
}

/// Returns whether a file is of the previous version; any other version is an error.
fn is_older(path: &Path, reader: &Reader, version: &Version) -> Result<bool, Error> {
    let found = reader.note(SCHEMA_KEY).unwrap_or("none");
    if found == version.name || version.before == Some(found) {
        return Ok(found != version.name);
    }
    let found = found.to_string();
    Err(Error::Schema { path: path.to_path_buf(), found, expected: version.name })
}
