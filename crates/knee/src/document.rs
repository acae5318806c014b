//! Output of a command: text and tables for display, or only the tables for programs. CSV and
//! Markdown contain every number in full precision.

use crate::arguments::Format;
use crate::failure::Failure;
use crate::screen;
use crate::table::Table;
use knee_lab::words::NONE;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Text and tables in order.
#[derive(Debug, Default)]
pub struct Document(Vec<Part>);

#[derive(Debug)]
enum Part {
    /// Text for a terminal only.
    Words(String),
    /// A sentence that is included in Markdown.
    Said(String),
    Table(Table),
}

impl Document {
    /// Adds text verbatim.
    pub fn words(mut self, text: impl Into<String>) -> Document {
        self.0.push(Part::Words(text.into()));
        self
    }

    /// Adds a sentence, which is wrapped and included in Markdown.
    pub fn said(mut self, text: impl Into<String>) -> Document {
        self.0.push(Part::Said(text.into()));
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Document {
        self.0.push(Part::Table(table));
        self
    }

    /// Appends another document.
    pub fn then(mut self, other: Document) -> Document {
        self.0.extend(other.0);
        self
    }

    /// Prints it; `json` is the equivalent JSON document.
    pub fn print(&self, format: Format, json: &impl Serialize) -> Result<(), Failure> {
        match format {
            Format::Json => screen::print_json(json),
            other => self.print_without_json(other),
        }
    }

    /// Prints it; JSON contains the tables.
    pub fn print_tables(&self, format: Format) -> Result<(), Failure> {
        self.print(format, &self.json())
    }

    /// Prints it in a format other than JSON.
    pub fn print_without_json(&self, format: Format) -> Result<(), Failure> {
        screen::print(&match format {
            Format::Text | Format::Json => self.text(),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(true),
        })
    }

    /// Renders it for display, within the width of the terminal.
    pub fn text(&self) -> String {
        let part = |part: &Part| match part {
            Part::Words(text) => text.clone(),
            Part::Said(text) => screen::wrapped(text),
            Part::Table(table) => table.text(),
        };
        self.0.iter().map(part).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let tables = self.0.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table.sheet(true)),
            _ => None,
        });
        tables.collect()
    }

    /// Renders CSV (RFC 4180). Several tables are merged: the first column names the table, and
    /// columns with the same name are shared.
    fn csv(&self) -> String {
        let sheets = self.sheets();
        let several = sheets.len() > 1;
        let mut heads: Vec<&str> = Vec::new();
        for head in sheets.iter().flat_map(|sheet| &sheet.heads) {
            if !heads.contains(&head.as_str()) {
                heads.push(head);
            }
        }
        let first = several.then(|| "table".to_string());
        let mut lines = line(first.into_iter().chain(heads.iter().map(|head| head.to_string())));
        for sheet in &sheets {
            let at: Vec<Option<usize>> =
                heads.iter().map(|head| sheet.heads.iter().position(|own| own == head)).collect();
            for row in &sheet.rows {
                let cells = at.iter().map(|at| at.map_or(String::new(), |at| row[at].text()));
                let first = several.then(|| sheet.name.clone());
                lines += &line(first.into_iter().chain(cells));
            }
        }
        lines
    }

    /// Renders tables as GitHub and GitLab accept them, with numbers in full or as displayed.
    pub fn markdown(&self, in_full: bool) -> String {
        let tables = self.0.iter().filter(|part| matches!(part, Part::Table(_))).count();
        let parts = self.0.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Said(text) => Some(format!("{}\n", escaped(text.trim()))),
            Part::Table(table) => {
                let sheet = table.sheet(in_full);
                let title = format!("**{}**\n\n", escaped(&sheet.name));
                let titled = tables > 1 && !sheet.name.is_empty();
                Some(format!("{}{}", if titled { &title } else { "" }, sheet.markdown()))
            }
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Tables by name, each a list of rows. Tables with the same name are merged.
    fn json(&self) -> Value {
        let mut tables: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for sheet in self.sheets() {
            tables.entry(sheet.name.clone()).or_default().extend(sheet.json());
        }
        json!({ "schema": "knee-tables/1", "tables": tables })
    }
}

/// A table for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Name of the table.
    pub name: String,
    /// Unique column names.
    pub heads: Vec<String>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Datum>>,
}

/// A cell for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    /// No value.
    #[default]
    Empty,
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
}

impl Datum {
    /// Converts text; a dash becomes empty.
    pub fn of_text(text: &str) -> Datum {
        match text {
            "" | NONE => Datum::Empty,
            text => Datum::Text(text.to_string()),
        }
    }

    /// Formats a number so that parsing it returns the same value.
    fn text(&self) -> String {
        match self {
            Datum::Empty => String::new(),
            Datum::Text(text) => text.clone(),
            Datum::Number(number) => number.to_string(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Datum::Empty => Value::Null,
            Datum::Text(text) => json!(text),
            Datum::Number(number) => json!(number),
        }
    }
}

impl Sheet {
    fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let is_number = |at: usize| {
            let cells = self.rows.iter().map(|row| &row[at]);
            let mut there = cells.filter(|cell| **cell != Datum::Empty).peekable();
            there.peek().is_some() && there.all(|cell| matches!(cell, Datum::Number(_)))
        };
        let sides = (0..self.heads.len()).map(|at| if is_number(at) { "---:" } else { "---" });
        let mut text = line(&mut self.heads.iter().map(|head| escaped(head)));
        text += &line(&mut sides.map(str::to_string));
        for row in &self.rows {
            text += &line(&mut row.iter().map(|cell| escaped(&cell.text())));
        }
        text
    }

    fn json(&self) -> impl Iterator<Item = Value> {
        self.rows.iter().map(|row| {
            let cells = self.heads.iter().zip(row);
            let object: Map<String, Value> =
                cells.map(|(head, cell)| (head.clone(), cell.json())).collect();
            Value::Object(object)
        })
    }
}

/// Escapes Markdown markup and line ends.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '`' | '<' | '\\' => shown.extend(['\\', c]),
            '\n' => shown.push(' '),
            c => shown.push(c),
        }
    }
    shown
}

/// Joins fields, quoting those with a comma, a quote or a line end.
fn line(fields: impl Iterator<Item = String>) -> String {
    let field = |text: String| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    };
    fields.map(field).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use knee_record::Unit;

    fn document() -> Document {
        let mut flows = Table::new(&["flow", ">RTT p95", ">goodput"]).called("flows");
        let rate = |value| Cell::figure(Unit::BitsPerSecond, value);
        flows.row([Cell::from("a, \"b\" | c"), Cell::us(Some(1.0 / 3.0)), rate(None)]);
        flows.row([Cell::from("*"), Cell::us(Some(1e9)), rate(Some(9.65e6))]);
        let mut links = Table::new(&["link", ">goodput"]).called("links");
        links.row([Cell::from("x"), rate(Some(1.5))]);
        Document::default().table(flows).words("not this\n").said("A sentence.").table(links)
    }

    /// An independent CSV reader recovers the fields, and numbers exactly.
    #[test]
    fn several_tables_are_one_file() {
        let text = document().csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(
            reader.headers().unwrap(),
            ["table", "flow", "rtt_p95_us", "goodput_bps", "link"].as_slice()
        );
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!((&rows[0][1], rows[0][2].parse()), ("a, \"b\" | c", Ok(1.0 / 3.0)));
        assert_eq!(rows[2].iter().collect::<Vec<_>>(), ["links", "", "", "1.5", "x"]);
    }

    #[test]
    fn markdown_keeps_its_columns() {
        let text = document().markdown(true);
        assert!(text.contains("| a, \"b\" \\| c | 0.3333333333333333 |  |\n"), "{text}");
        assert!(text.contains("| --- | ---: | ---: |\n") && text.contains("| \\* | 1"), "{text}");
        assert!(text.contains("**links**\n\n| link | goodput_bps |\n"), "{text}");
        assert!(text.contains("A sentence.") && !text.contains("not this"), "{text}");
        assert!(
            document().markdown(false).contains("| 333 ns |"),
            "{}",
            document().markdown(false)
        );
    }
}
