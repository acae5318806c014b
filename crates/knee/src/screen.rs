//! The two outputs: data on the standard output, words on the standard error.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

/// Prints data.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(not_printed)
}

/// Prints a document as indented JSON with a final newline.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::Internal(format!("cannot write the document: {error}")))?;
    print(&(text + "\n"))
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

/// Says something on the standard error. Nobody is there to be told when
/// that fails.
pub fn say(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Says what is wrong.
pub fn complain(text: &str) {
    let error = if colour(&stderr()) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    say(&format!("{error} {text}"));
}

/// Whether to write colours to `output`: to a terminal, unless `NO_COLOR`
/// says otherwise (<https://no-color.org>).
pub fn colour(output: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    output.is_terminal() && !unwanted
}
