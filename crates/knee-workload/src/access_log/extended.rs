//! The extended log format of the W3C, as CloudFront and IIS write it: directives that begin with
//! `#`, one of which names the fields (<https://www.w3.org/TR/WD-logfile.html>).

use super::fields::{Field, More};
use super::read::{Columns, Miss, NOT_A_LINE};

/// Reads the lines of a log in this format.
#[derive(Default)]
pub(super) struct Extended {
    columns: Option<Columns>,
    count: usize,
}

impl Extended {
    /// Parses a line. The fields may change on the way: a server that starts again writes them.
    pub fn read(&mut self, line: &str) -> Result<(u64, More), Miss> {
        if let Some(directive) = line.strip_prefix('#') {
            if let Some(fields) = directive.strip_prefix("Fields:") {
                let names: Vec<&str> = fields.split_whitespace().collect();
                self.count = names.len();
                self.columns = Some(Columns::named(&names)?);
            }
            return Err(Miss::Nothing);
        }
        let Some(columns) = &self.columns else {
            let problem = "no line \"#Fields: …\" before it names the fields".to_string();
            return Err(Miss::Wrong(problem, "add one, such as #Fields: date time sc-bytes"));
        };
        // CloudFront separates by tabs, IIS by single spaces.
        let values: Vec<&str> = match line.contains('\t') {
            true => line.split('\t').collect(),
            false => line.split_whitespace().collect(),
        };
        if values.len() != self.count {
            return Err(Miss::Over(NOT_A_LINE));
        }
        columns.take(|at| values.get(at).copied().unwrap_or_default())
    }
}

impl Columns {
    fn take<'v>(&self, value: impl Fn(usize) -> &'v str) -> Result<(u64, More), Miss> {
        let size = super::read::size_of(value(self.size))?;
        let mut more = More::default();
        self.fields.iter().for_each(|(at, field): &(usize, Field)| more.take(*field, value(*at)));
        Ok((size, more))
    }
}
