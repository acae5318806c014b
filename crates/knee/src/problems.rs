//! Shows errors in a file at their positions.

use crate::screen;
use knee_scenario::{Errors, Problem};
use knee_units::{is_hidden, printable};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::io::stderr;
use std::{fmt, iter};

/// Maximum number of errors shown for a file.
const SHOWN_MAX: usize = 50;
/// Width of a report for an unknown terminal, columns.
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
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let name = printable(&source.name, |_| false);
    let problem = Problem {
        message: printable(&problem.message, |_| false).into_owned(),
        help: printable(&problem.help, |_| false).into_owned(),
        ..problem.clone()
    };
    let source = NamedSource::new(name, visible(&source.text));
    let shown = Shown { problem: &problem, source };
    let mut text = String::new();
    match handler.render_report(&mut text, &shown) {
        Ok(()) => text,
        Err(_) => errors.to_string(),
    }
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

/// An error in miette's terms.
#[derive(Debug)]
struct Shown<'p> {
    problem: &'p Problem,
    source: NamedSource<String>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.problem.help))
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let here = LabeledSpan::new_with_span(None, self.problem.span.clone());
        Some(Box::new(std::iter::once(here)))
    }
}
