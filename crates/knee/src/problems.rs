//! Shows errors in a file at their positions.

use crate::screen;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use knee_scenario::{Errors, Problem};
use knee_units::{is_hidden, printable};
use std::io::stderr;
use std::iter;
use std::ops::Range;

/// Maximum number of errors shown for a file.
const SHOWN_MAX: usize = 50;
/// Width of the quoted lines, columns.
const WIDTH: usize = 100;

/// Prints all errors to standard error.
pub fn show(errors: &Errors) {
    let colour = screen::colour(&stderr());
    let (shown, more) = errors.problems.split_at(errors.problems.len().min(SHOWN_MAX));
    shown.iter().for_each(|problem| screen::show(&rendered(errors, problem, colour)));
    if !more.is_empty() {
        screen::say(&format!("and {} more problems", more.len()));
    }
}

/// Renders an error with the lines around it.
pub fn rendered(errors: &Errors, problem: &Problem, colour: bool) -> String {
    let source = errors.source_of(problem);
    if source.text.is_empty() {
        let line = format!("error: {}: {}; {}", source.name, problem.message, problem.help);
        return printable(&line, |_| false).into_owned();
    }
    let (line, text, here) = lines_of(&source.text, &problem.span);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let (message, help) =
        (printable(&problem.message, |_| false), printable(&problem.help, |_| false));
    let here = AnnotationKind::Primary.span(here);
    let snippet = Snippet::source(visible(text))
        .line_start(line)
        .path(printable(&source.name, |_| false))
        .annotation(here);
    let report =
        Level::ERROR.primary_title(message).element(snippet).element(Level::HELP.message(help));
    renderer.term_width(WIDTH).render(&[report]) + "\n"
}

/// Longest part of a line that is shown, bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Returns the lines of a text that contain `span`, the number of the first, and the span within
/// them.
fn lines_of<'t>(text: &'t str, span: &Range<usize>) -> (usize, &'t str, Range<usize>) {
    let first = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let last = span.end.max(span.start);
    let end = text[last..].find('\n').map_or(text.len(), |end| last + end);
    let number = text[..first].matches('\n').count() + 1;
    let (first, end) =
        (first.max(span.start.saturating_sub(LINE_BYTES_MAX)), end.min(last + LINE_BYTES_MAX));
    let first = (first..=span.start).find(|at| text.is_char_boundary(*at)).unwrap_or(span.start);
    let end = (last..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(last);
    (number, &text[first..end], span.start - first..last - first)
}

/// Replaces each byte of hidden characters with a question mark, so that positions are preserved.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) && !matches!(character, '\n' | '\r' | '\t') {
            true => shown.extend(iter::repeat_n('?', character.len_utf8())),
            false => shown.push(character),
        }
    }
    shown
}
