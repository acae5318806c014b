//! Times in the rows of a table: numbers with a unit, dates with a time of day, or a time of day.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

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

/// Notations of a date and a time of day without a zone; the first two are those of web servers
/// and HAProxy, that with dots and an underscore is G-NetTrack's.
const DATES: [&str; 10] = [
    "%d/%b/%Y:%H:%M:%S",
    "%d/%b/%Y:%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%dT%H:%M:%S%.f",
    "%Y.%m.%d_%H.%M.%S%.f",
    "%Y.%m.%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
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
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f %#z"))
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f %#z"))
            .ok()
    };
    let plain = || DATES.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let of_day = || {
        let at = NaiveTime::parse_from_str(text, "%H:%M:%S%.f");
        let at = at.or_else(|_| NaiveTime::parse_from_str(text, "%H:%M")).ok()?;
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

/// Parses a date without a time of day; returns the days since 1970.
pub(crate) fn day(text: &str) -> Option<i64> {
    let formats = ["%Y-%m-%d", "%Y/%m/%d", "%d/%b/%Y", "%d-%b-%Y"];
    let date = formats.iter().find_map(|format| NaiveDate::parse_from_str(text, format).ok())?;
    Some((date - NaiveDate::default()).num_days())
}

/// Larger numbers of seconds would be after the year 5000.
const SECONDS_MAX: f64 = 1e11;

/// Parses a number as an instant: seconds since some instant, or milliseconds and finer units since
/// 1970, by its magnitude. Returns nanoseconds.
pub(crate) fn epoch(text: &str) -> Option<i128> {
    let unit_ns = match text.parse::<f64>().ok()? {
        value if value < SECONDS_MAX => SECOND,
        value if value < SECONDS_MAX * 1e3 => 1_000_000,
        value if value < SECONDS_MAX * 1e6 => 1000,
        _ => 1,
    };
    decimal_ns(text, unit_ns)
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
            "12/Mar/2026:03:00:01 -0700",
            "12/Mar/2026:10:00:01",
            "12/Mar/2026:10:00:01.000",
            "2026-03-12T10:00:01+0000",
            "2026-03-12T10:00:01.0+00:00",
            "2026-03-12 12:00:01 +0200",
        ] {
            assert_eq!(calendar(text), expected, "{text}");
        }
        let half = Some(At::Instant(1_773_309_601 * SECOND + SECOND / 2));
        assert_eq!(calendar("2026-03-12T10:00:01.5Z"), half);
        assert_eq!(calendar("2026.03.12_10.00.01.5"), half);
        assert_eq!(calendar("10:00"), Some(At::OfDay(36_000_000_000_000)));
        assert_eq!(calendar("2026-03-12T10:00"), Some(At::Instant(1_773_309_600 * SECOND)));
        assert_eq!(calendar("10:00:01.25"), Some(At::OfDay(36_001_250_000_000)));
        for text in ["", "-", "yesterday", "2026-13-12 10:00:01", "25:00:00", "1773309601"] {
            assert_eq!(calendar(text), None, "{text}");
        }
    }

    /// A number has the unit that makes it an instant of our time.
    #[test]
    fn epochs_have_the_unit_of_their_magnitude() {
        for text in
            ["971211336", "971211336.0", "971211336000", "971211336000000", "971211336000000000"]
        {
            assert_eq!(epoch(text), Some(971_211_336 * SECOND), "{text}");
        }
        assert_eq!(epoch("971211336.25"), Some(971_211_336 * SECOND + SECOND / 4));
        assert_eq!((epoch("1.5"), epoch(""), epoch(".")), (Some(3 * SECOND / 2), None, None));
    }

    /// `date -u -d 2000-10-10 +%s` gives 971136000, which is 11,240 days.
    #[test]
    fn days_count_from_1970() {
        for text in ["2000-10-10", "2000/10/10", "10/Oct/2000"] {
            assert_eq!(day(text), Some(11_240), "{text}");
        }
        for text in ["", "2000-02-30", "10:00:00", "2000-10-10T00:00:00Z"] {
            assert_eq!(day(text), None, "{text}");
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
