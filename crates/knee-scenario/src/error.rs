//! Problems of a file, for the user: the place of each, what is wrong, and what to write instead.

use std::fmt;
use std::ops::Range;

/// A text that problems refer to: a file, or a `--set` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Name of the file, or `--set`.
    pub name: String,
    /// The file's contents; empty if it could not be read.
    pub text: String,
}

/// A single problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Index into [`Errors::sources`].
    pub source: usize,
    /// Byte range in that text.
    pub span: Range<usize>,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// All problems of a file, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// At least one.
    pub problems: Vec<Problem>,
    /// The texts that the problems refer to.
    pub sources: Vec<SourceText>,
}

impl Errors {
    /// Reports that a file cannot be read.
    pub(crate) fn unreadable(name: &str, reason: &str) -> Errors {
        let problem = Problem {
            source: 0,
            span: 0..0,
            message: format!("cannot read it: {reason}"),
            help: "write the name of a file that exists".to_string(),
        };
        let source = SourceText { name: name.to_string(), text: String::new() };
        Errors { problems: vec![problem], sources: vec![source] }
    }

    /// Returns the text that a problem refers to.
    pub fn source_of(&self, problem: &Problem) -> &SourceText {
        &self.sources[problem.source]
    }

    /// Returns the line and column where a problem begins, both from 1; the column counts
    /// characters.
    pub fn line_column(&self, problem: &Problem) -> (usize, usize) {
        let before = &self.source_of(problem).text[..problem.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Returns the line in which a problem begins.
    pub fn line_of(&self, problem: &Problem) -> &str {
        let text = &self.source_of(problem).text;
        let start = text[..problem.span.start].rfind('\n').map_or(0, |newline| newline + 1);
        text[start..].lines().next().unwrap_or("")
    }
}

impl fmt::Display for Errors {
    /// Writes plain text: place, message and help, then the line with the faulty part underlined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let name = &self.source_of(problem).name;
            if self.source_of(problem).text.is_empty() {
                write!(f, "{name}: {}\n  {}", problem.message, problem.help)?;
                continue;
            }
            let (line, column) = self.line_column(problem);
            let text = self.line_of(problem);
            let rest = text.chars().count().saturating_sub(column - 1);
            let snippet = &self.source_of(problem).text[problem.span.clone()];
            let marks = snippet.lines().next().unwrap_or("").chars().count().clamp(1, rest.max(1));
            writeln!(f, "{name}:{line}:{column}: {}", problem.message)?;
            writeln!(f, "  {text}")?;
            writeln!(f, "  {}{}", " ".repeat(column - 1), "^".repeat(marks))?;
            write!(f, "  {}", problem.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
