//! Ranges of values with a step: `1..10 Mbit/s step 1 Mbit/s`.

use std::fmt;

/// Returns the values of a range in ascending order, at most `most`, each with its unit:
/// `FROM..TO UNIT step STEP UNIT` adds the step, `FROM..TO UNIT step xFACTOR` multiplies. No value
/// exceeds the end. Returns `None` if the text is not a range.
///
/// # Errors
/// If a range is incomplete, its step never reaches the end, or it has too many values.
pub fn steps(text: &str, most: usize) -> Result<Option<Vec<String>>, RangeError> {
    Range::read(text)?.map(|range| range.values(most)).transpose()
}

/// Why a text that looks like a range is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeError {
    /// The text as written.
    pub text: String,
    /// What is wrong with it.
    pub mistake: Mistake,
}

/// What is wrong with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// There is no step.
    NoStep,
    /// There is no end.
    NoEnd,
    /// The units of start, end and step differ.
    UnitsDiffer,
    /// Steps never reach the end.
    LeadsNowhere,
    /// There are more values than this.
    TooMany {
        /// Largest number of values.
        most: usize,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.mistake {
            Mistake::NoStep => "there is no step",
            Mistake::NoEnd => "there is no end",
            Mistake::UnitsDiffer => "the units differ",
            Mistake::LeadsNowhere => "the step never reaches the end",
            Mistake::TooMany { most } => {
                return write!(f, "{} has more than {most} values: write a larger step", self.text);
            }
        };
        let example = "1..10 Mbit/s step 1 Mbit/s, or 10..80 ms step x2";
        write!(f, "{what} in the range \"{}\": write {example}", self.text)
    }
}

impl std::error::Error for RangeError {}

/// `FROM..TO UNIT step STEP UNIT`, or `step xFACTOR`.
struct Range {
    from: Decimal,
    to: Decimal,
    step: Step,
    unit: String,
    text: String,
}

enum Step {
    Plus(Decimal),
    Times(Decimal),
}

impl Range {
    /// Reads a range; `None` if the text is a list.
    fn read(text: &str) -> Result<Option<Range>, RangeError> {
        let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
        let Some((from, from_unit)) = quantity(from) else { return Ok(None) };
        let wrong = |mistake| Err(RangeError { text: text.trim().to_string(), mistake });
        let Some((to, step)) = rest.split_once(" step ") else { return wrong(Mistake::NoStep) };
        let Some((to, unit)) = quantity(to) else { return wrong(Mistake::NoEnd) };
        let step = step.trim();
        let factor = step.strip_prefix(['x', '*']).map(|factor| quantity(factor.trim()));
        let step = match (factor, quantity(step)) {
            (Some(Some((factor, ""))), _) if factor.is_above(&Decimal::ONE) => Step::Times(factor),
            (None, Some((step, its))) if its == unit && step.is_above(&Decimal::ZERO) => {
                Step::Plus(step)
            }
            (None, Some((_, its))) if its != unit => return wrong(Mistake::UnitsDiffer),
            _ => return wrong(Mistake::LeadsNowhere),
        };
        if !from_unit.is_empty() && from_unit != unit {
            return wrong(Mistake::UnitsDiffer);
        }
        if from.is_above(&to) || from.digits == 0 && matches!(step, Step::Times(_)) {
            return wrong(Mistake::LeadsNowhere);
        }
        let (unit, text) = (unit.to_string(), text.trim().to_string());
        Ok(Some(Range { from, to, step, unit, text }))
    }

    /// Returns the values from the first to the last that does not exceed the end.
    fn values(&self, most: usize) -> Result<Vec<String>, RangeError> {
        let (mut values, mut next) = (Vec::new(), Some(self.from));
        while let Some(value) = next.filter(|value| !value.is_above(&self.to)) {
            if values.len() == most {
                let mistake = Mistake::TooMany { most };
                return Err(RangeError { text: self.text.clone(), mistake });
            }
            let space = if self.unit.is_empty() { "" } else { " " };
            values.push(format!("{}{space}{}", value.text(), self.unit));
            next = match &self.step {
                Step::Plus(step) => value.plus(step),
                Step::Times(factor) => value.times(factor),
            };
        }
        Ok(values)
    }
}

/// Splits a number from the text after it.
fn quantity(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((Decimal::read(&text[..end])?, text[end..].trim()))
}

/// An exact decimal number: three times 0.1 is 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    /// Number of digits after the point.
    places: u32,
}

impl Decimal {
    const ZERO: Decimal = Decimal { digits: 0, places: 0 };
    const ONE: Decimal = Decimal { digits: 1, places: 0 };

    fn read(text: &str) -> Option<Decimal> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let all = format!("{whole}{part}");
        if whole.is_empty() || all.len() > 18 || text.ends_with('.') {
            return None;
        }
        Some(Decimal { digits: all.parse().ok()?, places: part.len() as u32 }.trimmed())
    }

    fn trimmed(mut self) -> Decimal {
        while self.places > 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.places -= 1;
        }
        self
    }

    /// Returns both with the same number of digits after the point.
    fn aligned(&self, other: &Decimal) -> Option<(i128, i128, u32)> {
        let places = self.places.max(other.places);
        let digits = |n: &Decimal| n.digits.checked_mul(10i128.checked_pow(places - n.places)?);
        Some((digits(self)?, digits(other)?, places))
    }

    fn is_above(&self, other: &Decimal) -> bool {
        self.aligned(other).is_none_or(|(own, others, _)| own > others)
    }

    /// Returns the sum, or `None` if it has too many digits.
    fn plus(&self, other: &Decimal) -> Option<Decimal> {
        let (own, others, places) = self.aligned(other)?;
        Some(Decimal { digits: own.checked_add(others)?, places }.trimmed())
    }

    fn times(&self, other: &Decimal) -> Option<Decimal> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Decimal { digits, places: self.places.checked_add(other.places)? }.trimmed())
    }

    fn text(&self) -> String {
        let scale = 10i128.pow(self.places.min(38));
        let (whole, part) = (self.digits / scale, self.digits % scale);
        match self.places {
            0 => whole.to_string(),
            places => format!("{whole}.{part:0width$}", width = places as usize),
        }
    }
}
