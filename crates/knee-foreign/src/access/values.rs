//! Values separated by commas, tabs or semicolons under a row of names, or one size per line.

use super::draft::{Draft, Miss};
use super::names::{Field, SIZES, are_together, is_size};
use crate::error::{FileError, shorten};
use crate::rows::{Row, Rows};
use crate::size::whole_bytes;
use knee_units::Lines;
use std::io::Read;

/// What to do without a known name of sizes.
macro_rules! rename {
    ($what:literal) => {
        concat!(
            "rename the ",
            $what,
            " of sizes to \"bytes\" (also known: size, sc-bytes, bytes_sent, body_bytes_sent, ",
            "response_bytes, response_size, object_size, EdgeResponseBytes, response_body_size, ",
            "DownstreamContentSize)"
        )
    };
}
pub(super) const NO_KEY: &str = rename!("key");
const NO_COLUMN: &str =
    concat!(rename!("column"), ", or write one number per line and nothing else");
/// Number of characters for the names of columns in a message.
pub(super) const NAMES_SHOWN: usize = 64;

/// Where the fields of a line stand.
#[derive(Debug)]
pub(super) struct Columns {
    /// What each column has, by its place.
    pub fields: Vec<Option<Field>>,
}

impl Columns {
    /// Finds the columns by their names.
    pub fn named(names: &[&str]) -> Result<Columns, Miss> {
        let fields: Vec<Option<Field>> = names.iter().map(|name| Field::named(name)).collect();
        let sizes = || {
            let sized = names.iter().zip(&fields);
            sized.filter_map(|(name, field)| match field {
                Some(Field::Size(known)) => Some((*name, *known)),
                _ => None,
            })
        };
        if sizes().next().is_none() {
            let names = shorten(&names.join(","), NAMES_SHOWN);
            let problem = format!("none of the columns \"{names}\" is a size");
            return Err(Miss::Wrong(problem, NO_COLUMN));
        }
        let mut pairs = sizes().zip(sizes().skip(1));
        match pairs.find(|(one, other)| !are_together(one.1, other.1)) {
            Some((one, other)) => Err(two_sizes(one.0, other.0)),
            None => Ok(Columns { fields }),
        }
    }

    /// Takes the fields of a line; returns their number.
    pub fn take<'v>(&self, values: impl Iterator<Item = &'v str>, draft: &mut Draft) -> usize {
        let mut count = 0;
        for value in values {
            if let Some(Some(field)) = self.fields.get(count) {
                draft.take(*field, value);
            }
            count += 1;
        }
        count
    }
}

/// Two columns or keys that could both be the sizes.
pub(super) fn two_sizes(one: &str, other: &str) -> Miss {
    let problem = format!("\"{one}\" and \"{other}\" could both be the sizes");
    Miss::Wrong(problem, "rename the one that is not meant")
}

/// The same of the numbers of their names.
pub(super) fn two_known_sizes((one, other): (usize, usize)) -> Miss {
    two_sizes(SIZES[one], SIZES[other])
}

/// Separators of values, the most frequent first, with the name of the format.
const SEPARATORS: [(char, &str); 3] = [
    (',', "comma-separated values"),
    ('\t', "tab-separated values"),
    (';', "semicolon-separated values"),
];

/// Rows of values while they are read.
#[derive(Debug)]
pub(super) struct Values<R: Read> {
    rows: Rows<R>,
    row: Row,
    columns: Columns,
    /// Fields of the first row.
    count: usize,
    /// Line of the first row.
    pub first: usize,
    /// Whether the first row has sizes already.
    is_begun: bool,
    pub format: &'static str,
}

/// Returns whether a line could be the first of such a file: it names a column of sizes, or has
/// numbers only.
pub(super) fn is_begin(line: &str) -> bool {
    let (separator, _) = separator_of(line);
    let names = || line.split(separator).map(|name| name.trim().trim_matches('"').trim());
    names().any(is_size) || {
        // A number, even if it is no size: that is said of its line.
        let is_part = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
        line.trim().bytes().all(is_part)
    }
}

fn separator_of(line: &str) -> (char, &'static str) {
    let count = |(separator, _): &&(char, &str)| line.matches(*separator).count();
    // Of equal ones the last is taken.
    *SEPARATORS.iter().rev().max_by_key(count).unwrap_or(&SEPARATORS[0])
}

impl<R: Read> Values<R> {
    /// Begins with the first line that is not blank, and its number.
    pub fn open((number, first): (usize, &str), lines: Lines<R>) -> Result<Values<R>, FileError> {
        if first.contains('\0') {
            let problem = "it has NUL bytes, as text in UTF-16 has";
            return Err(FileError::new(number, problem, "save it as UTF-8"));
        }
        let (separator, name) = separator_of(first);
        let mut rows = Rows::new(lines, separator);
        let mut row = Row::default();
        let read = rows.split(first, &mut row);
        read.map_err(|error| unknown(number, &error.problem))?;
        row.line = number;
        let (line, count) = (row.line, row.len());
        if count == 1 && row.field(0).contains(char::is_whitespace) && !is_number(row.field(0)) {
            return Err(unknown(line, &format!("\"{}\"", row.written())));
        }
        let is_named = count > 1 || !is_number(row.field(0));
        let columns = match is_named {
            true => {
                let names: Vec<&str> = row.fields().collect();
                Columns::named(&names).map_err(|miss| miss.error(line))?
            }
            false => Columns { fields: vec![Some(Field::Size(0))] },
        };
        let format = if is_named { name } else { "one size per line" };
        Ok(Values { rows, row, columns, count, first: line, is_begun: !is_named, format })
    }

    /// Reads the next row; returns its line, or `None` after the last.
    pub fn next(&mut self, draft: &mut Draft) -> Result<Option<usize>, FileError> {
        let is_there = std::mem::take(&mut self.is_begun) || self.rows.next(&mut self.row)?;
        if !is_there {
            return Ok(None);
        }
        let Values { row, columns, count, .. } = self;
        if row.len() != *count {
            let problem = format!("{} fields where the first line has {count}", row.len());
            let advice = "complete or delete the line; put fields that contain a comma in quotes";
            return Err(FileError::new(row.line, problem, advice));
        }
        for (at, field) in columns.fields.iter().enumerate() {
            if let Some(Field::Size(_)) = field
                && row.field(at) != "-"
            {
                whole_bytes(row.line, row.field(at))?;
            }
        }
        columns.take(row.fields(), draft);
        Ok(Some(row.line))
    }
}

/// The error of a file in no format that is known.
fn unknown(line: usize, why: &str) -> FileError {
    let problem = format!("it is in no format that is known here ({why})");
    let advice = "write comma-separated values with a column \"bytes\", JSON lines, or the Common Log \
                  Format";
    FileError::new(line, problem, advice)
}

/// Returns whether a field is, or is meant as, a number rather than the name of a column.
fn is_number(field: &str) -> bool {
    field == "-" || field.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
}
