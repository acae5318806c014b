//! Formats values with the unit of their measure, for display.

use knee_scenario::Measure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit of a measured value, as JSON carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unit {
    /// Bits per second.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// A fraction, `0..=1`; printed in per cent.
    #[serde(rename = "fraction")]
    Fraction,
    /// A plain number.
    #[serde(rename = "1")]
    Number,
    /// Ratio to the value of other flows.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// Returns the unit of a measure's values.
    pub fn of(measure: &Measure) -> Unit {
        match measure.unit() {
            knee_scenario::measure::Unit::BitsPerSecond => Unit::BitsPerSecond,
            knee_scenario::measure::Unit::Seconds => Unit::Seconds,
            knee_scenario::measure::Unit::Bytes => Unit::Bytes,
            knee_scenario::measure::Unit::Fraction => Unit::Fraction,
            knee_scenario::measure::Unit::Number => Unit::Number,
        }
    }

    /// Formats a value as a scenario file writes it, to four digits: `"47.62 s"`, `0.8913`,
    /// `"never"`.
    pub fn write(self, value: f64) -> String {
        let text = match self {
            _ if value.is_infinite() => "never".to_string(),
            Unit::BitsPerSecond => scaled(value, &RATES, 4),
            Unit::Seconds => scaled(value, &TIMES, 4).replace('µ', "u"),
            Unit::Bytes => scaled(value, &SIZES, 4),
            Unit::Fraction => format!("{} %", significant(value * 100.0, 4)),
            Unit::Number | Unit::Ratio => return significant(value, 4),
        };
        format!("\"{text}\"")
    }

    /// Formats a value with its unit: `72.1 ms`, `9.41 Mbit/s`, `1.7 %`, `0.998`, `6.3 times`,
    /// `as much`; `never` for infinity. Digits are in groups of three.
    pub fn show(self, value: f64) -> String {
        if value.is_infinite() {
            return "never".to_string();
        }
        grouped(&match self {
            Unit::BitsPerSecond => scaled(value, &RATES, 3),
            Unit::Seconds => scaled(value, &TIMES, 3),
            Unit::Bytes => scaled(value, &SIZES, 3),
            Unit::Fraction => format!("{} %", significant(value * 100.0, 3)),
            // Four digits, because Jain's index is mostly between 0.99 and 1.
            Unit::Number => significant(value, 4),
            Unit::Ratio => match significant(value, 3).as_str() {
                "1" => "as much".to_string(),
                other => format!("{other} times"),
            },
        })
    }
}

/// Formats a count in groups of three digits.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Separates the digits before the point into groups of three by narrow spaces that do not break
/// (ISO 80000-1, section 7.3.1). `text` begins with a number.
fn grouped(text: &str) -> String {
    let whole = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let mut groups = String::with_capacity(text.len());
    for (at, digit) in text[..whole].char_indices() {
        let follow = whole - at;
        if follow.is_multiple_of(3) && groups.ends_with(|c: char| c.is_ascii_digit()) {
            groups.push('\u{202f}');
        }
        groups.push(digit);
    }
    groups + &text[whole..]
}

const RATES: [(f64, &str); 4] = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const TIMES: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];

const SIZES: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];

/// Formats a value in the largest unit that keeps it at one or more after rounding.
fn scaled(value: f64, units: &[(f64, &str)], digits: i32) -> String {
    if value == 0.0 {
        return format!("0 {}", units[units.len() / 2].1);
    }
    let fits = |(size, _): &&(f64, &str)| value.abs() / size >= 0.9995;
    let (size, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    format!("{} {unit}", significant(value / size, digits))
}

/// Formats a value with `digits` significant digits; whole numbers in full, no trailing zeros.
fn significant(value: f64, digits: i32) -> String {
    if value == value.trunc() {
        return format!("{value:.0}");
    }
    let before_the_point = value.abs().log10().floor() as i32 + 1;
    let decimals = (digits - before_the_point).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_people_write_them() {
        assert_eq!(Unit::Seconds.show(0.072_14), "72.1 ms");
        assert_eq!(Unit::Seconds.show(0.060), "60 ms");
        assert_eq!(Unit::Seconds.show(42.0), "42 s");
        assert_eq!(Unit::Seconds.show(0.999_9), "1 s");
        assert_eq!(Unit::Seconds.show(0.0), "0 µs");
        // A scenario file uses `us`, which can be typed on every keyboard.
        assert_eq!(Unit::Seconds.write(25e-6), "\"25 us\"");
        assert_eq!(Unit::Seconds.show(f64::INFINITY), "never");
        assert_eq!(Unit::BitsPerSecond.show(9_412_345.0), "9.41 Mbit/s");
        assert_eq!(Unit::BitsPerSecond.show(316e6), "316 Mbit/s");
        assert_eq!(Unit::Bytes.show(65_536.0), "65.5 kB");
        assert_eq!(Unit::Bytes.show(720.0), "720 B");
        assert_eq!(Unit::Fraction.show(0.017), "1.7 %");
        assert_eq!(Unit::Fraction.show(0.000_050_1), "0.00501 %");
        assert_eq!(Unit::Number.show(0.998_37), "0.9984");
        assert_eq!(Unit::Number.show(0.999_71), "0.9997");
        assert_eq!(Unit::Number.show(1.5), "1.5");
        assert_eq!(Unit::BitsPerSecond.show(9.999e6), "10 Mbit/s");
        assert_eq!(Unit::Number.show(12_345.0), "12\u{202f}345");
        assert_eq!(Unit::Number.show(-1_234_567.5), "-1\u{202f}234\u{202f}568");
        assert_eq!(Unit::Seconds.show(-1234.6), "-1\u{202f}235 s");
        assert_eq!(Unit::Fraction.show(20.59), "2\u{202f}059 %");
        assert_eq!(Unit::Ratio.show(6.3), "6.3 times");
        assert_eq!(Unit::Ratio.show(1.002), "as much");
        assert_eq!(Unit::Ratio.show(0.0), "0 times");
        assert_eq!(Unit::Seconds.write(47.618), "\"47.62 s\"");
        assert_eq!(Unit::Fraction.write(0.020_341), "\"2.034 %\"");
        assert_eq!(Unit::Ratio.write(0.891_26), "0.8913");
        assert_eq!(Unit::Number.write(f64::INFINITY), "\"never\"");
    }
}
