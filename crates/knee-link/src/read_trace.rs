//! Parser for traces in Mahimahi's format.

use crate::config::Trace;
use knee_units::{Time, lines};
use thiserror::Error;

/// Why a text is not a valid trace. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is not a number.
    #[error(
        "line {line}: \"{found}\" is not a whole number of milliseconds; \
         write one per line, such as 12, and nothing else (the format has no comments)"
    )]
    NotANumber {
        /// Line number.
        line: usize,
        /// The line's contents, shortened.
        found: String,
    },
    /// A line between others is blank.
    #[error("line {line} is blank; delete it")]
    Blank {
        /// Line number.
        line: usize,
    },
    /// A number larger than any trace needs.
    #[error("line {line}: {found} ms is beyond {} ms (49 days); split the trace", u32::MAX)]
    TooLarge {
        /// Line number.
        line: usize,
        /// The line's contents, shortened.
        found: String,
    },
    /// A time before the one above it.
    #[error(
        "line {line}: {found} ms comes after {before} ms; \
         write the times in ascending order (equal ones are fine)"
    )]
    Descends {
        /// Line number.
        line: usize,
        /// The time on this line.
        found: u32,
        /// The time on the line above.
        before: u32,
    },
    /// No line at all.
    #[error("the trace is empty; write one whole number of milliseconds per line, such as 12")]
    Empty,
    /// All times are zero: the trace would repeat endlessly at once.
    #[error(
        "the last time is 0 ms, but the trace repeats after its last time; \
         end it with a time above 0"
    )]
    EndsAtZero,
}

impl Trace {
    /// Parses a trace in Mahimahi's format: each line has the time of one
    /// opportunity, as a whole number of milliseconds, in non-descending order,
    /// the last above zero. Spaces around a number and blank lines at the end
    /// are ignored, and so is a byte order mark. The offset is zero.
    ///
    /// # Errors
    ///
    /// The first error, with its line and what to write.
    pub fn read(name: &str, text: &str) -> Result<Trace, TraceError> {
        let mut opportunities_ms: Vec<u32> = Vec::new();
        for (number, content) in lines(text.trim_end()).enumerate() {
            let time = read_line(number + 1, content.trim())?;
            let before = opportunities_ms.last().copied().unwrap_or(0);
            if time < before {
                return Err(TraceError::Descends { line: number + 1, found: time, before });
            }
            opportunities_ms.push(time);
        }
        match opportunities_ms.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::EndsAtZero),
            Some(_) => Ok(Trace { name: name.to_owned(), opportunities_ms, offset: Time::ZERO }),
        }
    }
}

fn read_line(line: usize, content: &str) -> Result<u32, TraceError> {
    if content.is_empty() {
        return Err(TraceError::Blank { line });
    }
    let found = || shortened(content);
    if !content.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TraceError::NotANumber { line, found: found() });
    }
    content.parse().map_err(|_| TraceError::TooLarge { line, found: found() })
}

/// Returns at most 20 characters of a file's contents, with escapes spelt out,
/// for a single-line message.
fn shortened(content: &str) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in content.chars() {
        let escaped = character.escape_debug();
        length += escaped.len();
        if length > 20 {
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

    #[test]
    fn a_trace_is_read_as_it_stands() {
        let trace = Trace::read("t", "0\n3\n3\r\n 10 \n\n").expect("well-formed");
        assert_eq!(trace.opportunities_ms, [0, 3, 3, 10]);
        assert_eq!(trace.name, "t");
        let same = Trace::read("t", "\u{feff}0\r3\r3\r\n10").expect("well-formed");
        assert_eq!(same, trace, "line ends and byte order marks of other systems");
    }

    #[test]
    fn each_mistake_is_named_with_its_line_and_its_remedy() {
        let number = "is not a whole number of milliseconds; write one per line, such as 12, \
                      and nothing else (the format has no comments)";
        let cases = [
            ("1\n# late\n", format!("line 2: \"# late\" {number}")),
            ("1.5", format!("line 1: \"1.5\" {number}")),
            ("3\n-4", format!("line 2: \"-4\" {number}")),
            ("+4", format!("line 1: \"+4\" {number}")),
            ("1 2", format!("line 1: \"1 2\" {number}")),
            (
                "a\tbcdefghijklmnopqrstuvwxyz",
                format!("line 1: \"a\\tbcdefghijklmnopqr…\" {number}"),
            ),
            (
                "\u{d75f9}\u{d75f9}\u{d75f9}",
                format!("line 1: \"\\u{{d75f9}}\\u{{d75f9}}…\" {number}"),
            ),
            ("1\n\n2", "line 2 is blank; delete it".into()),
            (
                "5\n4",
                "line 2: 4 ms comes after 5 ms; write the times in ascending order \
                 (equal ones are fine)"
                    .into(),
            ),
            (
                "4294967296",
                "line 1: 4294967296 ms is beyond 4294967295 ms (49 days); split the trace".into(),
            ),
            (
                " \n\n",
                "the trace is empty; write one whole number of milliseconds per line, \
                 such as 12"
                    .into(),
            ),
            (
                "0\n0",
                "the last time is 0 ms, but the trace repeats after its last time; \
                 end it with a time above 0"
                    .into(),
            ),
        ];
        for (text, message) in cases {
            let error = Trace::read("t", text).expect_err(text);
            assert_eq!(error.to_string(), message, "for {text:?}");
        }
    }
}
