//! The two outputs: data on the standard output, words on the standard error.

use crate::failure::Failure;
use knee_units::{is_hidden, printable};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints data. What a name in it hides is spelt out; colours are the program's
/// own.
pub fn print(text: &str) -> Result<(), Failure> {
    let text = if colour(&stdout()) { coloured(text) } else { plain(text).into_owned() };
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(not_printed)
}

/// Begins a terminal's screen anew; where the output is none, nothing.
#[cfg(feature = "bond")]
pub fn clear() -> Result<(), Failure> {
    let mut out = stdout().lock();
    if !out.is_terminal() {
        return Ok(());
    }
    // To the upper left, and erase what is below (ECMA-48: CUP, ED).
    out.write_all(b"\x1b[H\x1b[J").or_else(not_printed)
}

/// Prints a document as indented JSON with a final newline.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::Internal(format!("cannot write the document: {error}")))?;
    print(&(escapes(&text) + "\n"))
}

/// Spells out what is hidden, but for line breaks.
fn plain(text: &str) -> Cow<'_, str> {
    printable(text, |c| c == '\n')
}

/// The same, but for colours: `ESC [`, numbers, `m`.
fn coloured(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut shown = plain(parts.next().unwrap_or("")).into_owned();
    for part in parts {
        let numbers = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let digit = |c: char| c.is_ascii_digit() || c == ';';
        let is_colour = numbers.is_some_and(|(numbers, _)| numbers.chars().all(digit));
        shown.push_str(if is_colour { "\u{1b}" } else { "\\u{1b}" });
        shown.push_str(&plain(part));
    }
    shown
}

/// JSON with hidden characters, which stand in strings alone, as escapes.
fn escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) && character != '\n' {
            true => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units).iter();
                shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
            false => shown.push(character),
        }
    }
    shown
}

/// A reader that has seen enough (`knee … | head`) is no failure.
pub fn not_printed(error: std::io::Error) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::Host(
            format!("cannot write to the standard output: {error}"),
            "send it elsewhere".to_string(),
        )),
    }
}

/// Columns that a line may have: those of the terminal, else 120.
pub fn width() -> usize {
    const ELSEWHERE: usize = 120;
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    match stdout().is_terminal() {
        true => comfy_table::Table::new().width().map_or(ELSEWHERE, usize::from),
        false => given.unwrap_or(ELSEWHERE).min(ELSEWHERE),
    }
}

/// Lines of whole words within the width, the last one with a newline.
pub fn wrapped(text: &str) -> String {
    wrapped_to(width(), text)
}

/// The same for a given width.
pub fn wrapped_to(width: usize, text: &str) -> String {
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

/// Whether a program reads the standard error.
static FOR_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// From here on the standard error is one JSON object a line.
pub fn tell_programs() {
    FOR_PROGRAMS.store(true, Ordering::Relaxed);
}

/// Whether [`tell_programs`] was called.
pub fn tells_programs() -> bool {
    FOR_PROGRAMS.load(Ordering::Relaxed)
}

/// An object in a line of its own, for programs. Nobody is there to be told when that
/// fails.
pub fn tell(object: &Value) {
    let _ = writeln!(stderr().lock(), "{}", escapes(&object.to_string()));
}

/// Says something on the standard error. What a name in it hides is spelt out.
pub fn say(text: &str) {
    show(&plain(text));
}

/// Says what is wrong.
pub fn complain(text: &str) {
    if tells_programs() {
        return tell(&json!({ "error": text }));
    }
    let error = if colour(&stderr()) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    show(&format!("{error} {}", printable(text, |_| false)));
}

/// Writes a text that holds nothing hidden but colours to the standard error.
/// Nobody is there to be told when that fails.
pub fn show(text: &str) {
    if tells_programs() {
        return tell(&json!({ "message": text }));
    }
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Whether to write colours to `output`: to a terminal, unless `NO_COLOR`
/// says otherwise (<https://no-color.org>).
pub fn colour(output: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    output.is_terminal() && !unwanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_pass() {
        let green = "\u{1b}[38;5;10mgood\u{1b}[39m\n";
        assert_eq!(coloured(green), green);
        let up = "\u{1b}[2Jgone \u{1b}]0;title\u{7}";
        assert_eq!(coloured(up), "\\u{1b}[2Jgone \\u{1b}]0;title\\u{7}");
    }

    #[test]
    fn words_are_not_broken() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim());
        assert!(lines.lines().all(|line| line.chars().count() <= 120 && !line.ends_with(' ')));
        assert_eq!(lines.split_whitespace().count(), 60);
    }

    /// A reader of JSON gets the same string.
    #[test]
    fn hidden_characters_are_escapes_in_json() {
        for text in ["\u{202e}abc\u{9b}31m", "\u{e0041}", "a\nb\u{7f}"] {
            let document = serde_json::to_string_pretty(&[text]).unwrap();
            let shown = escapes(&document);
            assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [text]);
            assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown}");
        }
    }
}
