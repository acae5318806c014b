//! Formats numbers and text for display.

use knee_record::Unit;

/// Printed where there is no value.
pub(crate) const NONE: &str = "–";

/// Formats a rate in bit/s.
pub(crate) fn rate(bps: Option<f64>) -> String {
    show(bps, Unit::BitsPerSecond)
}

/// Formats a time given in microseconds.
pub(crate) fn time_us(microseconds: Option<f64>) -> String {
    show(microseconds.map(|us| us / 1e6), Unit::Seconds)
}

/// Formats a fraction in per cent; below a hundredth of a per cent, the exact figure adds nothing.
pub(crate) fn percent(fraction: Option<f64>) -> String {
    match fraction {
        Some(fraction) if fraction > 0.0 && fraction < 0.000_1 => "< 0.01 %".to_string(),
        fraction => show(fraction, Unit::Fraction),
    }
}

/// Replaces the space between a number and its unit so that no line breaks there.
pub(crate) fn unbroken(text: &str) -> String {
    const UNITS: [&str; 15] = [
        "%", "ns", "µs", "ms", "s", "min", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s",
        "Gbit/s", "times",
    ];
    let mut shown = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = word.trim_end_matches(|c: char| ".,;:)".contains(c));
        let after_number = shown.ends_with(|c: char| c.is_ascii_digit());
        if !shown.is_empty() {
            shown.push(if after_number && UNITS.contains(&unit) { '\u{a0}' } else { ' ' });
        }
        shown.push_str(word);
    }
    shown
}

/// Formats a plain number with four digits.
pub(crate) fn number(value: Option<f64>) -> String {
    show(value, Unit::Number)
}

fn show(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| NONE.to_string(), |value| unit.show(value))
}

/// Formats bytes in decimal units.
pub(crate) fn bytes(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else {
        return NONE.to_string();
    };
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{} {unit}", Unit::Number.show(bytes / size)),
        None => format!("{bytes:.0} B"),
    }
}

/// Formats a count in groups of three digits.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats a small number as a word.
pub(crate) fn in_words(value: usize) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    WORDS.get(value).map_or_else(|| count(value as u64), |word| word.to_string())
}

/// Formats a count with its noun: `one flow`, `two flows`.
pub(crate) fn counted(value: usize, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", in_words(value))
}

/// Returns the text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Joins names: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// Keeps only letters, digits and dashes, for addresses within the page.
pub(crate) fn slug(text: &str) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    };
    text.chars().map(plain).collect()
}

/// Returns how to cite a page. `manifest` is the file that names the build that did its runs.
pub(crate) fn cite(manifest: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "To cite: The Knee authors, Knee {version} (software), with the commit that {manifest} \
         names. knee rerun checks whether a folder is reproduced."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_people_write_them() {
        // Halfway between two figures: rounded as in the terminal.
        assert_eq!(time_us(Some(115_500.0)), "116 ms");
        assert_eq!(bytes(Some(150_000.0)), "150 kB");
        assert_eq!(bytes(Some(1_500.0)), "1.5 kB");
        assert_eq!(bytes(Some(999.0)), "999 B");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(123), "123");
        assert_eq!(time_us(Some(148_000.0)), "148 ms");
        assert_eq!(percent(Some(0.000_01)), "< 0.01 %");
        assert_eq!(percent(Some(0.0)), "0 %");
        assert_eq!(rate(None), NONE);
    }

    #[test]
    fn a_number_keeps_its_unit_on_the_line() {
        let text = unbroken("10 seeds: 25 % sooner (23 to 27 %), 0.1 to 1 MB, 2 on wifi.");
        let expected = "10 seeds: 25\u{a0}% sooner (23 to 27\u{a0}%), 0.1 to 1\u{a0}MB, 2 on wifi.";
        assert_eq!(text, expected);
    }

    #[test]
    fn lists_and_counts() {
        let parts = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&parts), "a, b and c");
        assert_eq!(counted(1, "flow"), "one flow");
        assert_eq!(counted(1000, "flow"), "1\u{202f}000 flows");
        assert_eq!(capitalised("two"), "Two");
        assert_eq!(slug("A3: <plain>"), "a3---plain-");
    }
}
