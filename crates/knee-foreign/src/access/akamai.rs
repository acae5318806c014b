//! Akamai's DataStream 2 in its structured form: values without names, between spaces or tabs
//! (<https://techdocs.akamai.com/datastream2/v3/docs/log-format-1>).

use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::{Field, SIZES, Span};

/// Parses a line with the fields in their default order. Who chose another order names it with a
/// line `#Fields: …` at the beginning, as in the W3C's format.
pub(super) fn read(line: &str, draft: &mut Draft) -> Result<(), Miss> {
    let parts = parts(line).ok_or(Miss::Over(NOT_A_LINE))?;
    let size = |name: &str| SIZES.iter().position(|known| *known == name).map(Field::Size);
    for (field, at) in [(size("bytes"), BYTES), (size("totalBytes"), TOTAL_BYTES)] {
        if let Some(field) = field {
            draft.take(field, parts[at]);
        }
    }
    draft.take_time(0, parts[TIME]);
    draft.take_client(parts[CLIENT]);
    draft.take(Field::Class, parts[CLASS]);
    for (span, at) in [(Span::FirstByte, TURN_AROUND), (Span::Sending, TRANSFER)] {
        if let Ok(value) = parts[at].parse::<f64>() {
            draft.span(span, 1e6 * value);
        }
    }
    Ok(())
}

/// Returns whether a line is in this format.
pub(super) fn is_line(line: &str) -> bool {
    parts(line).is_some()
}

const TIME: usize = 4;
const BYTES: usize = 5;
const CLIENT: usize = 6;
const STATUS: usize = 7;
const CLASS: usize = 14;
const TLS_VERSION: usize = 17;
const TOTAL_BYTES: usize = 21;
const TURN_AROUND: usize = 32;
const TRANSFER: usize = 33;
/// Fields up to the last that counts.
const FIELDS: usize = TRANSFER + 1;

fn parts(line: &str) -> Option<[&str; FIELDS]> {
    let mut fields = line.split_ascii_whitespace();
    let mut parts = [""; FIELDS];
    for part in &mut parts {
        *part = fields.next()?;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = parts[TIME].split('.').next().is_some_and(|s| s.len() >= 9 && digits(s));
    let is_status = parts[STATUS].len() == 3 && digits(parts[STATUS]);
    let is_tls = parts[TLS_VERSION].starts_with("TLS") || parts[TLS_VERSION] == "-";
    let is_line = digits(parts[0]) && is_time && is_status && is_tls && digits(parts[BYTES]);
    is_line.then_some(parts)
}
