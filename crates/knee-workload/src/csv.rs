//! Lines of comma-separated values (RFC 4180), and what can be wrong with
//! them. Left out: a quoted field that goes on over several lines.

use thiserror::Error;

/// Why a file of comma-separated values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}; {advice}")]
pub struct CsvError {
    /// Where; the first line is 1.
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

/// No transfer and no object is larger: 1 PB. A larger number comes from
/// another column, such as a time stamp in nanoseconds.
pub(crate) const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// The lines that are not blank, with their numbers, without the mark that
/// some programs put at the start of a file.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty())
}

/// The fields of a line, trimmed.
pub(crate) fn fields(line: usize, text: &str) -> Result<Vec<String>, CsvError> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(line, quoted)?,
            None => {
                let (field, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (field.trim().to_owned(), after)
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// A field whose opening quote is read, and what follows its closing quote
/// up from the next comma.
fn unquote(line: usize, text: &str) -> Result<(String, &str), CsvError> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            let advice = "close it with a \" on the same line";
            return Err(CsvError::new(line, "a quoted field has no end".into(), advice));
        };
        field.push_str(part);
        if let Some(doubled) = after.strip_prefix('"') {
            field.push('"');
            rest = doubled;
            continue;
        }
        let after = after.trim_start();
        if after.is_empty() || after.starts_with(',') {
            return Ok((field.trim().to_owned(), after));
        }
        let problem = format!("\"{}\" follows the end of a quoted field", shorten(after));
        return Err(CsvError::new(line, problem, "put a comma there, or write \"\" for a quote"));
    }
}

/// A size in bytes.
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

/// At most 30 characters of what stands in a file, escapes spelt out, fit for
/// one line.
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
