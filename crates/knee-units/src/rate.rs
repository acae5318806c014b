//! Data rates in bits per second.

use crate::text::{self, ParseError, Quantity};
use crate::{NANOS_PER_SECOND, Time};
use std::fmt;
use std::str::FromStr;

pub(crate) const RATE: Quantity = Quantity {
    wanted: "a rate",
    measures: "data rate",
    example: "10 Mbit/s",
    usual: &["Mbit/s"],
    step: "1 bit/s",
    units: &UNITS,
    misspelt: &[
        ("bps", "bit/s"),
        ("b/s", "bit/s"),
        ("bits/s", "bit/s"),
        ("kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("kbits/s", "kbit/s"),
        ("kbit", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("mbits/s", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gb/s", "Gbit/s"),
        ("gbits/s", "Gbit/s"),
        ("gbit", "Gbit/s"),
    ],
};

const UNITS: [(&str, u64); 4] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No data flows.
    pub const ZERO: Rate = Rate(0);

    /// Creates a rate of `n` bits per second.
    #[inline]
    pub const fn from_bits_per_second(n: u64) -> Rate {
        Rate(n)
    }
    /// Creates a rate of `n` bytes per second.
    #[inline]
    pub const fn from_bytes_per_second(n: u64) -> Rate {
        Rate(n * 8)
    }
    /// Returns the bits per second.
    #[inline]
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }
    /// Returns the bytes per second, rounded down.
    #[inline]
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0 / 8
    }
    /// Returns the bytes that pass in `span`, rounded down.
    #[inline]
    pub fn bytes_in(self, span: Time) -> u64 {
        (u128::from(self.0) * u128::from(span.as_nanos()) / (8 * u128::from(NANOS_PER_SECOND)))
            as u64
    }
    /// Returns the time that `bytes` need, rounded up; [`Time::MAX`] at rate zero.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND);
        Time::from_nanos(bits.div_ceil(u128::from(self.0)) as u64)
    }
    /// Returns the rate of `bytes` over `span`, rounded down; zero for an empty span.
    #[inline]
    pub fn over(bytes: u64, span: Time) -> Rate {
        /// One byte per nanosecond, bit/s.
        const BYTE: u64 = 8 * NANOS_PER_SECOND;
        match (span.as_nanos(), bytes.checked_mul(BYTE)) {
            (0, _) => Rate::ZERO,
            (nanos, Some(bits)) => Rate(bits / nanos),
            (nanos, None) => {
                Rate((u128::from(bytes) * u128::from(BYTE) / u128::from(nanos)) as u64)
            }
        }
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    /// Reads "10 Mbit/s", "1.5 Gbit/s", "64 kbit/s", "300 bit/s".
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        text::parse(text, &RATE).map(Rate)
    }
}

impl fmt::Display for Rate {
    /// Writes the exact rate: the text reads back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text::print(self.0, &UNITS))
    }
}
