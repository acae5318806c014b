//! The bounds of claims, in the unit of the measure.

use crate::file::{BoundFile, ClaimFile};
use crate::measure::{Measure, Unit};
use crate::model::{OnRecord, Outcome};
use crate::read::{At, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::{Bytes, Fraction, ParseError, Rate, Time};
use std::str::FromStr;

/// Lower and upper bound.
pub(super) type Bounds = (Option<f64>, Option<f64>);

/// Returns the bounds in the measure's unit, or as a ratio.
pub(super) fn bounds(
    file: &ClaimFile,
    span: Span,
    measure: &Measure,
    recorded: Outcome,
    reading: &mut Reading<'_>,
) -> Bounds {
    let unit = unit(file, measure);
    let single = file.at_least.is_given() || file.at_most.is_given();
    let broken = [&file.at_least, &file.at_most, &file.equals, &file.within];
    if broken.iter().any(|entry| entry.is_broken()) || file.between.is_broken() {
        return (None, None);
    }
    match (single, file.between.at(), file.equals.at()) {
        (true, None, None) => {
            let bound = |entry: &Optional<BoundFile>, reading: &mut Reading<'_>| {
                entry.at().and_then(|at| quantity(at, unit, reading))
            };
            let bounds = (bound(&file.at_least, reading), bound(&file.at_most, reading));
            let place = file.at_most.span().unwrap_or(span);
            ascending(bounds, place, reading)
        }
        (false, Some(list), None) => between(list, unit, reading),
        (false, None, Some(value)) => around(value, &file.within, unit, reading),
        (false, None, None) if recorded == Outcome::NotTestedHere => (None, None),
        (false, None, None) => {
            let help = "add at_least, at_most, between, or equals and within";
            reading.problem(span, "the claim has no bound", help);
            (None, None)
        }
        _ => {
            let help = "keep at_least and at_most, or between, or equals and within";
            reading.problem(span, "the claim has more than one kind of bound", help);
            (None, None)
        }
    }
}

/// Returns the unit of the claim's values; a ratio has none.
fn unit(file: &ClaimFile, measure: &Measure) -> Unit {
    let relative = !matches!(file.relative_to, Optional::Absent) && !measure.compares();
    if relative { Unit::Number } else { measure.unit() }
}

/// Returns the recorded value with the allowed drift, in the measure's unit.
pub(super) fn on_record(
    file: &ClaimFile,
    measure: &Measure,
    reading: &mut Reading<'_>,
) -> Option<OnRecord> {
    let unit = unit(file, measure);
    let Some(measured) = file.measured.at() else {
        if let Some(drift) = file.drift.span() {
            let help = "add measured = the value on record";
            reading.problem(drift, "drift needs a value on record", help);
        }
        return None;
    };
    if measured.value == BoundFile::Text("never".to_string()) {
        return Some(OnRecord { value: f64::INFINITY, drift: 0.0 });
    }
    let value = quantity(measured, unit, reading)?;
    let Some(drift) = file.drift.at() else {
        if !file.drift.is_broken() {
            let help = "add drift = \"2 %\", or another allowed drift";
            reading.problem(measured.span, "a value on record needs an allowed drift", help);
        }
        return None;
    };
    let percent = match &drift.value {
        BoundFile::Text(text) => text.parse::<Fraction>().ok(),
        BoundFile::Number(_) => None,
    };
    let drift = match percent {
        Some(part) => part.get() * value,
        None => quantity(drift, unit, reading)?,
    };
    Some(OnRecord { value, drift })
}

fn ascending(bounds: Bounds, span: Span, reading: &mut Reading<'_>) -> Bounds {
    if let (Some(least), Some(most)) = bounds
        && least > most
    {
        reading.problem(span, "the upper bound is below the lower one", "write a larger one");
    }
    bounds
}

fn between(list: &At<Vec<At<BoundFile>>>, unit: Unit, reading: &mut Reading<'_>) -> Bounds {
    let [least, most] = list.value.as_slice() else {
        let help = "write between = [\"70 ms\", \"90 ms\"]";
        reading.problem(list.span, "between needs two bounds", help);
        return (None, None);
    };
    let bounds = (quantity(least, unit, reading), quantity(most, unit, reading));
    ascending(bounds, list.span, reading)
}

/// Returns the bounds around a value. The distance is in the value's own unit or, unless the value
/// is itself in percent, in percent of the value.
fn around(
    value: &At<BoundFile>,
    within: &Optional<BoundFile>,
    unit: Unit,
    reading: &mut Reading<'_>,
) -> Bounds {
    let middle = quantity(value, unit, reading);
    let Some(distance) = within.at() else {
        let help = "add within = the allowed distance";
        reading.problem(value.span, "equals needs within", help);
        return (None, None);
    };
    let percent = match &distance.value {
        BoundFile::Text(text) => text.parse::<Fraction>().ok(),
        BoundFile::Number(_) => None,
    };
    let distance = match (percent, middle) {
        (Some(part), Some(middle)) if unit != Unit::Fraction => Some(part.get() * middle),
        _ => quantity(distance, unit, reading),
    };
    let (Some(middle), Some(distance)) = (middle, distance) else { return (None, None) };
    (Some(middle - distance), Some(middle + distance))
}

/// Converts a bound to a number in its unit: bit/s, seconds, or a fraction.
fn quantity(at: &At<BoundFile>, unit: Unit, reading: &mut Reading<'_>) -> Option<f64> {
    let text = match (&at.value, unit) {
        (BoundFile::Number(number), Unit::Number) if *number >= 0.0 => return Some(*number),
        (BoundFile::Number(number), _) => number.to_string(),
        (BoundFile::Text(text), _) => text.clone(),
    };
    let parsed = match unit {
        Unit::BitsPerSecond => parse(&text, |rate: Rate| rate.as_bits_per_second() as f64),
        Unit::Seconds => parse(&text, Time::as_secs_f64),
        Unit::Bytes => parse(&text, |bytes: Bytes| bytes.get() as f64),
        Unit::Fraction => parse(&text, Fraction::get),
        // "98 %" is accepted for 0.98.
        Unit::Number => text.parse::<Fraction>().map(Fraction::get).map_err(|_| {
            let message = format!("expected a number without a unit, found \"{text}\"");
            (message, "write it without quotes, such as 0.98".to_string())
        }),
    };
    match parsed {
        Ok(value) => Some(value),
        Err((message, help)) => {
            reading.problem(at.span, message, help);
            None
        }
    }
}

fn parse<T: FromStr<Err = ParseError>>(
    text: &str,
    number: impl Fn(T) -> f64,
) -> Result<f64, (String, String)> {
    text.parse().map(number).map_err(|error| (error.message(), error.help()))
}
