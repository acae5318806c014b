//! Quantities with their unit in the type: [`Time`] in integer nanoseconds,
//! [`Rate`] in bits per second, [`Bytes`].
//!
//! What this crate never does: accept a bare number from a text. Every
//! quantity that a person writes names its unit ("10 Mbit/s", "60 ms").

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time since the start of a run, or a span of time, in integer
/// nanoseconds. One type serves both, as in a transport's own arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of a run; the empty span.
    pub const ZERO: Time = Time(0);
    /// Later than everything; an unbounded span.
    pub const MAX: Time = Time(u64::MAX);

    /// `n` nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Time {
        Time(n)
    }
    /// `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Time {
        Time(n * NANOS_PER_SECOND)
    }
    /// `seconds` seconds, rounded to the nearest nanosecond; negative and NaN give zero.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Time {
        Time((seconds * NANOS_PER_SECOND as f64).round() as u64)
    }
    /// Whole nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Milliseconds with their fraction.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds with their fraction.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - earlier`, or zero when `earlier` is later.
    #[inline]
    pub const fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
    /// `self + other`, at most [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// The span times a factor, rounded to the nearest nanosecond.
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

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Rate = Rate(0);

    /// `n` bits per second.
    #[inline]
    pub const fn from_bits_per_second(n: u64) -> Rate {
        Rate(n)
    }
    /// `n` bytes per second.
    #[inline]
    pub const fn from_bytes_per_second(n: u64) -> Rate {
        Rate(n * 8)
    }
    /// Bits per second.
    #[inline]
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }
    /// Bytes per second, rounded down.
    #[inline]
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0 / 8
    }
    /// Bytes that pass in `span`, rounded down.
    #[inline]
    pub fn bytes_in(self, span: Time) -> u64 {
        (u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NANOS_PER_SECOND))) as u64
    }
    /// Time that `bytes` need, rounded up; [`Time::MAX`] at rate zero.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND);
        Time(bits.div_ceil(u128::from(self.0)) as u64)
    }
    /// `bytes` over `span`, rounded down; zero for an empty span.
    #[inline]
    pub fn over(bytes: u64, span: Time) -> Rate {
        if span.0 == 0 {
            return Rate::ZERO;
        }
        Rate((u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND) / u128::from(span.0)) as u64)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }
    /// The number itself.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}
