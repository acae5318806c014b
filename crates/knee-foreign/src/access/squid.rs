//! Squid's native log (<http://www.squid-cache.org/Doc/config/logformat/>).

use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::{Field, Span};

/// Parses `time elapsed client code/status bytes method URL user hierarchy/peer type`: the time of
/// the end in seconds since 1970, and the time elapsed in milliseconds.
pub(super) fn read(line: &str, draft: &mut Draft) -> Result<(), Miss> {
    let parts = parts(line).ok_or(Miss::Over(NOT_A_LINE))?;
    let [time, elapsed, client, _, bytes, .., class] = parts;
    draft.take(Field::Size(0), bytes);
    draft.take_time(0, time);
    draft.take_client(client);
    draft.take(Field::Class, class);
    if let Ok(elapsed) = elapsed.parse::<f64>() {
        draft.span(Span::Whole, 1e6 * elapsed);
    }
    Ok(())
}

/// Returns whether a line is in this format.
pub(super) fn is_line(line: &str) -> bool {
    parts(line).is_some()
}

fn parts(line: &str) -> Option<[&str; 10]> {
    let mut fields = line.split_ascii_whitespace();
    let mut parts = [""; 10];
    for part in &mut parts {
        *part = fields.next()?;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let [time, elapsed, _, code, bytes, ..] = parts;
    let is_time =
        time.split_once('.').is_some_and(|(s, ms)| s.len() >= 9 && digits(s) && digits(ms));
    let is_code = code.rsplit_once('/').is_some_and(|(_, status)| digits(status));
    (is_time && digits(elapsed) && is_code && digits(bytes)).then_some(parts)
}
