//! Times, classes and round-trip times of the lines of a log, in the notations of servers.

use knee_units::Time;

/// Names of the time column in logs, compared case-insensitively.
const TIMES: [&str; 10] = [
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "msec",
    "time_local",
    "time_iso8601",
    "datetime",
    "start_time",
    // Of Cloudflare.
    "EdgeStartTimestamp",
];
/// Name of the column of the date, if the time column has times of day.
const DATE: &str = "date";
/// Names of the column for the traffic class.
const CLASSES: [&str; 5] = ["class", "traffic_class", "service", "content_type", "type"];
/// Names of the column for the client's round-trip time, with its unit in nanoseconds; zero if the
/// unit is written with the number.
const RTTS: [(&str, f64); 11] = [
    ("rtt", 0.0),
    ("client_rtt", 0.0),
    // Of nginx, from the socket option TCP_INFO: microseconds.
    ("tcpinfo_rtt", 1e3),
    ("rtt_us", 1e3),
    ("client_rtt_us", 1e3),
    ("rtt_ms", 1e6),
    ("client_rtt_ms", 1e6),
    ("client_rtt_s", 1e9),
    ("rtt_s", 1e9),
    ("rtt_ns", 1.0),
    // Of Cloudflare.
    ("ClientTCPRTTMs", 1e6),
];

/// A field of a line other than its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field {
    Time,
    Date,
    Class,
    Rtt {
        /// Unit in nanoseconds; zero if it is written with the number.
        unit_ns: f64,
    },
}

impl Field {
    /// Returns the field in a column or key of this name, or `None` if it is none of these.
    pub fn named(name: &str) -> Option<Field> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if TIMES.iter().any(|known| is(known)) {
            return Some(Field::Time);
        }
        if is(DATE) {
            return Some(Field::Date);
        }
        if CLASSES.iter().any(|known| is(known)) {
            return Some(Field::Class);
        }
        let rtt = RTTS.iter().find(|(known, _)| is(known));
        rtt.map(|(_, unit_ns)| Field::Rtt { unit_ns: *unit_ns })
    }
}

/// When a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Nanoseconds since an instant common to all lines of a log.
    Instant(i64),
    /// Nanoseconds since a midnight.
    OfDay(i64),
}

/// Contents of a line other than its size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct More {
    time: Option<At>,
    /// Days since 1970.
    date: Option<i64>,
    pub class: Option<String>,
    pub rtt: Option<Time>,
}

impl More {
    /// Creates the contents of a line that has only a time.
    pub fn of_time(time: Option<At>) -> More {
        More { time, ..More::default() }
    }

    /// Returns the time: that of a day is the one of the column of dates, if there is one.
    pub fn at(&self) -> Option<At> {
        match (self.time, self.date) {
            (Some(At::OfDay(at)), Some(date)) => {
                Some(At::Instant(date.checked_mul(DAY)?.checked_add(at)?))
            }
            (time, _) => time,
        }
    }

    /// Parses a field's text.
    pub fn take(&mut self, field: Field, text: &str) {
        let text = text.trim();
        match field {
            _ if text.is_empty() || text == "-" => {}
            Field::Time => self.time = self.time.or_else(|| instant(text)),
            Field::Date => {
                self.date = date(text);
                if self.date.is_none() {
                    self.time = self.time.or_else(|| instant(text));
                }
            }
            Field::Class => self.class = Some(text.to_string()),
            Field::Rtt { unit_ns } => self.rtt = rtt(text, unit_ns),
        }
    }
}

fn rtt(text: &str, unit_ns: f64) -> Option<Time> {
    if unit_ns == 0.0 {
        return text.parse().ok();
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0)?;
    Some(Time::from_nanos((value * unit_ns) as u64))
}

/// Parses an instant in the notations of servers: seconds since some instant, or milliseconds and
/// finer units since 1970, depending on the magnitude; RFC 3339; `10/Oct/2000:13:55:36 -0700`; time
/// of day.
pub(crate) fn instant(text: &str) -> Option<At> {
    let since = |at: i128| i64::try_from(at).ok().map(At::Instant);
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return since(number(text)?);
    }
    let text = text.trim_start_matches('[').trim_end_matches(']');
    if text.contains('/') {
        return since(common(text)?);
    }
    match text.split_once(['T', ' ', 't']) {
        Some((date, time)) => since(rfc3339(date, time)?),
        None => i64::try_from(of_day(text)?).ok().map(At::OfDay),
    }
}

/// Parses `2000-10-10`, `2000/10/10` or `10/Oct/2000`; returns the days since 1970.
fn date(text: &str) -> Option<i64> {
    let mut parts = text.split(['-', '/']);
    let (first, month, last) = (parts.next()?, parts.next()?, parts.next()?);
    let month = month_of(month).or_else(|| month.parse().ok())?;
    let (year, day) = if first.len() == 4 { (first, last) } else { (last, first) };
    let is_year = year.len() == 4 && parts.next().is_none();
    let days = is_year.then(|| days(year.parse().ok()?, month, day.parse().ok()?))??;
    i64::try_from(days).ok()
}

/// Returns the number of a month by its abbreviation.
fn month_of(name: &str) -> Option<i128> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let place = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    Some(place as i128 + 1)
}

/// Larger numbers of seconds would be after the year 5000.
const SECONDS_MAX: f64 = 1e11;

fn number(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let value: f64 = text.parse().ok()?;
    let power = match value {
        value if value < SECONDS_MAX => 9,
        value if value < SECONDS_MAX * 1e3 => 6,
        value if value < SECONDS_MAX * 1e6 => 3,
        _ => 0,
    };
    let digits = format!("{part:0<9}");
    let fraction: i128 = digits.get(..power)?.parse().ok().or(Some(0).filter(|_| power == 0))?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    whole.checked_mul(10_i128.pow(power as u32))?.checked_add(fraction)
}

const SECOND: i128 = 1_000_000_000;
/// Length of a day, nanoseconds.
pub(crate) const DAY: i64 = 86_400_000_000_000;

/// Parses `10/Oct/2000:13:55:36 -0700`, as in the Common Log Format.
fn common(text: &str) -> Option<i128> {
    let (date, rest) = text.split_once(':')?;
    let mut parts = date.split('/');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = month_of(month)?;
    let (time, zone) = rest.split_once(' ').unwrap_or((rest, ""));
    let days = days(year.parse().ok()?, month, day.parse().ok()?)?;
    Some(days * 86_400 * SECOND + of_day(time)? - offset(zone)?)
}

fn rfc3339(date: &str, time: &str) -> Option<i128> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let days = days(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    let zone = time.find(['Z', 'z', '+', '-', ' ']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    Some(days * 86_400 * SECOND + of_day(time)? - offset(zone.trim())?)
}

/// Parses `13:55:36`, with a fraction or without seconds.
fn of_day(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let (hours, minutes) = (parts.next()?, parts.next()?);
    let seconds = parts.next().unwrap_or("0");
    let (hours, minutes): (i128, i128) = (hours.parse().ok()?, minutes.parse().ok()?);
    let sound = (0..24).contains(&hours) && (0..60).contains(&minutes) && parts.next().is_none();
    let seconds = number(seconds).filter(|_| sound)?;
    (seconds < 61 * SECOND).then_some((hours * 60 + minutes) * 60 * SECOND + seconds)
}

/// Parses `-0700`, `+02:00`, `Z`, or nothing.
fn offset(zone: &str) -> Option<i128> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (digits.get(..2)?, digits.get(2..4).unwrap_or("0"));
    let minutes: i128 = hours.parse::<i128>().ok()? * 60 + minutes.parse::<i128>().ok()?;
    Some(sign * minutes * 60 * SECOND)
}

/// Returns the days since 1970-01-01 in the Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `days_from_civil`).
fn days(year: i128, month: i128, day: i128) -> Option<i128> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d '2000-10-10 20:55:36' +%s` gives 971211336: the time in Apache's documentation,
    /// in all notations.
    #[test]
    fn one_instant_in_all_forms() {
        let since = |at: i128| Some(At::Instant(i64::try_from(at).unwrap()));
        let expected = since(971_211_336 * SECOND);
        for text in [
            "10/Oct/2000:13:55:36 -0700",
            "[10/Oct/2000:13:55:36 -0700]",
            "2000-10-10T20:55:36Z",
            "2000-10-10T22:55:36+02:00",
            "2000-10-10 20:55:36",
            "971211336",
            "971211336.0",
            "971211336000",
            "971211336000000",
            "971211336000000000",
        ] {
            assert_eq!(instant(text), expected, "{text}");
        }
        assert_eq!(instant("971211336.25"), since(971_211_336 * SECOND + SECOND / 4));
        assert_eq!(instant("2000-10-10T20:55:36.5Z"), since(971_211_336 * SECOND + SECOND / 2));
        assert_eq!(instant("10:00:01"), Some(At::OfDay(36_001_000_000_000)));
        assert_eq!(instant("1.5"), since(3 * SECOND / 2));
    }

    /// RFC 3339: 29 February exists in leap years; months end on the 31st at the latest.
    #[test]
    fn what_is_no_instant_is_none() {
        for text in ["", "-", "yesterday", "2000-13-10T20:55:36Z", "10/Foo/2000:1:1:1", "25:00:00"]
        {
            assert_eq!(instant(text), None, "{text}");
        }
        let Some(At::Instant(before)) = instant("2000-02-29T00:00:00Z") else { panic!() };
        assert_eq!(instant("2000-03-01T00:00:00Z"), Some(At::Instant(before + DAY)));
    }

    /// A date and a time of day in columns of their own are one instant, in either order.
    #[test]
    fn a_date_column_completes_the_time_of_day() {
        for (date, time) in [
            ("2000-10-10", "20:55:36"),
            ("10/Oct/2000", "20:55:36"),
            ("2000/10/10", "20:55:36.0"),
            ("2000-10-10T20:55:36Z", "-"),
            ("yesterday", "971211336"),
        ] {
            for order in [[0, 1], [1, 0]] {
                let mut more = More::default();
                for which in order {
                    let (name, text) = [("Date", date), ("time", time)][which];
                    more.take(Field::named(name).unwrap(), text);
                }
                assert_eq!(more.at(), Some(At::Instant(971_211_336_000_000_000)), "{date} {time}");
            }
        }
        let mut alone = More::default();
        alone.take(Field::Date, "2000-10-10");
        assert_eq!(alone.at(), None, "a day is not a time");
    }

    #[test]
    fn round_trip_times_have_the_unit_of_their_column() {
        let of = |name: &str, text: &str| {
            let mut more = More::default();
            more.take(Field::named(name).unwrap(), text);
            more.rtt
        };
        assert_eq!(of("tcpinfo_rtt", "38000"), Some(Time::from_millis(38)));
        assert_eq!(of("client_rtt_ms", "38"), Some(Time::from_millis(38)));
        assert_eq!(of("rtt", "38 ms"), Some(Time::from_millis(38)));
        assert_eq!(of("rtt", "38"), None, "of what unit?");
        assert_eq!(of("rtt_s", "-"), None);
    }
}
