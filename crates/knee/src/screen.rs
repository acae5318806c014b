//! Output: data on standard output, messages on standard error.

use crate::failure::Failure;
use knee_present::{Layout, words};
use knee_units::{is_hidden, printable};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints data. Escapes hidden characters except for the program's own colours.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&if colour(&stdout()) { coloured(text) } else { plain(text).into_owned() })
}

/// Writes text that contains no hidden characters except colours.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(not_printed)
}

/// Clears a terminal's screen; does nothing if the output is not a terminal.
pub fn clear() -> Result<(), Failure> {
    let mut out = stdout().lock();
    if !out.is_terminal() {
        return Ok(());
    }
    // Move to the upper left and erase below (ECMA-48: CUP, ED).
    out.write_all(b"\x1b[H\x1b[J").or_else(not_printed)
}

/// Prints a document as indented JSON with a final newline.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(unwritten)?;
    print(&(escapes(&text) + "\n"))
}

/// Prints a document as JSON on a line of its own.
pub fn print_json_line(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).map_err(unwritten)?;
    write(&(escapes(&text) + "\n"))
}

fn unwritten(error: serde_json::Error) -> Failure {
    Failure::Internal(format!("cannot write the document: {error}"))
}

/// Escapes hidden characters except line breaks.
fn plain(text: &str) -> Cow<'_, str> {
    printable(text, |c| c == '\n')
}

/// Escapes hidden characters except line breaks and colours (`ESC [`, numbers, `m`).
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

/// Escapes hidden characters in JSON, where they occur only in strings.
fn escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    // Nearly everything is visible ASCII, which is copied as a whole.
    while let Some(at) = rest.bytes().position(|byte| !matches!(byte, b' '..=b'~')) {
        let (visible, other) = rest.split_at(at);
        shown.push_str(visible);
        let mut others = other.chars();
        let Some(character) = others.next() else { break };
        rest = others.as_str();
        match is_hidden(character) && character != '\n' {
            true => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units).iter();
                shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
            false => shown.push(character),
        }
    }
    shown + rest
}

/// Ignores a closed pipe (`knee … | head`); other errors are failures.
pub fn not_printed(error: std::io::Error) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::Host(
            format!("cannot write to the standard output: {error}"),
            "redirect it elsewhere".to_string(),
        )),
    }
}

/// Maximum columns of a line: the terminal's width; elsewhere that of `COLUMNS`, or else 120.
pub fn width() -> usize {
    const ELSEWHERE: usize = 120;
    if stdout().is_terminal() {
        return comfy_table::Table::new().width().map_or(ELSEWHERE, usize::from);
    }
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    given.filter(|columns| *columns > 0).unwrap_or(ELSEWHERE)
}

/// Lines of the terminal; `None` if the output is not a terminal.
pub fn height() -> Option<usize> {
    let is_terminal = stdout().is_terminal();
    is_terminal.then(terminal_size::terminal_size).flatten().map(|(_, height)| height.0.into())
}

/// Wraps text at the width; the last line ends with a newline.
pub fn wrapped(text: &str) -> String {
    words::wrapped(width(), text)
}

/// How documents are laid out on standard output.
pub fn layout() -> Layout {
    Layout { width: width(), colour: colour(&stdout()) }
}

/// Whether standard error is read by a program.
static FOR_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// Makes standard error one JSON object per line.
pub fn tell_programs() {
    FOR_PROGRAMS.store(true, Ordering::Relaxed);
}

/// Whether [`tell_programs`] was called.
pub fn tells_programs() -> bool {
    FOR_PROGRAMS.load(Ordering::Relaxed)
}

/// Writes an object on a line of its own, for programs. A failure is ignored: there is nobody to
/// report it to.
pub fn tell(object: &Value) {
    let _ = writeln!(stderr().lock(), "{}", escapes(&object.to_string()));
}

/// Writes a message to standard error. Escapes hidden characters.
pub fn say(text: &str) {
    show(&plain(text));
}

/// Reports a problem.
pub fn complain(text: &str) {
    if tells_programs() {
        return tell(&json!({ "error": text }));
    }
    let error = if colour(&stderr()) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    show(&format!("{error} {}", printable(text, |_| false)));
}

/// Writes text to standard error that contains no hidden characters except colours. A failure is
/// ignored: there is nobody to report it to.
pub fn show(text: &str) {
    if tells_programs() {
        return tell(&json!({ "message": text }));
    }
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Whether to write colours to `output`: only to a terminal, and not if `NO_COLOR` is set
/// (<https://no-color.org>).
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

    /// A JSON parser recovers the same string.
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
