//! Fractions of a whole.

use crate::text::{self, ParseError, Quantity, Written};
use std::fmt;
use std::str::FromStr;

pub(crate) const FRACTION: Quantity = Quantity {
    wanted: "a fraction",
    measures: "fractions",
    example: "1.5 %",
    usual: &["%"],
    step: "0.000000000001 %",
    units: &[("%", 1)],
    misspelt: &[("percent", "%"), ("pct", "%"), ("per cent", "%")],
};

/// A fraction of a whole: 0.015 for "1.5 %". It is finite and not negative, but may exceed the
/// whole: a ratio can be "250 %".
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// Creates a fraction of 1; negative, infinite and NaN values become zero.
    pub fn new(part: f64) -> Fraction {
        if part.is_finite() && part > 0.0 { Fraction(part) } else { Fraction(0.0) }
    }
    /// Returns the fraction of 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Fraction {
    type Err = ParseError;
    /// Reads "1.5 %", "0.01 %".
    fn from_str(text: &str) -> Result<Fraction, ParseError> {
        let written = Written::split(text, &FRACTION)?;
        // A bare 0.1 may mean a tenth of a per cent or a tenth of the whole; a bare 5 means 5 %.
        if written.unit.is_empty() && written.number.starts_with("0.") {
            let number = written.number;
            let write =
                format!("\"{number} %\", or \"{} %\" for {number} of 1", hundredfold(number));
            return Err(ParseError::BareNumber { write });
        }
        if written.unit != "%" {
            return Err(text::no_unit(&written, &FRACTION));
        }
        // Unlike a division, the decimal exponent rounds only once.
        match format!("{}e-2", written.number).parse::<f64>() {
            Ok(part) if part.is_finite() => Ok(Fraction(part)),
            _ => Err(ParseError::TooLarge { text: text.to_string(), wanted: FRACTION.wanted }),
        }
    }
}

impl fmt::Display for Fraction {
    /// Writes the exact fraction: the text reads back as the same fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", hundredfold(&self.0.to_string())))
    }
}

/// Moves the point of a decimal number two places to the right.
fn hundredfold(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let padded = format!("{fraction:0<2}");
    let (moved, rest) = padded.split_at(2);
    let digits = format!("{whole}{moved}");
    let whole = digits.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") }
}
