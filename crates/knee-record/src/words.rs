//! Names, sentences and intervals in words.

use knee_units::statistics::Interval;

/// Relative width below which an interval is rounding error.
const ROUNDING: f64 = 1e-9;

/// Returns the text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Joins names: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[impl AsRef<str>]) -> String {
    joined(names, "and")
}

/// Joins alternatives: `a`, `a or b`, `a, b or c`.
pub fn listed_or(names: &[impl AsRef<str>]) -> String {
    joined(names, "or")
}

fn joined(names: &[impl AsRef<str>], conjunction: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_string(),
        [head @ .., last] => format!("{} {conjunction} {last}", head.join(", ")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_capitals() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a".to_string()]), "a");
        assert_eq!(listed_or(&["a", "b", "c"]), "a, b or c");
        assert_eq!(capitalised("two"), "Two");
    }
}
