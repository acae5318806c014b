//! Sizes of transfers from an access log.

use crate::csv::{AccessLogError, bytes, fields, lines, shorten};

/// What logs of web servers and delivery networks call the size of an answer,
/// compared without regard to case: the names of nginx, of the W3C's extended
/// log format, and plain words.
const SIZE_COLUMNS: [&str; 8] = [
    "bytes",
    "size",
    "sc-bytes",
    "bytes_sent",
    "body_bytes_sent",
    "response_bytes",
    "response_size",
    "object_size",
];

const NO_COLUMN: &str =
    "name the column of sizes \"bytes\", or write one number per line and nothing else";

/// Reads the sizes in bytes from an access log: comma-separated values under
/// a row of names of which one is `bytes`, `size`, `sc-bytes` or the like, or
/// one number per line. Answers without a body (0 or `-`, as for "not
/// modified") are passed over, and so are blank lines.
///
/// # Errors
///
/// The first line that is wrong, with what to write instead.
pub fn read_sizes(text: &str) -> Result<Vec<u64>, AccessLogError> {
    let mut lines = lines(text).peekable();
    let Some(&(line, first)) = lines.peek() else {
        return Err(AccessLogError::new(1, "there is no line in it".into(), NO_COLUMN));
    };
    let columns = fields(line, first)?;
    let named = !matches!(&columns[..], [only] if is_number(only));
    let column = if named { column_of_sizes(line, &columns)? } else { 0 };
    if named {
        lines.next();
    }
    let mut sizes = Vec::new();
    for (line, text) in lines {
        let found = fields(line, text)?;
        count_fields(line, found.len(), columns.len())?;
        let size = if found[column] == "-" { 0 } else { bytes(line, &found[column])? };
        sizes.extend((size > 0).then_some(size));
    }
    if sizes.is_empty() {
        let problem = "from here on there is no size above 0".into();
        return Err(AccessLogError::new(line, problem, "add at least one"));
    }
    Ok(sizes)
}

/// A number or what is meant as one: not the name of a column.
fn is_number(field: &str) -> bool {
    field == "-" || field.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
}

fn column_of_sizes(line: usize, columns: &[String]) -> Result<usize, AccessLogError> {
    let is_size = |name: &str| SIZE_COLUMNS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let mut places = (0..columns.len()).filter(|&place| is_size(&columns[place]));
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(one), Some(other)) => {
            let (one, other) = (&columns[one], &columns[other]);
            let problem = format!("\"{one}\" and \"{other}\" could both be the sizes");
            Err(AccessLogError::new(line, problem, "rename the one that is not meant"))
        }
        (None, _) => {
            let problem =
                format!("none of the columns \"{}\" is a size", shorten(&columns.join(",")));
            Err(AccessLogError::new(line, problem, NO_COLUMN))
        }
    }
}

fn count_fields(line: usize, found: usize, wanted: usize) -> Result<(), AccessLogError> {
    if found == wanted {
        return Ok(());
    }
    let problem = format!("{found} fields where the first line has {wanted}");
    let advice = "complete or delete the line; put fields that contain a comma in quotes";
    Err(AccessLogError::new(line, problem, advice))
}
