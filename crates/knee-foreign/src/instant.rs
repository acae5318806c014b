//! Times in the rows of a table: numbers with a unit, dates with a time of day, or a time of day.

use chrono::{DateTime, NaiveDateTime, NaiveTime, Timelike};

const SECOND: i128 = 1_000_000_000;
/// Length of a day, nanoseconds.
pub(crate) const DAY: i128 = 86_400 * SECOND;

/// When a row was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Nanoseconds since an instant common to all rows.
    Instant(i128),
    /// Nanoseconds since a midnight.
    OfDay(i128),
}

/// Notations of a date and a time of day without a zone; the second last one is that of G-NetTrack.
const DATES: [&str; 6] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%dT%H:%M:%S%.f",
    "%Y.%m.%d_%H.%M.%S%.f",
    "%Y.%m.%d %H:%M:%S%.f",
];

/// Parses a date with its time of day, or a time of day. A date without a zone is that of UTC.
pub(crate) fn calendar(text: &str) -> Option<At> {
    let nanos = |at: NaiveDateTime| {
        let at = at.and_utc();
        i128::from(at.timestamp()) * SECOND + i128::from(at.timestamp_subsec_nanos())
    };
    let zoned = || {
        DateTime::parse_from_rfc3339(text)
            .or_else(|_| DateTime::parse_from_str(text, "%d/%b/%Y:%H:%M:%S %z"))
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z"))
            .ok()
    };
    let plain = || DATES.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let of_day = || {
        let at = NaiveTime::parse_from_str(text, "%H:%M:%S%.f").ok()?;
        let seconds = i128::from(at.num_seconds_from_midnight());
        Some(seconds * SECOND + i128::from(at.nanosecond()))
    };
    // The most frequent first.
    match plain() {
        Some(at) => Some(At::Instant(nanos(at))),
        None => match zoned() {
            Some(at) => Some(At::Instant(nanos(at.naive_utc()))),
            None => of_day().map(At::OfDay),
        },
    }
}

/// Parses a decimal number of units of this many nanoseconds, exactly if it is written without an
/// exponent.
pub(crate) fn decimal_ns(text: &str, unit_ns: i128) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + part.len() == 0 || !plain(whole) || !plain(part) || whole.len() > 20 {
        let value: f64 = text.parse().ok()?;
        let nanos = value * unit_ns as f64;
        return (nanos.abs() < 1e30).then_some(nanos as i128);
    }
    let part = &part[..part.len().min(15)];
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let fraction = number(part)?.checked_mul(unit_ns)? / 10_i128.pow(part.len() as u32);
    let nanos = number(whole)?.checked_mul(unit_ns)?.checked_add(fraction)?;
    Some(if negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d '2026-03-12 10:00:01' +%s` gives 1773309601.
    #[test]
    fn one_instant_in_all_notations() {
        let expected = Some(At::Instant(1_773_309_601 * SECOND));
        for text in [
            "2026-03-12T10:00:01Z",
            "2026-03-12T11:00:01+01:00",
            "2026-03-12 10:00:01",
            "2026-03-12 10:00:01.000",
            "2026-03-12 12:00:01+02",
            "2026/03/12 10:00:01",
            "2026.03.12_10.00.01",
            "12/Mar/2026:10:00:01 +0000",
        ] {
            assert_eq!(calendar(text), expected, "{text}");
        }
        let half = Some(At::Instant(1_773_309_601 * SECOND + SECOND / 2));
        assert_eq!(calendar("2026-03-12T10:00:01.5Z"), half);
        assert_eq!(calendar("2026.03.12_10.00.01.5"), half);
        assert_eq!(calendar("10:00:01.25"), Some(At::OfDay(36_001_250_000_000)));
        for text in ["", "-", "yesterday", "2026-13-12 10:00:01", "25:00:00", "1773309601"] {
            assert_eq!(calendar(text), None, "{text}");
        }
    }

    #[test]
    fn decimal_numbers_are_exact() {
        assert_eq!(decimal_ns("1773309601.1", SECOND), Some(1_773_309_601_100_000_000));
        assert_eq!(decimal_ns("0.1", 1_000_000), Some(100_000));
        assert_eq!(decimal_ns("-2.5", SECOND), Some(-2_500_000_000));
        assert_eq!(decimal_ns(".5", SECOND), Some(SECOND / 2));
        assert_eq!(decimal_ns("1e3", 1), Some(1000));
        for text in ["", ".", "x", "nan", "inf", "1,5", "1e99"] {
            assert_eq!(decimal_ns(text, SECOND), None, "{text}");
        }
    }
}
