//! Numbers and lists in words.

use knee_record::{Interval, Unit};

/// Stands for a missing value.
pub const NONE: &str = "–";

/// Relative width below which an interval is rounding error.
const ROUNDING: f64 = 1e-9;

/// Formats a value in its unit, or a dash.
pub fn value(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_string(), |value| unit.show(value))
}

/// Formats a time given in microseconds, or a dash.
pub fn time_us(microseconds: Option<f64>) -> String {
    value(Unit::Seconds, microseconds.map(|us| us / 1e6))
}

/// Formats a mean with its 95 % confidence interval, unless the interval has no width.
pub fn with_interval(show: impl Fn(f64) -> String, interval: &Interval) -> String {
    let mean = show(interval.mean);
    let ends = interval.low.zip(interval.high);
    // The mean of equal runs differs from them by rounding.
    let ends = ends.filter(|(low, high)| high - low > interval.mean.abs() * ROUNDING);
    match ends {
        Some((low, high)) => format!("{mean} ({} to {})", show(low), show(high)),
        None => mean,
    }
}

/// Wraps text at a width; the last line ends with a newline.
pub fn wrapped(width: usize, text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}
