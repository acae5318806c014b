//! Tables of a directory as CSV, for programs that do not read Parquet.

use crate::Error;
use crate::run::not_read;
use crate::table::decoding;
use knee_columns::Reader;
use knee_scenario::open_inside;
use std::io::Write;
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
        out.write_all(csv_line(names.iter()).as_bytes()).map_err(failed)?;
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
                    let cells = cells.iter();
                    let cells = cells.map(|column| column.get(row).map_or("", String::as_str));
                    out.write_all(csv_line(cells).as_bytes()).map_err(failed)?;
                }
                (left, rows) = (left - next, rows + next as u64);
            }
        }
        Ok(rows)
    })
}

/// Formats a line of CSV, with those cells quoted that have a comma, a quote or a line end.
pub fn csv_line(cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut line = String::new();
    for (at, cell) in cells.enumerate() {
        let cell = cell.as_ref();
        if at > 0 {
            line.push(',');
        }
        match cell.contains([',', '"', '\n', '\r']) {
            true => line.extend(["\"", &cell.replace('"', "\"\""), "\""]),
            false => line.push_str(cell),
        }
    }
    line.push('\n');
    line
}
