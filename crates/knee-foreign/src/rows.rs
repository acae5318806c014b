//! Rows of separated values (RFC 4180, with any separator).

use crate::error::{FileError, SHOWN, shorten};
use crate::unpack::next_line;
use knee_units::Lines;
use std::io::Read;

/// Longest row, in bytes; a longer one has a quote without an end.
const ROW_BYTES_MAX: usize = 4 << 20;

/// A row with trimmed fields, and the line on which it begins.
#[derive(Debug, Default)]
pub struct Row {
    /// Number of the line, from 1.
    pub line: usize,
    text: String,
    ends: Vec<usize>,
}

impl Row {
    /// Returns the number of fields.
    #[expect(clippy::len_without_is_empty, reason = "a row has at least one field")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Iterates over the fields.
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
        shorten(&self.fields().collect::<Vec<_>>().join(","), SHOWN)
    }

    fn is_blank(&self) -> bool {
        self.len() == 1 && self.field(0).is_empty()
    }
}

/// Rows of a file, each read once from beginning to end.
#[derive(Debug)]
pub struct Rows<R: Read> {
    lines: Lines<R>,
    /// The line on which a row begins.
    line: String,
    separator: char,
    /// Bytes that were looked at.
    examined: usize,
}

/// Opens the rows of a text of comma-separated values.
///
/// # Errors
/// If it is no plain text.
pub fn rows(text: &str) -> Result<Rows<&[u8]>, FileError> {
    let lines = Lines::open(text.as_bytes());
    lines.map(|lines| Rows::new(lines, ',')).map_err(|error| FileError::unreadable(1, &error))
}

impl<R: Read> Rows<R> {
    /// Reads the rows of lines.
    pub fn new(lines: Lines<R>, separator: char) -> Rows<R> {
        Rows { lines, line: String::new(), separator, examined: 0 }
    }

    /// Reads the next row that is not blank; returns whether there is one.
    ///
    /// # Errors
    /// If quotes are in the wrong places, or the line cannot be read.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, FileError> {
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
    ///
    /// # Errors
    /// Those of [`Rows::next`].
    pub fn split(&mut self, first: &str, row: &mut Row) -> Result<(), FileError> {
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
                    let problem = "a quote stands within a field";
                    return Err(FileError::new(self.lines.number(), problem, advice));
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
                        format!("\"{}\" follows the end of a quoted field", shorten(rest, SHOWN));
                    let advice = "put a comma there, or write \"\" for a quote";
                    return Err(FileError::new(self.lines.number(), problem, advice));
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

fn no_end(line: usize) -> FileError {
    FileError::new(line, "a quoted field has no end", "close it with a \"")
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
}
