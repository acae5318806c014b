//! A table for programs: with a column for every number behind the cells, or with the text shown.

use crate::words::NONE;
use crate::{Cell, Number, Table};
use serde_json::{Map, Value, json};

/// A table for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Export {
    /// Name of the table.
    pub name: String,
    /// Unique column names.
    pub heads: Vec<String>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Datum>>,
}

/// A cell for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Datum {
    /// No value.
    #[default]
    Empty,
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
}

impl Table {
    /// The table for programs, with the numbers in full or as shown.
    pub(crate) fn export(&self, in_full: bool) -> Export {
        if let Some(data) = self.data.as_ref().filter(|_| in_full) {
            return Export { name: self.name.clone(), ..data.export(true) };
        }
        let mut export = Export { name: self.name.clone(), ..Export::default() };
        export.rows = self.rows.iter().map(|_| Vec::new()).collect();
        for (at, head) in self.heads.iter().enumerate() {
            let cells: Vec<&Cell> = self.rows.iter().filter_map(|row| row.cells.get(at)).collect();
            let parts = match in_full && head.column.is_none() {
                true if head.parts.is_empty() => parts(&cells),
                true => head.parts.clone(),
                false => Vec::new(),
            };
            match (&head.column, parts.is_empty()) {
                (Some(name), _) if in_full => {
                    export.add(name.clone(), &cells, |cell| number(cell, ""));
                }
                (_, true) if in_full => {
                    export.add(column(&head.text), &cells, |cell| Datum::of_text(&cell.shown));
                }
                (_, true) => {
                    export.add(head.text.clone(), &cells, |cell| Datum::Text(cell.shown.clone()));
                }
                (_, false) => parts.iter().for_each(|(part, unit)| {
                    let words = [&column(&head.text), *unit, *part];
                    let words: Vec<&str> =
                        words.into_iter().filter(|word| !word.is_empty()).collect();
                    export.add(words.join("_"), &cells, |cell| number(cell, part));
                }),
            }
        }
        export
    }
}

impl Export {
    /// Adds a column; a name that is taken gets a number.
    fn add(&mut self, name: String, cells: &[&Cell], data: impl Fn(&Cell) -> Datum) {
        let taken = |name: &String| self.heads.contains(name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        self.heads.push(name);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(data(cell)));
    }

    pub(crate) fn markdown(&self) -> String {
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

    pub(crate) fn json(&self) -> impl Iterator<Item = Value> {
        self.rows.iter().map(|row| {
            let cells = self.heads.iter().zip(row);
            let object: Map<String, Value> =
                cells.map(|(head, cell)| (head.clone(), cell.json())).collect();
            Value::Object(object)
        })
    }
}

impl Datum {
    /// Converts text; a dash becomes empty.
    fn of_text(text: &str) -> Datum {
        match text {
            "" | NONE => Datum::Empty,
            text => Datum::Text(text.to_string()),
        }
    }

    /// Formats a number so that parsing it returns the same value.
    pub(crate) fn text(&self) -> String {
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

/// The numbers behind a column's cells, in order of first occurrence, each with its unit if all
/// cells agree.
fn parts(cells: &[&Cell]) -> Vec<(&'static str, &'static str)> {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for Number { part, unit, .. } in cells.iter().flat_map(|cell| &cell.numbers) {
        match parts.iter_mut().find(|(known, _)| known == part) {
            Some((_, known)) if *known != *unit => *known = "",
            Some(_) => {}
            None => parts.push((part, unit)),
        }
    }
    parts
}

/// A number of a cell; text in place of a number is kept.
fn number(cell: &Cell, part: &str) -> Datum {
    match cell.numbers.iter().find(|number| number.part == part) {
        Some(number) => Datum::Number(number.value),
        None if cell.numbers.is_empty() && part.is_empty() => Datum::of_text(&cell.shown),
        None => Datum::Empty,
    }
}

/// Converts a head to a column name: `RTT p95` to `rtt_p95`.
fn column(head: &str) -> String {
    let word = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = head.chars().map(word).collect();
    name.split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// Escapes Markdown markup and line ends.
pub(crate) fn escaped(text: &str) -> String {
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
