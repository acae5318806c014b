//! Parses and prints quantities as people write them: a decimal number and a unit.

use std::fmt;

/// Why a text is not the expected quantity. [`fmt::Display`] writes both parts in one line;
/// [`message`](Self::message) and [`help`](Self::help) return them separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// A number without a unit.
    BareNumber {
        /// The number with the probable unit or units, in quotes.
        write: String,
    },
    /// A number is missing.
    NoNumber {
        /// The text as written.
        text: String,
        /// The expected quantity with its article: "a rate".
        wanted: &'static str,
        /// A valid text.
        example: &'static str,
    },
    /// An unknown unit.
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The unit or units to write instead.
        write: String,
    },
    /// A unit of another quantity.
    WrongQuantity {
        /// The unit as written.
        unit: String,
        /// What the unit measures: "time".
        measures: &'static str,
        /// The expected quantity with its article: "a rate".
        wanted: &'static str,
        /// A valid text.
        example: &'static str,
    },
    /// A comma in a number.
    Comma {
        /// The text as written.
        text: String,
        /// The text or texts to write instead, in quotes.
        write: String,
    },
    /// A negative number.
    Negative {
        /// The text as written.
        text: String,
        /// The expected quantity with its article: "a rate".
        wanted: &'static str,
    },
    /// More digits after the point than the quantity can hold.
    TooFine {
        /// The text as written.
        text: String,
        /// The smallest step: "1 ns".
        step: &'static str,
    },
    /// A number larger than the quantity can hold.
    TooLarge {
        /// The text as written.
        text: String,
        /// The expected quantity with its article: "a rate".
        wanted: &'static str,
    },
}

impl ParseError {
    /// Returns what is wrong.
    pub fn message(&self) -> String {
        match self {
            ParseError::BareNumber { .. } => "a bare number".to_string(),
            ParseError::NoNumber { text, wanted, .. } => format!("\"{text}\" is not {wanted}"),
            ParseError::UnknownUnit { unit, .. } => format!("unknown unit \"{unit}\""),
            ParseError::WrongQuantity { unit, measures, wanted, .. } => {
                format!("expected {wanted}, but \"{unit}\" is a unit of {measures}")
            }
            ParseError::Comma { text, .. } => format!("\"{text}\" has a comma"),
            ParseError::Negative { text, wanted } => {
                format!("\"{text}\" is negative, but {wanted} cannot be")
            }
            ParseError::TooFine { text, step } => format!("\"{text}\" is finer than {step}"),
            ParseError::TooLarge { text, wanted } => {
                format!("\"{text}\" is too large for {wanted}")
            }
        }
    }

    /// Returns what to write instead.
    pub fn help(&self) -> String {
        match self {
            ParseError::BareNumber { write } | ParseError::UnknownUnit { write, .. } => {
                format!("write {write}")
            }
            ParseError::Comma { write, .. } => format!("write {write}"),
            ParseError::NoNumber { example, .. } | ParseError::WrongQuantity { example, .. } => {
                format!("write \"{example}\"")
            }
            ParseError::Negative { .. } => "write it without the minus sign".to_string(),
            ParseError::TooFine { step, .. } => format!("write a whole multiple of {step}"),
            ParseError::TooLarge { .. } => "write a smaller one".to_string(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message(), self.help())
    }
}

impl std::error::Error for ParseError {}

/// The parser's description of a quantity.
pub(crate) struct Quantity {
    /// Name with its article: "a rate".
    pub wanted: &'static str,
    /// What its units measure: "data rate".
    pub measures: &'static str,
    /// A valid text.
    pub example: &'static str,
    /// The units suggested for a bare number.
    pub usual: &'static [&'static str],
    /// The smallest step: "1 ns".
    pub step: &'static str,
    /// Units with their size in steps, ascending.
    pub units: &'static [(&'static str, u64)],
    /// Common misspellings, in lower case, and the unit that is meant.
    pub misspelt: &'static [(&'static str, &'static str)],
}

/// A decimal number and the text after it.
pub(crate) struct Written<'t> {
    /// The number's digits: "1.5".
    pub number: &'t str,
    /// The unit, possibly empty.
    pub unit: &'t str,
}

impl<'t> Written<'t> {
    /// Splits a text into number and unit.
    pub(crate) fn split(text: &'t str, quantity: &Quantity) -> Result<Written<'t>, ParseError> {
        let text = text.trim();
        if text.strip_prefix(['-', '\u{2212}']).is_some_and(starts_with_digit) {
            return Err(ParseError::Negative { text: text.to_string(), wanted: quantity.wanted });
        }
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        if !is_decimal(number) {
            return Err(ParseError::NoNumber {
                text: text.to_string(),
                wanted: quantity.wanted,
                example: quantity.example,
            });
        }
        match with_comma(text) {
            Some(error) => Err(error),
            None => Ok(Written { number, unit: unit.trim_start() }),
        }
    }
}

/// Returns what to write instead of a number with a comma: `1.5` for `1,5`. Groups of three digits
/// may also be meant as thousands.
fn with_comma(text: &str) -> Option<ParseError> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".,".contains(c))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, rest) = number.split_once(',')?;
    let groups = || rest.split(['.', ',']);
    if !groups().all(starts_with_digit) {
        return None;
    }
    let thousands = !whole.starts_with('0') && rest.split('.').next()?.split(',').all(is_group);
    let without = format!("\"{}{unit}\"", number.replace(',', ""));
    let point = format!("with a point: \"{whole}.{rest}{unit}\"");
    let write = match (thousands, groups().count()) {
        (false, _) if rest.contains([',', '.']) => return None,
        (false, _) => format!("it {point}"),
        (true, 1) => format!("{without}, or {point}"),
        (true, _) => without,
    };
    Some(ParseError::Comma { text: text.to_string(), write })
}

/// Returns whether digits may follow a comma that separates thousands.
fn is_group(digits: &str) -> bool {
    digits.len() == 3
}

fn starts_with_digit(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a text consists of digits, optionally with a point and more digits.
fn is_decimal(number: &str) -> bool {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// Reads a quantity in steps.
pub(crate) fn parse(text: &str, quantity: &Quantity) -> Result<u64, ParseError> {
    let written = Written::split(text, quantity)?;
    let factor = unit(&written, quantity)?;
    in_steps(&written, factor, quantity)
}

/// Returns the size of the written unit, in steps.
fn unit(written: &Written<'_>, quantity: &Quantity) -> Result<u64, ParseError> {
    match quantity.units.iter().find(|(name, _)| *name == written.unit) {
        Some((_, factor)) => Ok(*factor),
        None => Err(no_unit(written, quantity)),
    }
}

/// Returns why the unit is not one of the quantity's.
pub(crate) fn no_unit(written: &Written<'_>, quantity: &Quantity) -> ParseError {
    if written.unit.is_empty() {
        let with = |unit: &&str| format!("\"{} {unit}\"", written.number);
        let write = quantity.usual.iter().map(with).collect::<Vec<_>>().join(" or ");
        return ParseError::BareNumber { write };
    }
    let unit = written.unit.to_string();
    let lower = unit.to_lowercase();
    let same = |(name, _): &&(&'static str, u64)| name.to_lowercase() == lower;
    if unit.ends_with("B/s") && quantity.units.iter().any(|(name, _)| *name == "bit/s") {
        let bits = unit.replace("B/s", "bit/s");
        return ParseError::UnknownUnit {
            write: format!("\"{bits}\" (1 {unit} = 8 {bits})"),
            unit,
        };
    }
    let misspelt = quantity.misspelt.iter().find(|(wrong, _)| *wrong == lower).map(|(_, r)| *r);
    if let Some(right) = misspelt.or(quantity.units.iter().find(same).map(|(name, _)| *name)) {
        return ParseError::UnknownUnit { unit, write: format!("\"{right}\"") };
    }
    let elsewhere = crate::QUANTITIES.iter().find(|q| q.units.iter().any(|(n, _)| *n == unit));
    if let Some(other) = elsewhere {
        return ParseError::WrongQuantity {
            unit,
            measures: other.measures,
            wanted: quantity.wanted,
            example: quantity.example,
        };
    }
    let names: Vec<&str> = quantity.units.iter().map(|(name, _)| *name).collect();
    ParseError::UnknownUnit { unit, write: format!("one of {}", names.join(", ")) }
}

/// Computes `number * factor` exactly, or returns why that is not possible.
fn in_steps(written: &Written<'_>, factor: u64, quantity: &Quantity) -> Result<u64, ParseError> {
    let text = || format!("{} {}", written.number, written.unit);
    let too_large = || ParseError::TooLarge { text: text(), wanted: quantity.wanted };
    let too_fine = || ParseError::TooFine { text: text(), step: quantity.step };
    let (whole, fraction) = written.number.split_once('.').unwrap_or((written.number, ""));
    let fraction = fraction.trim_end_matches('0');
    // Twelve digits are finer than any unit's step; u128 holds what remains.
    if fraction.len() > 12 {
        return Err(too_fine());
    }
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().unwrap_or(0) };
    let scaled = (u128::from(whole) * scale + fraction)
        .checked_mul(u128::from(factor))
        .ok_or_else(too_large)?;
    if scaled % scale != 0 {
        return Err(too_fine());
    }
    u64::try_from(scaled / scale).map_err(|_| too_large())
}

/// Writes `steps` exactly, in the unit that gives the shortest text with a value of at least one:
/// it reads back as the same number. The sizes of `units` are powers of ten, ascending from 1.
pub(crate) fn print(steps: u64, units: &[(&str, u64)]) -> String {
    let fitting = units.iter().filter(|(_, factor)| *factor <= steps.max(1));
    let texts = fitting.rev().map(|(name, factor)| exactly(steps, name, *factor));
    texts.min_by_key(String::len).unwrap_or_default()
}

fn exactly(steps: u64, name: &str, factor: u64) -> String {
    let (whole, rest) = (steps / factor, steps % factor);
    if rest == 0 {
        return format!("{whole} {name}");
    }
    let fraction = format!("{rest:0width$}", width = factor.ilog10() as usize);
    format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
}
