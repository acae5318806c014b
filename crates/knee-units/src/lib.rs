//! Quantities with their unit in the type: [`Time`] in integer nanoseconds, [`Rate`] in bits per
//! second, [`Bytes`]; the [`Ecn`] codepoint, which links and endpoints share; and the lines of files
//! that other programs wrote ([`Lines`]), in which numbers have the unit of their format, with the
//! lists of numbers that are read from them ([`Packed`]).
//!
//! Beside them what every floor above needs: draws from random streams ([`random`]), algorithms by
//! name with typed parameters ([`registry`]), and all statistics ([`statistics`]).
//!
//! A bare number never becomes a quantity: every quantity that a user writes names its unit
//! ("10 Mbit/s", "60 ms").

mod buffer;
mod bytes;
mod ecn;
mod foreign;
mod fraction;
mod packed;
mod printable;
pub mod random;
mod range;
mod rate;
pub mod registry;
mod schema;
pub mod statistics;
mod text;
mod time;
mod whole;

pub use buffer::BufferSize;
pub use bytes::Bytes;
pub use ecn::Ecn;
pub use foreign::{ForeignFormat, GZIP, LineError, Lines, Unpacked, foreign_format, lines};
pub use fraction::Fraction;
pub use packed::Packed;
pub use printable::{is_hidden, printable};
pub use range::{Mistake, RangeError, steps};
pub use rate::Rate;
pub use text::ParseError;
pub use time::Time;
pub use whole::{list, whole};

use text::Quantity;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Every quantity, for messages about a unit of another quantity.
const QUANTITIES: [&Quantity; 4] = [&time::TIME, &rate::RATE, &bytes::BYTES, &fraction::FRACTION];
