//! Rows of comma-separated values (RFC 4180), read by the crate `csv`, and their errors.

use csv::{Position, ReaderBuilder, StringRecord, Trim};
use thiserror::Error;

/// Why a file of comma-separated values cannot be used.
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
}

/// Maximum size of a transfer or object: 1 PB. A larger number comes from the wrong column, such as
/// a time stamp in nanoseconds.
pub(crate) const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// A row with trimmed fields, and the line on which it begins.
pub(crate) struct Row {
    pub line: usize,
    pub fields: StringRecord,
}

impl Row {
    /// Returns the row as written, for messages.
    pub fn text(&self) -> String {
        shorten(&self.fields.iter().collect::<Vec<_>>().join(","))
    }
}

/// Iterates over the rows that are not blank, after removing a byte order mark.
pub(crate) fn rows(text: &str) -> Result<impl Iterator<Item = Result<Row, CsvError>>, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_quotes(text)?;
    let mut reader = ReaderBuilder::new();
    reader.has_headers(false).flexible(true).trim(Trim::All);
    let records = reader.from_reader(text.as_bytes()).into_records();
    let rows = records.map(move |read| match read {
        Ok(fields) => Ok(Row { line: line_of(text, fields.position()), fields }),
        Err(error) => {
            let line = line_of(text, error.position());
            Err(CsvError::new(line, shorten(&error.to_string()), "correct the line"))
        }
    });
    let is_blank = |row: &Row| row.fields.len() == 1 && row.fields[0].is_empty();
    Ok(rows.filter(move |row| !row.as_ref().is_ok_and(is_blank)))
}

/// Returns the line on which a row begins: `csv` counts from the end of the previous row, and there
/// may be blank lines in between.
fn line_of(text: &str, position: Option<&Position>) -> usize {
    let Some(position) = position else { return 1 };
    let rest = &text.as_bytes()[position.byte() as usize..];
    let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() as usize + blank.filter(|byte| **byte == b'\n').count()
}

/// Refuses quotes where RFC 4180 does not allow them: `csv` would treat what follows as part of the
/// field, possibly the rest of the file.
fn check_quotes(text: &str) -> Result<(), CsvError> {
    let mut line = 1;
    let mut opened = None;
    let mut before = '\n';
    for (at, c) in text.char_indices() {
        match (c, opened) {
            ('\n', _) => line += 1,
            ('"', None) if matches!(before, ',' | '\n' | '"') => opened = Some(line),
            ('"', None) => {
                let advice = "put the whole field in quotes, without spaces around them";
                return Err(CsvError::new(line, "a quote stands within a field".into(), advice));
            }
            ('"', Some(_)) => {
                opened = None;
                let after = text[at + 1..].lines().next().unwrap_or_default();
                if !(after.is_empty() || after.starts_with([',', '"', '\r'])) {
                    let after = shorten(after);
                    let problem = format!("\"{after}\" follows the end of a quoted field");
                    let advice = "put a comma there, or write \"\" for a quote";
                    return Err(CsvError::new(line, problem, advice));
                }
            }
            _ => {}
        }
        before = c;
    }
    match opened {
        None => Ok(()),
        Some(line) => {
            let problem = "a quoted field has no end".into();
            Err(CsvError::new(line, problem, "close it with a \""))
        }
    }
}

/// Parses a size in bytes.
pub(crate) fn bytes(line: usize, field: &str) -> Result<u64, CsvError> {
    let advice = "write whole bytes without a unit, such as 1500000 for 1.5 MB";
    let wrong = |problem: String| Err(CsvError::new(line, problem, advice));
    if field.is_empty() {
        return wrong("the size is missing".into());
    }
    if !field.bytes().all(|byte| byte.is_ascii_digit()) {
        return wrong(format!("\"{}\" is not a size", shorten(field)));
    }
    match field.parse() {
        Ok(bytes) if bytes <= BYTES_MAX => Ok(bytes),
        _ => wrong(format!("{} is beyond any size (1 PB)", shorten(field))),
    }
}

/// Returns at most 30 characters of a text from a file, escaped so that they fit on one line.
pub(crate) fn shorten(text: &str) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in text.chars() {
        let escaped = character.escape_debug();
        length += escaped.len();
        if length > 30 {
            short.push('…');
            break;
        }
        short.extend(escaped);
    }
    short
}
