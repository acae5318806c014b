//! The extended log format of the W3C, as CloudFront and IIS write it: directives that begin with
//! `#`, one of which names the fields (<https://www.w3.org/TR/WD-logfile.html>).

use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::{Field, Span, Unit};
use super::values::Columns;

/// Reads the lines of a log in this format.
#[derive(Debug, Default)]
pub(super) struct Extended {
    columns: Option<Columns>,
    count: usize,
    /// IIS counts in milliseconds, others in seconds.
    is_iis: bool,
}

impl Extended {
    /// Returns whether a line begins a log in this format.
    pub fn is_begin(line: &str) -> bool {
        let directives = ["#Version", "#Fields", "#Software", "#Date"];
        directives.iter().any(|directive| line.starts_with(directive))
    }

    /// Parses a line. The fields may change on the way: a server that starts again writes them.
    pub fn read(&mut self, line: &str, draft: &mut Draft) -> Result<(), Miss> {
        if let Some(directive) = line.strip_prefix('#') {
            if let Some(software) = directive.strip_prefix("Software:") {
                self.is_iis = software.contains("Microsoft");
            }
            if let Some(fields) = directive.strip_prefix("Fields:") {
                let names: Vec<&str> = fields.split_whitespace().collect();
                self.count = names.len();
                let mut columns = Columns::named(&names)?;
                if self.is_iis {
                    columns.in_milliseconds();
                }
                self.columns = Some(columns);
            }
            return Err(Miss::Nothing);
        }
        let Some(columns) = &self.columns else {
            let problem = "no line \"#Fields: …\" before it names the fields".to_string();
            return Err(Miss::Wrong(problem, "add one, such as #Fields: date time sc-bytes"));
        };
        // CloudFront separates by tabs, IIS by single spaces.
        let with_tabs = line.contains('\t');
        let count = match with_tabs {
            true => columns.take(line.split('\t'), draft),
            false => columns.take(line.split_ascii_whitespace(), draft),
        };
        if count == self.count { Ok(()) } else { Err(Miss::Over(NOT_A_LINE)) }
    }
}

impl Columns {
    /// Durations are in milliseconds, as IIS writes them.
    fn in_milliseconds(&mut self) {
        for field in self.fields.iter_mut().flatten() {
            if let Field::Span(Span::Whole, Unit::Nanos(unit)) = field {
                *unit = 1e6;
            }
        }
    }
}
