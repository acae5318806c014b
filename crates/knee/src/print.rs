//! Prints documents in the format that was asked for.

use crate::arguments::Format;
use crate::failure::Failure;
use crate::screen;
use knee_present::Document;
use serde::Serialize;

/// Printing of a document.
pub trait Print {
    /// Prints it; `json` is the equivalent JSON document.
    fn print(&self, format: Format, json: &impl Serialize) -> Result<(), Failure>;

    /// Prints it; JSON contains the tables.
    fn print_tables(&self, format: Format) -> Result<(), Failure>;

    /// Prints it in a format other than JSON.
    fn print_without_json(&self, format: Format) -> Result<(), Failure>;
}

impl Print for Document {
    fn print(&self, format: Format, json: &impl Serialize) -> Result<(), Failure> {
        match format {
            Format::Json => screen::print_json(json),
            other => self.print_without_json(other),
        }
    }

    fn print_tables(&self, format: Format) -> Result<(), Failure> {
        self.print(format, &self.json())
    }

    fn print_without_json(&self, format: Format) -> Result<(), Failure> {
        screen::print(&match format {
            Format::Text | Format::Json => self.text(screen::layout()),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(true),
            Format::Latex => self.latex(),
        })
    }
}
