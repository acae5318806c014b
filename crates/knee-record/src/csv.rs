//! Tables of a directory as CSV, for programs that do not read Parquet.

use crate::Error;
use crate::run::not_read;
use crate::table::decoding;
use knee_columns::Reader;
use knee_scenario::open_inside;
use std::io::{self, Write};
use std::path::Path;

/// Rows that are read at a time.
const ROWS: usize = 4096;

/// Writes a Parquet file of a directory as CSV (RFC 4180): its columns by name, every digit, empty
/// cells where there is no value. Returns the number of rows.
///
/// # Errors
/// [`Error::Io`] and [`Error::Malformed`] with the path.
pub fn write_csv(directory: &Path, file: &str, out: &mut dyn Write) -> Result<u64, Error> {
    let path = directory.join(file);
    let opened = open_inside(directory, Path::new(file)).map_err(|error| not_read(&path, error))?;
    let failed = |error| Error::io("write the CSV of", &path, error);
    decoding(&path, || {
        let malformed = |reason: String| Error::malformed(&path, reason);
        let reader = Reader::open(opened).map_err(malformed)?;
        let names = reader.names();
        let places: Vec<usize> = (0..names.len()).collect();
        write_line(out, names.iter().map(String::as_str)).map_err(failed)?;
        let mut rows = 0;
        for number in 0..reader.groups() {
            let mut group = reader.group(number, &places).map_err(malformed)?;
            let mut left = group.rows;
            while left > 0 {
                let next = left.min(ROWS);
                let cells = places.iter().map(|at| Ok(group.next(*at, next)?.written()));
                let cells: Vec<Vec<String>> =
                    cells.collect::<Result<_, String>>().map_err(malformed)?;
                for row in 0..next {
                    let line =
                        cells.iter().map(|column| column.get(row).map_or("", String::as_str));
                    write_line(out, line).map_err(failed)?;
                }
                (left, rows) = (left - next, rows + next as u64);
            }
        }
        Ok(rows)
    })
}

fn write_line<'c>(out: &mut dyn Write, cells: impl Iterator<Item = &'c str>) -> io::Result<()> {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}
