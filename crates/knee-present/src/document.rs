//! Output of a command: text and tables for display, or only the tables for programs. CSV and
//! Markdown contain every number in full precision, LaTeX as it is displayed.

use crate::export::{Export, escaped};
use crate::words::wrapped;
use crate::{Table, latex};
use knee_record::csv_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Text and tables in order.
#[derive(Clone, Debug, Default)]
pub struct Document(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    /// Text for a terminal only.
    Words(String),
    /// A sentence that is included in Markdown.
    Said(String),
    Table(Table),
}

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Maximum columns of a line.
    pub width: usize,
    /// Whether heads are bold, and cells with a tone coloured.
    pub colour: bool,
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

    /// Renders it for display.
    pub fn text(&self, layout: Layout) -> String {
        let part = |part: &Part| match part {
            Part::Words(text) => text.clone(),
            Part::Said(text) => wrapped(layout.width, text),
            Part::Table(table) => table.text(layout),
        };
        self.0.iter().map(part).collect()
    }

    fn exports(&self) -> Vec<Export> {
        let tables = self.0.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table.export(true)),
            _ => None,
        });
        tables.collect()
    }

    /// Renders CSV (RFC 4180). Several tables are merged: the first column names the table, and
    /// columns with the same name are shared.
    pub fn csv(&self) -> String {
        let exports = self.exports();
        let several = exports.len() > 1;
        let mut heads: Vec<&str> = Vec::new();
        for head in exports.iter().flat_map(|export| &export.heads) {
            if !heads.contains(&head.as_str()) {
                heads.push(head);
            }
        }
        let first = several.then(|| "table".to_string());
        let mut lines =
            csv_line(first.into_iter().chain(heads.iter().map(|head| head.to_string())));
        for export in &exports {
            let at: Vec<Option<usize>> =
                heads.iter().map(|head| export.heads.iter().position(|own| own == head)).collect();
            for row in &export.rows {
                let cells = at.iter().map(|at| at.map_or(String::new(), |at| row[at].text()));
                let first = several.then(|| export.name.clone());
                lines += &csv_line(first.into_iter().chain(cells));
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
                let export = table.export(in_full);
                let title = format!("**{}**\n\n", escaped(&export.name));
                let titled = tables > 1 && !export.name.is_empty();
                Some(format!("{}{}", if titled { &title } else { "" }, export.markdown()))
            }
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Renders tables and sentences for LaTeX, without any package, with numbers as displayed.
    pub fn latex(&self) -> String {
        let parts = self.0.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Said(text) => Some(format!("{}\n", latex::escaped(text.trim()))),
            Part::Table(table) => Some(latex::tabular(table)),
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Tables by name, each a list of rows. Tables with the same name are merged.
    pub fn json(&self) -> Value {
        let mut tables: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for export in self.exports() {
            tables.entry(export.name.clone()).or_default().extend(export.json());
        }
        json!({ "schema": "knee-tables/2", "tables": tables })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Head, number, text};
    use knee_record::Unit;

    fn document() -> Document {
        let heads = [text("flow"), number("RTT p95"), number("goodput")];
        let mut flows = Table::new(heads).called("flows");
        let rate = |value| Cell::figure(Unit::BitsPerSecond, value);
        flows.row([Cell::from("a, \"b\" | c"), Cell::us(Some(1.0 / 3.0)), rate(None)]);
        flows.row([Cell::from("*"), Cell::us(Some(1e9)), rate(Some(9.65e6))]);
        let mut links = Table::new([text("link"), number("goodput")]).called("links");
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
        let shown = document().markdown(false);
        assert!(shown.contains("| 333 ns |"), "{shown}");
    }

    /// What programs get instead keeps the name of the table and the names of its columns, and a
    /// number is a number without a text in between.
    #[test]
    fn data_replace_the_rows_for_programs_alone() {
        let heads = ["share_beside_bbr-low-delay", "share_beside_x_low"].map(Head::column);
        let mut data = Table::new(heads);
        data.row([Cell::plain(Some(0.1)), Cell::plain(None)]);
        let mut table = Table::new([number("share")]).called("controllers").with_data(data);
        table.row(["10 %"]);
        let document = Document::default().table(table);
        assert_eq!(document.csv(), "share_beside_bbr-low-delay,share_beside_x_low\n0.1,\n");
        assert_eq!(document.json()["tables"]["controllers"][0]["share_beside_x_low"], Value::Null);
        assert!(document.markdown(false).contains("| 10 % |"));
    }
}
