//! What is wrong with a file, shown in place.

use crate::screen;
use knee_scenario::{Errors, Problem};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::fmt;
use std::io::stderr;

/// Columns of a report whose reader's width is not known.
const WIDTH: usize = 100;

/// Shows every problem on the standard error.
pub fn show(errors: &Errors) {
    let colour = screen::colour(&stderr());
    errors.problems.iter().for_each(|problem| screen::say(&rendered(errors, problem, colour)));
}

/// A problem with the lines around it.
pub fn rendered(errors: &Errors, problem: &Problem, colour: bool) -> String {
    let source = errors.source_of(problem);
    if source.text.is_empty() {
        return format!("error: {}: {}; {}", source.name, problem.message, problem.help);
    }
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let shown = Shown { problem, source: NamedSource::new(&source.name, source.text.clone()) };
    let mut text = String::new();
    match handler.render_report(&mut text, &shown) {
        Ok(()) => text,
        Err(_) => errors.to_string(),
    }
}

/// A problem in miette's terms.
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
