//! Time in integer nanoseconds.

use crate::NANOS_PER_SECOND;
use crate::text::{self, ParseError, Quantity};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

pub(crate) const TIME: Quantity = Quantity {
    wanted: "a time",
    measures: "time",
    example: "60 ms",
    usual: &["ms", "s"],
    step: "1 ns",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", NANOS_PER_SECOND),
        ("min", 60 * NANOS_PER_SECOND),
    ],
    misspelt: &[
        ("nsec", "ns"),
        ("usec", "us"),
        // The Greek letter mu; the unit above has the micro sign.
        ("μs", "us"),
        ("msec", "ms"),
        ("millisecond", "ms"),
        ("milliseconds", "ms"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("m", "min"),
        ("mins", "min"),
        ("minute", "min"),
        ("minutes", "min"),
    ],
};

/// Units in which a time is printed. Minutes are left out, because they are not a power of ten.
const PRINTED: [(&str, u64); 4] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NANOS_PER_SECOND)];

/// A point in time since the start of a run, or a span of time, in integer nanoseconds. One type
/// serves both, as in a transport's own arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of a run, or the empty span.
    pub const ZERO: Time = Time(0);
    /// Later than any time, or an unbounded span.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates a time of `n` nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Time {
        Time(n)
    }
    /// Creates a time of `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// Creates a time of `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// Creates a time of `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Time {
        Time(n * NANOS_PER_SECOND)
    }
    /// Creates a time of `seconds` seconds, rounded to the nearest nanosecond; negative values and
    /// NaN give zero.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Time {
        Time((seconds * NANOS_PER_SECOND as f64).round() as u64)
    }
    /// Returns the whole nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns the milliseconds with their fraction.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the seconds with their fraction.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns `self - earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
    /// Returns `self + other`, at most [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// Returns the span times a factor, rounded to the nearest nanosecond.
    #[inline]
    pub fn scale(self, factor: f64) -> Time {
        Time((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}
impl SubAssign for Time {
    #[inline]
    fn sub_assign(&mut self, other: Time) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, factor: u64) -> Time {
        Time(self.0 * factor)
    }
}
impl Div<u64> for Time {
    type Output = Time;
    #[inline]
    fn div(self, divisor: u64) -> Time {
        Time(self.0 / divisor)
    }
}
impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl FromStr for Time {
    type Err = ParseError;
    /// Reads "60 ms", "1.5 s", "250 us", "10 ns", "2 min".
    fn from_str(text: &str) -> Result<Time, ParseError> {
        text::parse(text, &TIME).map(Time)
    }
}

impl fmt::Display for Time {
    /// Writes the exact time: the text reads back as the same time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0 s");
        }
        f.pad(&text::print(self.0, &PRINTED))
    }
}
