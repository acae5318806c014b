//! Numbers and lists in words.

use knee_record::Unit;

pub use knee_record::{capitalised, count, listed, listed_or, with_interval};

/// Stands for a missing value.
pub const NONE: &str = "–";

/// Formats a value in its unit, or a dash.
pub fn value(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_string(), |value| unit.show(value))
}

/// Formats a rate in bit/s, or a dash.
pub fn rate(bps: Option<f64>) -> String {
    value(Unit::BitsPerSecond, bps)
}

/// Formats a time given in microseconds, or a dash.
pub fn time_us(microseconds: Option<f64>) -> String {
    value(Unit::Seconds, microseconds.map(|us| us / 1e6))
}

/// Formats a fraction in per cent, or a dash; below a hundredth of a per cent, the exact figure adds
/// nothing.
pub fn percent(fraction: Option<f64>) -> String {
    match fraction {
        Some(fraction) if fraction > 0.0 && fraction < 0.000_1 => "< 0.01 %".to_string(),
        fraction => value(Unit::Fraction, fraction),
    }
}

/// Formats a plain number with four digits, or a dash.
pub fn number(number: Option<f64>) -> String {
    value(Unit::Number, number)
}

/// Formats bytes in decimal units.
pub fn bytes(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else {
        return NONE.to_string();
    };
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{} {unit}", Unit::Number.show(bytes / size)),
        None => format!("{bytes:.0} B"),
    }
}

/// Formats a small number as a word.
pub fn in_words(value: usize) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    WORDS.get(value).map_or_else(|| count(value as u64), |word| word.to_string())
}

/// Formats a count with its noun: `one flow`, `two flows`.
pub fn counted(value: usize, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", in_words(value))
}

/// Quotes a word for a POSIX shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:%+,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_write_them() {
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
    fn counts_have_their_noun() {
        assert_eq!(counted(1, "flow"), "one flow");
        assert_eq!(counted(1000, "flow"), "1\u{202f}000 flows");
    }
}
