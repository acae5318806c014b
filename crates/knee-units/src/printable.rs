//! Makes text from files safe to display: hidden characters are written as escapes.

use std::borrow::Cow;

/// Returns whether a character is invisible or changes how others are displayed: control
/// characters, characters that change the writing direction, and zero-width characters.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text with every hidden character escaped, as `\u{202e}`, except those that are
/// `kept`, such as line breaks.
pub fn printable(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let spelt = |character: char| is_hidden(character) && !kept(character);
    if !text.chars().any(spelt) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match spelt(character) {
            true => shown.extend(character.escape_unicode()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_stays() {
        for text in ["", "plain", "Zürich → 東京", "flow[0] µs", "עברית", "👍"] {
            assert_eq!(printable(text, |_| false), text);
        }
    }

    /// Escape sequences, a right-to-left override, a zero-width space.
    #[test]
    fn what_is_hidden_is_spelt_out() {
        let text = "a\u{1b}[31m\u{202e}b\u{200b}\u{7f}\u{9b}\nc";
        let shown = "a\\u{1b}[31m\\u{202e}b\\u{200b}\\u{7f}\\u{9b}";
        assert_eq!(printable(text, |c| c == '\n'), format!("{shown}\nc"));
        assert_eq!(printable(text, |_| false), format!("{shown}\\u{{a}}c"));
    }
}
