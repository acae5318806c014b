//! Numbers of bytes.

use crate::text::{self, ParseError, Quantity};
use std::fmt;
use std::str::FromStr;

pub(crate) const BYTES: Quantity = Quantity {
    wanted: "a number of bytes",
    measures: "data",
    example: "64 kB",
    usual: &["B", "kB"],
    step: "1 B",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
    ],
    misspelt: &[("byte", "B"), ("bytes", "B"), ("k", "kB"), ("m", "MB"), ("g", "GB")],
};

const DECIMAL: [(&str, u64); 4] =
    [("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
const BINARY: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }
    /// Returns the number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = ParseError;
    /// Reads "1.5 MB", "64 kB", "64 KiB", "200 B".
    fn from_str(text: &str) -> Result<Bytes, ParseError> {
        text::parse(text, &BYTES).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// Writes the exact number: the text reads back as the same number. Uses powers of 1024 where
    /// that is shorter ("64 KiB", not "65.536 kB").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = text::print(self.0, &DECIMAL);
        let whole = |(_, factor): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*factor);
        match BINARY.iter().rev().find(whole) {
            Some((unit, factor)) => {
                let binary = format!("{} {unit}", self.0 / factor);
                f.pad(if binary.len() < decimal.len() { &binary } else { &decimal })
            }
            None => f.pad(&decimal),
        }
    }
}
