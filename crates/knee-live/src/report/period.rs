//! Time interval in ISO 8601 notation: `2026-11-24/2026-11-25T06:00`.

use crate::LiveError;
use knee_record::rfc3339;
use std::fmt;
use std::str::FromStr;

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// A half-open interval of UTC times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its start, seconds since 1970.
    pub from_unix_s: u64,
    /// Its end, seconds since 1970.
    pub to_unix_s: u64,
}

impl Period {
    /// Whether it contains a time, nanoseconds since 1970.
    pub fn contains_ns(&self, unix_ns: u64) -> bool {
        (self.from_unix_s..self.to_unix_s).contains(&(unix_ns / 1_000_000_000))
    }
}

impl FromStr for Period {
    type Err = LiveError;

    fn from_str(text: &str) -> Result<Period, LiveError> {
        let wrong = |problem: String| LiveError::Period { text: text.to_string(), problem };
        let (from, to) = text.split_once('/').ok_or_else(|| {
            wrong(
                "it needs a begin and an end, in UTC: 2026-11-24T18:00/2026-11-24T22:00"
                    .to_string(),
            )
        })?;
        let read = |part: &str| {
            unix_s(part).ok_or_else(|| {
                wrong(format!(
                    "{part:?} is not a date such as 2026-11-24, or a date and time such as \
                 2026-11-24T18:00"
                ))
            })
        };
        let (from_unix_s, to_unix_s) = (read(from)?, read(to)?);
        if from_unix_s >= to_unix_s {
            return Err(wrong("it ends before it begins".to_string()));
        }
        Ok(Period { from_unix_s, to_unix_s })
    }
}

/// Formats it for reading back, without zero seconds.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", short(self.from_unix_s), short(self.to_unix_s))
    }
}

/// Formats a time without trailing zero fields.
pub(crate) fn short(unix_s: u64) -> String {
    let text = rfc3339(unix_s);
    let text = text.trim_end_matches('Z');
    let text = text.strip_suffix(":00").unwrap_or(text);
    text.strip_suffix("T00:00").unwrap_or(text).to_string()
}

/// Parses a date, `2026-11-24`, or a UTC time, `2026-11-24T06:00`, with optional seconds and `Z`.
/// Returns seconds since 1970.
pub fn unix_s(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = numbers::<3>(date, '-')?;
    let [hour, minute, second] = match numbers::<3>(time, ':') {
        Some(three) => three,
        None => numbers::<2>(time, ':').map(|[hour, minute]| [hour, minute, 0])?,
    };
    if !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day)? * DAY_S + hour * 3600 + minute * 60 + second;
    // Rejects days that the month does not have: they format differently.
    rfc3339(seconds - seconds % DAY_S)
        .starts_with(&format!("{year:04}-{month:02}-{day:02}"))
        .then_some(seconds)
}

fn numbers<const N: usize>(text: &str, between: char) -> Option<[u64; N]> {
    let digits = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
        true => part.parse().ok(),
        false => None,
    };
    let numbers: Option<Vec<u64>> = text.split(between).map(digits).collect();
    numbers?.try_into().ok()
}

/// Days from 1970-01-01 to a Gregorian date. Years begin in March, so that the leap day is the
/// last.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 719,468 days separate 1 March of year 0 from 1970.
    (year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `date -u -d TIME +%s`.
    #[test]
    fn times_are_those_of_date() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29T00:00Z", 951_782_400),
            ("2024-02-29T23:59:59Z", 1_709_251_199),
            ("2026-11-21 03:04:05", 1_795_230_245),
            ("2026-12-31T23:59", 1_798_761_540),
        ] {
            assert_eq!(unix_s(text), Some(seconds), "{text}");
        }
        for text in ["", "2026", "2026-02-29", "2026-13-01", "2026-11-24T24:00", "2026-11-2x"] {
            assert_eq!(unix_s(text), None, "{text}");
        }
    }

    #[test]
    fn a_period_is_written_as_it_is_read() {
        for text in ["2026-11-24/2026-11-25", "2026-11-24T06:30/2026-11-24T07:00:01"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
        for (text, part) in [
            ("2026-11-24", "begin and an end, in UTC: 2026-11-24T18:00/"),
            ("yesterday", "begin and an end"),
            ("2026-11-24/soon", "\"soon\" is not a date"),
            ("2026-11-25/2026-11-24", "ends before it begins"),
        ] {
            let error = text.parse::<Period>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
