//! Sizes of queues.

use crate::Bytes;
use crate::text::{self, ParseError, Quantity, Written};
use std::fmt;
use std::str::FromStr;

const BUFFER: Quantity = Quantity {
    wanted: "a buffer size",
    example: "1 BDP",
    usual: &["BDP", "packets"],
    step: "1 packet",
    measures: "buffer size",
    // The sizes of the byte units are not used, because `Bytes` reads them.
    units: &[("BDP", 1), ("packets", 1), ("packet", 1), ("B", 1), ("kB", 1), ("MB", 1)],
    misspelt: &[
        ("bdps", "BDP"),
        ("pkts", "packets"),
        ("pkt", "packet"),
        ("byte", "B"),
        ("bytes", "B"),
        ("kib", "KiB"),
        ("mib", "MiB"),
    ],
};

/// Size of a queue, as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferSize {
    /// Without limit: "unlimited".
    Unlimited,
    /// A multiple of the bandwidth-delay product: "8 BDP".
    Bdp(f64),
    /// "256 kB".
    Bytes(Bytes),
    /// "200 packets".
    Packets(u64),
}

impl FromStr for BufferSize {
    type Err = ParseError;
    /// Reads "8 BDP", "0.25 BDP", "256 kB", "200 packets", "unlimited".
    fn from_str(text: &str) -> Result<BufferSize, ParseError> {
        if text.trim() == "unlimited" {
            return Ok(BufferSize::Unlimited);
        }
        let written = Written::split(text, &BUFFER)?;
        let too_large = || ParseError::TooLarge { text: text.to_string(), wanted: BUFFER.wanted };
        match written.unit {
            "BDP" => match written.number.parse::<f64>() {
                Ok(times) if times.is_finite() => Ok(BufferSize::Bdp(times)),
                _ => Err(too_large()),
            },
            "packets" | "packet" => text::parse(text, &BUFFER).map(BufferSize::Packets),
            _ => match text.parse::<Bytes>() {
                Ok(bytes) => Ok(BufferSize::Bytes(bytes)),
                // Right kind of unit, but wrong number or spelling: the error of `Bytes` is more
                // precise.
                Err(error @ (ParseError::TooFine { .. } | ParseError::TooLarge { .. })) => {
                    Err(error)
                }
                Err(_) => Err(text::no_unit(&written, &BUFFER)),
            },
        }
    }
}

impl fmt::Display for BufferSize {
    /// Writes the exact size: the text reads back as the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferSize::Unlimited => f.pad("unlimited"),
            BufferSize::Bdp(times) => f.pad(&format!("{times} BDP")),
            BufferSize::Bytes(bytes) => bytes.fmt(f),
            BufferSize::Packets(1) => f.pad("1 packet"),
            BufferSize::Packets(n) => f.pad(&format!("{n} packets")),
        }
    }
}
