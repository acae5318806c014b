//! Rows of separated values (RFC 4180, with any separator), and the errors of files of transfers.

use knee_units::{LineError, Lines};
use std::io::Read;
use thiserror::Error;

/// Why a file of transfers or objects cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}; {advice}")]
pub struct CsvError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}

/// Why an access log cannot be used.
pub type AccessLogError = CsvError;

/// Why the description of a page cannot be used.
pub type PageFileError = CsvError;

impl CsvError {
    pub(crate) fn new(line: usize, problem: String, advice: &str) -> CsvError {
        CsvError { line, problem, advice: advice.into() }
    }

    /// Returns the error for a line that cannot be read.
    pub(crate) fn unreadable(line: usize, error: &LineError) -> CsvError {
        CsvError::new(line.max(1), shorten_to(&error.problem(), 120), error.advice())
    }
}

/// Maximum size of a transfer or object: 1 PB. A larger number comes from the wrong column, such as
/// a time stamp in nanoseconds.
const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// Longest row, in bytes; a longer one has a quote without an end.
const ROW_BYTES_MAX: usize = 4 << 20;

/// A row with trimmed fields, and the line on which it begins.
#[derive(Default)]
pub(crate) struct Row {
    pub line: usize,
    text: String,
    ends: Vec<usize>,
}

impl Row {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.field(at))
    }

    /// Returns a field; empty if there are not so many.
    pub fn field(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(at).and_then(|end| self.text.get(start..*end)).unwrap_or_default().trim()
    }

    /// Returns the row as written, for messages.
    pub fn written(&self) -> String {
        shorten(&self.fields().collect::<Vec<_>>().join(","))
    }

    fn is_blank(&self) -> bool {
        self.len() == 1 && self.field(0).is_empty()
    }
}

/// Rows of a file, each read once from beginning to end.
pub(crate) struct Rows<R: Read> {
    lines: Lines<R>,
    /// The line on which a row begins.
    line: String,
    separator: char,
    /// Bytes that were looked at.
    examined: usize,
}

/// Opens the rows of a text of comma-separated values.
pub(crate) fn rows(text: &str) -> Result<Rows<&[u8]>, CsvError> {
    let lines = Lines::open(text.as_bytes());
    lines.map(|lines| Rows::new(lines, ',')).map_err(|error| CsvError::unreadable(1, &error))
}

impl<R: Read> Rows<R> {
    pub fn new(lines: Lines<R>, separator: char) -> Rows<R> {
        Rows { lines, line: String::new(), separator, examined: 0 }
    }

    /// Reads the next row that is not blank; returns whether there is one.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, CsvError> {
        loop {
            let mut line = std::mem::take(&mut self.line);
            if !next_line(&mut self.lines, &mut line)? {
                return Ok(false);
            }
            self.split(&line, row)?;
            self.line = line;
            if !row.is_blank() {
                return Ok(true);
            }
        }
    }

    /// Splits the row that begins with `first`, and reads further lines if a quoted field contains
    /// their ends.
    pub fn split(&mut self, first: &str, row: &mut Row) -> Result<(), CsvError> {
        row.line = self.lines.number();
        row.text.clear();
        row.ends.clear();
        let mut further = String::new();
        let mut rest = first;
        loop {
            let Some(quoted) = rest.strip_prefix('"') else {
                let end = rest.find(self.separator);
                let field = &rest[..end.unwrap_or(rest.len())];
                self.examined += field.len() + 1;
                if field.contains('"') {
                    let advice = "put the whole field in quotes, without spaces around them";
                    let problem = "a quote stands within a field".into();
                    return Err(CsvError::new(self.lines.number(), problem, advice));
                }
                row.text.push_str(field);
                row.ends.push(row.text.len());
                let Some(end) = end else { return Ok(()) };
                rest = &rest[end + self.separator.len_utf8()..];
                continue;
            };
            let opened = self.lines.number();
            rest = quoted;
            while let Unclosed::Yes = self.take_quoted(&mut rest, row) {
                row.text.push('\n');
                if row.text.len() > ROW_BYTES_MAX {
                    return Err(no_end(opened));
                }
                if !next_line(&mut self.lines, &mut further)? {
                    return Err(no_end(opened));
                }
                rest = &further;
            }
            row.ends.push(row.text.len());
            match rest.strip_prefix(self.separator) {
                Some(after) => rest = after,
                None if rest.is_empty() => return Ok(()),
                None => {
                    let problem =
                        format!("\"{}\" follows the end of a quoted field", shorten(rest));
                    let advice = "put a comma there, or write \"\" for a quote";
                    return Err(CsvError::new(self.lines.number(), problem, advice));
                }
            }
        }
    }

    /// Takes a quoted field, up to its end or that of the line.
    fn take_quoted(&mut self, rest: &mut &str, row: &mut Row) -> Unclosed {
        loop {
            let end = rest.find('"');
            let part = &rest[..end.unwrap_or(rest.len())];
            self.examined += part.len() + 1;
            row.text.push_str(part);
            let Some(end) = end else { return Unclosed::Yes };
            *rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                None => return Unclosed::No,
                Some(after) => {
                    row.text.push('"');
                    *rest = after;
                }
            }
        }
    }
}

enum Unclosed {
    Yes,
    No,
}

fn no_end(line: usize) -> CsvError {
    CsvError::new(line, "a quoted field has no end".into(), "close it with a \"")
}

/// Reads the next line as text, in place of `line`; returns whether there is one. User agents and
/// addresses may be in any encoding, sizes are digits.
pub(crate) fn next_line<R: Read>(
    lines: &mut Lines<R>,
    line: &mut String,
) -> Result<bool, CsvError> {
    let read = lines.next_text(line);
    read.map_err(|error| CsvError::unreadable(lines.number(), &error))
}

/// Why a field is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotASize {
    /// 0 or "-": an answer without a body.
    NoBody,
    /// Nothing.
    Missing,
    /// No whole number of bytes.
    NotBytes,
    /// More than [`BYTES_MAX`].
    TooLarge,
}

/// Parses a size in whole bytes, which programs also write as 1234.0.
pub(crate) fn size(field: &str) -> Result<u64, NotASize> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match field {
        "-" => return Err(NotASize::NoBody),
        "" => return Err(NotASize::Missing),
        _ => {}
    }
    let size = if digits(field) {
        field.parse().map_err(|_| NotASize::TooLarge)?
    } else {
        let number = |byte: u8| byte.is_ascii_digit() || b".eE+".contains(&byte);
        let is_number = field.starts_with(|first: char| first.is_ascii_digit());
        let value = field.parse::<f64>().ok();
        let value =
            value.filter(|value| is_number && field.bytes().all(number) && value.fract() == 0.0);
        // Up to 1 PB every whole number is one of `f64`; the cast saturates above.
        value.ok_or(NotASize::NotBytes)? as u64
    };
    match size {
        0 => Err(NotASize::NoBody),
        size if size > BYTES_MAX => Err(NotASize::TooLarge),
        size => Ok(size),
    }
}

/// Parses a size in bytes; 0 is one.
pub(crate) fn bytes(line: usize, field: &str) -> Result<u64, CsvError> {
    let advice = "write whole bytes without a unit, such as 1500000 for 1.5 MB";
    let wrong = |problem: String| Err(CsvError::new(line, problem, advice));
    match size(field) {
        Ok(size) => Ok(size),
        Err(NotASize::NoBody) if field != "-" => Ok(0),
        Err(NotASize::Missing) => wrong("the size is missing".into()),
        Err(NotASize::TooLarge) => wrong(format!("{} is beyond any size (1 PB)", shorten(field))),
        Err(_) => wrong(format!("\"{}\" is not a size", shorten(field))),
    }
}

/// Returns at most 30 characters of a text from a file, escaped so that they fit on one line.
pub(crate) fn shorten(text: &str) -> String {
    shorten_to(text, 30)
}

/// Returns at most `characters` of a text; see [`shorten`].
pub(crate) fn shorten_to(text: &str, characters: usize) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in text.chars() {
        let escaped = character.escape_debug();
        length += escaped.len();
        if length > characters {
            short.push('…');
            break;
        }
        short.extend(escaped);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(text: &str) -> usize {
        let mut rows = rows(text).unwrap();
        let mut row = Row::default();
        while rows.next(&mut row).unwrap() {}
        rows.examined
    }

    /// Each byte is looked at a bounded number of times, whatever the quotes and the line ends:
    /// twice the text is twice the work.
    #[test]
    fn the_work_is_proportional_to_the_text() {
        let of = |fields: usize, end: &str| format!("\"a\"{end}").repeat(fields);
        for end in ["\r", "\n", "\r\n", ",", "\"\"\"\"\r,"] {
            let (one, two) = (of(20_000, end), of(40_000, end));
            let (first, second) = (examined(&one), examined(&two));
            assert!(first <= 2 * one.len(), "{end:?}: {first} of {}", one.len());
            assert!(second <= 2 * first + 1, "{end:?}");
        }
    }

    #[test]
    fn whole_numbers_with_a_fraction_of_zero_are_sizes() {
        assert_eq!(size("1234.0"), Ok(1234));
        assert_eq!(size("1.5e6"), Ok(1_500_000));
        assert_eq!(size("0.0"), Err(NotASize::NoBody));
        for text in ["1234.5", "-3", "nan", "inf", "1 kB", "e5", "+5"] {
            assert_eq!(size(text), Err(NotASize::NotBytes), "{text}");
        }
        assert_eq!(size("1e300"), Err(NotASize::TooLarge));
        assert_eq!(size("1000000000000000.0"), Ok(BYTES_MAX));
    }
}
