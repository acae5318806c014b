//! Parquet to rows. The file may be damaged: what the decoder makes of it is
//! an error that names the file.

use super::{BATCH_ROWS, Layout, SCHEMA_KEY, Version};
use crate::Error;
use crate::run::not_read;
use crate::series::{Series, Timed};
use knee_scenario::open_file;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
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
fn read_batches<R: Default + Clone>(
    path: &Path,
    layout: &Layout<R>,
    take: impl FnMut(&[R]),
) -> Result<(), Error> {
    let file = open_file(path).map_err(|error| not_read(path, error))?;
    DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(path, file, layout, take)));
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
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| malformed(&error))?;
    let older = is_older(path, &builder, &layout.version)?;
    let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(|error| malformed(&error))?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| malformed(&error))?;
        rows.clear();
        rows.resize(batch.num_rows(), R::default());
        for column in &layout.columns {
            column.read(&batch, &mut rows, older).map_err(|reason| malformed(&reason))?;
        }
        take(&rows);
    }
    Ok(())
}

/// Whether a file is of the version before; any other is refused.
fn is_older(
    path: &Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    version: &Version,
) -> Result<bool, Error> {
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let found = metadata
        .into_iter()
        .flatten()
        .find(|pair| pair.key == SCHEMA_KEY)
        .and_then(|pair| pair.value.clone())
        .unwrap_or_else(|| "none".to_string());
    if found == version.name || version.before == Some(found.as_str()) {
        return Ok(found != version.name);
    }
    Err(Error::Schema { path: path.to_path_buf(), found, expected: version.name })
}
