//! Tables for display: spaced columns, a line under the heads, within the width of the terminal.

use crate::cell::{Cell, Number};
use crate::document::{Datum, Sheet};
use crate::screen;
use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, TableComponent, Width,
};
use std::io::stdout;

/// Width without a terminal, columns.
const WIDTH: u16 = 120;
/// Characters between two columns.
const GAP: usize = 2;
/// Minimum number of columns, which are never omitted.
const COLUMNS_MIN: usize = 2;
/// Maximum length of a word, such as a path, that is never broken.
const WORD_MAX: usize = 40;

/// A table, built row by row.
#[derive(Debug)]
pub struct Table {
    /// Name of the table, for programs.
    name: String,
    heads: Vec<String>,
    rows: Vec<Row>,
    colour: bool,
    /// Replacement for the rows, for programs.
    sheet: Option<Sheet>,
}

#[derive(Debug)]
struct Row {
    cells: Vec<Cell>,
    /// Index and mood of the coloured cell.
    mood: Option<(usize, Mood)>,
}

/// Good, bad or neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As expected.
    Good,
    /// Needs attention.
    Bad,
    /// Neither.
    Neutral,
}

impl Table {
    /// Creates a table with heads. A leading `>` marks numeric columns, which are right-aligned.
    pub fn new(heads: &[&str]) -> Table {
        let colour = screen::colour(&stdout());
        let heads: Vec<String> = heads.iter().map(|head| head.to_string()).collect();
        Table { name: String::new(), heads, rows: Vec::new(), colour, sheet: None }
    }

    /// Sets the name that identifies the table to programs.
    pub fn called(self, name: &str) -> Table {
        Table { name: name.to_string(), ..self }
    }

    /// Sets the replacement for programs.
    pub fn with_sheet(self, sheet: Sheet) -> Table {
        Table { sheet: Some(sheet), ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.add(cells, None);
    }

    /// Adds a row whose first cell has a mood.
    pub fn row_in(&mut self, mood: Mood, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.row_with(0, mood, cells);
    }

    /// Adds a row in which one cell has a mood.
    pub fn row_with(
        &mut self,
        cell: usize,
        mood: Mood,
        cells: impl IntoIterator<Item = impl Into<Cell>>,
    ) {
        self.add(cells, Some((cell, mood)));
    }

    fn add(
        &mut self,
        cells: impl IntoIterator<Item = impl Into<Cell>>,
        mood: Option<(usize, Mood)>,
    ) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.rows.push(Row { cells, mood });
    }

    /// Renders lines without trailing spaces; the last one ends with a newline. If the width does
    /// not suffice, the last columns are omitted and named below the table.
    pub fn text(&self) -> String {
        self.within(screen::width())
    }

    /// The table for programs: with a column for every number behind the cells, or with the
    /// displayed text.
    pub fn sheet(&self, in_full: bool) -> Sheet {
        if let Some(sheet) = self.sheet.as_ref().filter(|_| in_full) {
            return Sheet { name: self.name.clone(), ..sheet.clone() };
        }
        let mut sheet = Sheet { name: self.name.clone(), ..Sheet::default() };
        sheet.rows = self.rows.iter().map(|_| Vec::new()).collect();
        for (at, head) in self.heads.iter().enumerate() {
            let head = head.trim_start_matches('>');
            let cells: Vec<&Cell> = self.rows.iter().filter_map(|row| row.cells.get(at)).collect();
            let parts = if in_full { parts(&cells) } else { Vec::new() };
            let mut add = |name: String, data: &dyn Fn(&Cell) -> Datum| {
                let taken = |name: &String| sheet.heads.contains(name);
                let numbered = (2..).map(|number| format!("{name}_{number}"));
                let mut names = std::iter::once(name.clone()).chain(numbered);
                sheet.heads.push(names.find(|name| !taken(name)).unwrap_or_default());
                let rows = sheet.rows.iter_mut().zip(&cells);
                rows.for_each(|(row, cell)| row.push(data(cell)));
            };
            match parts.is_empty() {
                true if in_full => add(column(head), &|cell| Datum::of_text(&cell.shown)),
                true => add(head.to_string(), &|cell| Datum::Text(cell.shown.clone())),
                false => parts.iter().for_each(|(part, unit)| {
                    let words = [&column(head), *unit, *part];
                    let words: Vec<&str> =
                        words.into_iter().filter(|word| !word.is_empty()).collect();
                    add(words.join("_"), &|cell| number(cell, part));
                }),
            }
        }
        sheet
    }

    fn within(&self, width: usize) -> String {
        let mut count = self.heads.len();
        let least = |count: usize| (0..count).map(|at| self.least(at) + GAP).sum::<usize>();
        while count > COLUMNS_MIN && least(count) > width + GAP {
            count -= 1;
        }
        let lines = self.drawn(count, width).trim_fmt() + "\n";
        let rest: Vec<&str> =
            self.heads[count..].iter().map(|head| head.trim_start_matches('>')).collect();
        match rest.is_empty() {
            true => lines,
            false => {
                lines + &screen::wrapped_to(width, &format!("Too narrow for: {}.", rest.join(", ")))
            }
        }
    }

    /// Minimum width of a column: no word is broken, and a number stays on one line with its unit.
    fn least(&self, column: usize) -> usize {
        let head = &self.heads[column];
        let of_cell = |cell: &Cell| match head.starts_with('>') {
            true => cell.shown.chars().count(),
            false => longest_word(&cell.shown).min(WORD_MAX),
        };
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column)).map(of_cell);
        cells.chain([longest_word(head.trim_start_matches('>'))]).max().unwrap_or(0)
    }

    fn drawn(&self, count: usize, width: usize) -> comfy_table::Table {
        let mut inner = comfy_table::Table::new();
        inner.load_preset(NOTHING);
        inner.set_style(TableComponent::HeaderLines, '─');
        inner.set_style(TableComponent::MiddleHeaderIntersections, '─');
        inner.set_content_arrangement(ContentArrangement::Dynamic);
        inner.set_width(u16::try_from(width).unwrap_or(WIDTH));
        if self.colour {
            inner.enforce_styling();
        } else {
            inner.force_no_tty();
        }
        let head = |head: &String| {
            let cell = comfy_table::Cell::new(head.trim_start_matches('>'));
            if self.colour { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        inner.set_header(self.heads[..count].iter().map(head));
        for row in &self.rows {
            let cells = row.cells.iter().take(count).enumerate();
            inner.add_row(cells.map(|(at, cell)| self.coloured(row, at, &cell.shown)));
        }
        for (at, column) in inner.column_iter_mut().enumerate() {
            // The last column needs no gap.
            let padding = u16::from(at + 1 < count);
            column.set_padding((0, padding));
            if self.heads[at].starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let least = u16::try_from(self.least(at)).unwrap_or(WIDTH);
            let least = Width::Fixed(least.saturating_add(padding));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        inner
    }

    fn coloured(&self, row: &Row, at: usize, text: &str) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(text);
        let colour = match row.mood {
            Some((place, Mood::Good)) if place == at => Color::Green,
            Some((place, Mood::Bad)) if place == at => Color::Red,
            _ => return cell,
        };
        if self.colour { cell.fg(colour) } else { cell }
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

/// Words of heads with the words used for them in column names, which stay as published: programs
/// read CSV and JSON by these names.
const PUBLISHED: [(&str, &str); 6] = [
    ("retransmitted", "sent again"),
    ("B minus A", "B less A"),
    ("median, absolute", "median of sizes"),
    ("median, signed", "median with sign"),
    ("in the journal", "of the journal"),
    ("problem", "what is wrong"),
];

/// Converts a head to a column name: `RTT p95` to `rtt_p95`.
fn column(head: &str) -> String {
    let published = PUBLISHED.iter();
    let head = published.fold(head.to_string(), |head, (word, name)| head.replace(word, name));
    let word = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = head.chars().map(word).collect();
    name.split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At any width no line is too long, and no number or head is broken.
    #[test]
    fn columns_are_left_out_and_not_broken() {
        let mut table = Table::new(&["flow", ">lost packets", ">RTT p95", "a long remark"]);
        table.row(["download[0]", "0.139 %", "1.73 s (1.68 s to 1.79 s)", "some words about it"]);
        for width in [40, 60, 100] {
            let lines = table.within(width);
            assert!(lines.lines().all(|line| line.chars().count() <= width), "{width}\n{lines}");
            assert!(lines.contains("download[0]") && lines.contains("0.139 %"), "{lines}");
            let left_out = lines.contains("Too narrow for: ");
            assert_eq!(left_out, width == 40, "{lines}");
            assert!(left_out || lines.contains("1.73 s (1.68 s to 1.79 s)"), "{lines}");
        }
    }

    /// Every width is kept, with and without colours, which take no room.
    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let plain = |line: &str| {
            let mut parts = line.split('\u{1b}');
            let first = parts.next().unwrap().to_string();
            first + &parts.map(|part| part.split_once('m').unwrap().1).collect::<String>()
        };
        for colour in [false, true] {
            let heads = ["link", ">utilisation", ">delay p50", ">delay p95", ">dropped", ">lost"];
            let mut table = Table::new(&heads);
            table.colour = colour;
            table.row(["bottleneck", "99.8 %", "19.1 ms", "20.1 ms", "3232", "0"]);
            table.row_in(Mood::Bad, ["a", "9 %", "1 ms", "2.15 ms", "0", "0"]);
            for width in 30..=120 {
                let lines = table.within(width);
                for line in lines.lines() {
                    let line = plain(line);
                    assert!(line.chars().count() <= width, "{width} {line:?}");
                }
                assert!(plain(&lines).contains("utilisation"), "{width}\n{lines}");
            }
        }
    }

    #[test]
    fn figures_are_flush_right() {
        let mut table = Table::new(&["name", ">count"]);
        table.row(["a", "1"]);
        table.row_in(Mood::Bad, ["long name", "1000"]);
        let expected = "name       count\n─────────────────\na              1\nlong name   1000\n";
        let squeezed = |text: &str| text.replace('─', "");
        assert_eq!(squeezed(&table.text()), squeezed(expected));
    }
}
