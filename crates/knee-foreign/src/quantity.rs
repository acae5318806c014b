//! What the values of a table mean, and the units in which they are written.

use knee_units::{Rate, Time};

/// What changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A rate, bit/s.
    Rate,
    /// A delay, seconds.
    Delay,
    /// A part of the packets that is lost, of one.
    Loss,
}

const RATES: [(&str, f64); 10] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
    ("KiB/s", 8192.0),
    ("MiB/s", 8_388_608.0),
];
/// Sizes, bits.
const SIZES: [(&str, f64); 9] = [
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("B", 8.0),
    ("kB", 8e3),
    ("MB", 8e6),
    ("GB", 8e9),
    ("KiB", 8192.0),
    ("MiB", 8_388_608.0),
];
const TIMES: [(&str, f64); 6] =
    [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
const PARTS: [(&str, f64); 1] = [("%", 0.01)];

/// Units with their size.
pub(crate) type Units = &'static [(&'static str, f64)];

/// Units of the amount that a row of a rate counts.
pub(crate) const AMOUNTS: Units = &SIZES;
/// Units of a time.
pub(crate) const SPANS: Units = &TIMES;

impl Quantity {
    /// Returns its units.
    pub(crate) fn units(self) -> Units {
        match self {
            Quantity::Rate => &RATES,
            Quantity::Delay => &TIMES,
            Quantity::Loss => &PARTS,
        }
    }

    /// Returns what it is called, with the article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "a rate",
            Quantity::Delay => "a delay",
            Quantity::Loss => "a loss",
        }
    }

    /// Returns whether a value is possible.
    pub(crate) fn is_possible(self, value: f64) -> bool {
        let most = match self {
            // Ten terabits a second, and ten minutes.
            Quantity::Rate => 1e13,
            Quantity::Delay => 600.0,
            Quantity::Loss => 1.0,
        };
        (0.0..=most).contains(&value)
    }

    /// Returns a value with its unit and three digits.
    pub(crate) fn shown(self, value: f64) -> String {
        let rounded = |value: f64| {
            let digit = 10_f64.powi((value.max(1.0).log10().floor() as i32 - 2).max(0));
            ((value / digit).round() * digit).round()
        };
        match self {
            Quantity::Rate => Rate::from_bits_per_second(rounded(value) as u64).to_string(),
            Quantity::Delay => Time::from_nanos(rounded(value * 1e9) as u64).to_string(),
            Quantity::Loss => format!("{} %", (value * 1e6).round() / 1e4),
        }
    }
}

/// Returns the size of a unit.
pub(crate) fn size_of(units: Units, unit: &str) -> Option<f64> {
    units.iter().find(|(known, _)| *known == unit).map(|(_, size)| *size)
}

/// Lists units for an error.
pub(crate) fn listed(units: Units) -> String {
    units.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_three_digits_and_their_unit() {
        assert_eq!(Quantity::Rate.shown(12_345_678.0), "12.3 Mbit/s");
        assert_eq!(Quantity::Rate.shown(0.0), "0 bit/s");
        assert_eq!(Quantity::Delay.shown(0.030_123_4), "30.1 ms");
        assert_eq!(Quantity::Loss.shown(0.0123), "1.23 %");
    }
}
