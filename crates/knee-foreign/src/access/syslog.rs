//! What syslog, journald and the log streams of delivery networks put before a line.

/// Longest text before a line.
const HEAD_BYTES_MAX: usize = 300;

/// Returns what follows the time, the host and the program: after `Mar 12 10:00:00 host program[1]: `
/// (RFC 3164), the same with a date of ISO 8601, or seven fields and the structured data (RFC 5424);
/// each with a priority before it or without. `None` if a line does not begin like that.
pub(super) fn after_head(line: &str) -> Option<&str> {
    let (rest, has_priority) = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((priority, rest)) if is_number(priority) => (rest, true),
        _ => (line, false),
    };
    if has_priority && let Some(rest) = rest.strip_prefix("1 ") {
        return rfc5424(rest);
    }
    if !begins_with_time(rest) {
        return None;
    }
    let mut end = rest.len().min(HEAD_BYTES_MAX);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    // The time has colons too, but no space after them.
    let at = rest[..end].find(": ")?;
    Some(rest[at + 2..].trim_start())
}

/// Returns the object in JSON at the end of a line, which may stand behind a text of any kind.
pub(super) fn object(line: &str) -> Option<&str> {
    if line.starts_with('{') {
        return Some(line);
    }
    line.find("{\"").filter(|_| line.ends_with('}')).map(|at| &line[at..])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `Mar 12 10:` or `2026-03-12T10:`.
fn begins_with_time(text: &str) -> bool {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let is_month = || MONTHS.iter().any(|month| text.starts_with(month));
    let bytes = text.as_bytes();
    let is_iso = || {
        let year = bytes.get(..4).is_some_and(|year| year.iter().all(u8::is_ascii_digit));
        year && bytes.get(4) == Some(&b'-') && matches!(bytes.get(10), Some(b'T'))
    };
    is_iso() || is_month() && bytes.get(3) == Some(&b' ')
}

/// `TIMESTAMP HOST PROGRAM PROCID MSGID DATA LINE`.
fn rfc5424(text: &str) -> Option<&str> {
    let mut rest = text;
    for _ in 0..5 {
        (_, rest) = rest.split_once(' ')?;
    }
    if let Some(rest) = rest.strip_prefix("- ") {
        return Some(rest.trim_start_matches('\u{feff}'));
    }
    let (_, rest) = rest.strip_prefix('[')?.split_once("] ")?;
    Some(rest.trim_start_matches('\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_syslog_are_dropped() {
        for head in [
            "Mar 12 10:00:00 edge haproxy[412]: ",
            "<134>Mar 12 10:00:00 edge haproxy[412]: ",
            "<134>2016-07-04T22:37:26Z cache-sjc3128 LogTest[62959]: ",
            "2026-03-12T10:00:00.123456+00:00 edge nginx: ",
            "<134>1 2026-03-12T10:00:00Z edge nginx 412 - - ",
            "<134>1 2026-03-12T10:00:00Z edge nginx 412 ID47 [a@1 b=\"c\"] ",
        ] {
            assert_eq!(
                after_head(&format!("{head}192.0.2.1 - x: y")),
                Some("192.0.2.1 - x: y"),
                "{head}"
            );
        }
        for line in ["192.0.2.1 - - [12/Mar/2026:10:00:00 +0000] x: y", "", "<x>", "Mar", "<1>1 a"]
        {
            assert_eq!(after_head(line), None, "{line}");
        }
    }
}
