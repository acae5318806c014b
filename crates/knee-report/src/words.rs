//! Text on pages: what must not break, names in addresses, how to cite.

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
    fn a_number_keeps_its_unit_on_the_line() {
        let text = unbroken("10 seeds: 25 % sooner (23 to 27 %), 0.1 to 1 MB, 2 on wifi.");
        let expected = "10 seeds: 25\u{a0}% sooner (23 to 27\u{a0}%), 0.1 to 1\u{a0}MB, 2 on wifi.";
        assert_eq!(text, expected);
    }

    #[test]
    fn addresses_have_plain_letters() {
        assert_eq!(slug("A3: <plain>"), "a3---plain-");
    }
}
