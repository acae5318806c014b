//! Parser for recorded losses.

use knee_units::lines;
use std::sync::Arc;
use thiserror::Error;

/// Why a text is not a valid record of losses. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LossFileError {
    /// An unknown character.
    #[error(
        "line {line}, column {column}: \"{}\" means nothing here; write 0 for a packet that \
         arrives, 1 for one that is lost, and comments after a #", found.escape_debug()
    )]
    Unknown {
        /// Line number.
        line: usize,
        /// Column, in characters.
        column: usize,
        /// The unknown character.
        found: char,
    },
    /// No packet at all.
    #[error("the record is empty; write 0 for one that arrives and 1 for one that is lost")]
    Empty,
}

/// Parses a record of losses: one character per packet, `0` for one that arrives
/// and `1` for one that is lost. White space is ignored, and so is everything from
/// a `#` to the end of its line. At the end of the record the link starts over.
///
/// # Errors
///
/// The first error, with its place and what to write.
pub fn read_loss(text: &str) -> Result<Arc<[bool]>, LossFileError> {
    let mut lost = Vec::new();
    for (line, content) in lines(text).enumerate() {
        let packets = content.split('#').next().unwrap_or_default();
        for (column, found) in packets.chars().enumerate() {
            match found {
                '0' | '1' => lost.push(found == '1'),
                _ if found.is_whitespace() => {}
                _ => {
                    let (line, column) = (line + 1, column + 1);
                    return Err(LossFileError::Unknown { line, column, found });
                }
            }
        }
    }
    if lost.is_empty() { Err(LossFileError::Empty) } else { Ok(lost.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_in_order() {
        let lost = read_loss("# two bursts\n0010 11 # the first\r\n\n\t10\n").expect("well-formed");
        let packets: String = lost.iter().map(|lost| if *lost { '1' } else { '0' }).collect();
        assert_eq!(packets, "00101110");
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_remedy() {
        let unknown = "means nothing here; write 0 for a packet that arrives, 1 for one that is \
                       lost, and comments after a #";
        let cases = [
            ("01\n0 2", format!("line 2, column 3: \"2\" {unknown}")),
            ("0,1", format!("line 1, column 2: \",\" {unknown}")),
            ("\u{7}", format!("line 1, column 1: \"\\u{{7}}\" {unknown}")),
            (
                "# 0101",
                "the record is empty; write 0 for one that arrives and 1 for one that is lost"
                    .into(),
            ),
        ];
        for (text, message) in cases {
            assert_eq!(read_loss(text).expect_err(text).to_string(), message);
        }
    }
}
