//! Tables: typed heads, and rows of cells. Shown as spaced columns with a line under the heads,
//! within a width.

use crate::Cell;
use crate::cell::suffix;
use crate::document::Layout;
use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, TableComponent, Width,
};
use knee_record::Unit;
use serde::{Serialize, Serializer};

/// Width of a table that is wider than any terminal.
const WIDTH: u16 = 120;
/// Characters between two columns.
const GAP: usize = 2;
/// Roles of the numbers of a mean with its interval.
pub const INTERVAL: [&str; 3] = ["", "low", "high"];
/// Maximum number of leading columns that name a row, and are repeated where a table continues.
const NAMES_MAX: usize = 3;
/// Maximum length of a word, such as a path, that is never broken.
const WORD_MAX: usize = 40;

/// A table, built row by row. Serialised for the templates of pages.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Name, for programs.
    pub name: String,
    /// Title on a page; may be empty.
    pub title: String,
    /// What to know before reading it, on a page; may be empty.
    pub note: String,
    /// Heads of the columns.
    pub heads: Vec<Head>,
    /// Rows, each with one cell per head.
    pub rows: Vec<Row>,
    /// Number of rows left out.
    pub left_out: usize,
    /// What programs get instead of these rows, in full.
    #[serde(skip)]
    pub data: Option<Box<Table>>,
}

/// Head of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Head {
    /// Its text.
    pub text: String,
    /// Explanation of the text; may be empty.
    pub about: String,
    /// Whether the column has numbers, which are right-aligned.
    pub numeric: bool,
    /// Name of the column for programs, if it is not made from the text and the numbers.
    #[serde(skip)]
    pub column: Option<String>,
    /// Part and unit suffix of each number behind a cell; empty if the cells say so.
    #[serde(skip)]
    pub(crate) parts: Vec<(&'static str, &'static str)>,
}

/// A column of a table whose rows are made from values of one type: its head, and the cell of a
/// value. What is written in one place cannot get out of step.
#[derive(Clone, Debug)]
pub struct Column<V: ?Sized> {
    /// Its head.
    pub head: Head,
    /// Makes the cell of a value.
    pub cell: fn(&V) -> Cell,
}

impl<V: ?Sized> Column<V> {
    /// A column of a table.
    pub fn new(head: Head, cell: fn(&V) -> Cell) -> Column<V> {
        Column { head, cell }
    }
}

/// A row. Serialised as the list of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The cells.
    pub cells: Vec<Cell>,
    /// Index and tone of the coloured cell.
    tone: Option<(usize, Tone)>,
}

/// Good, bad or neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As expected.
    Good,
    /// Needs attention.
    Bad,
    /// Neither.
    Neutral,
}

/// The head of a column of texts.
pub fn text(text: impl Into<String>) -> Head {
    Head { text: text.into(), ..Head::default() }
}

/// The head of a column of numbers.
pub fn number(head: impl Into<String>) -> Head {
    Head { numeric: true, ..text(head) }
}

impl Head {
    /// Adds an explanation.
    pub fn about(self, about: impl Into<String>) -> Head {
        Head { about: about.into(), ..self }
    }

    /// Declares the numbers behind the cells, so that the columns for programs do not depend on which
    /// cells have them: their unit, if it is the same in all rows, and their roles, such as
    /// [`INTERVAL`].
    pub fn holds(self, unit: Option<Unit>, parts: &[&'static str]) -> Head {
        let unit = unit.map_or("", suffix);
        let unit_of = |part: &&'static str| match INTERVAL.contains(part) {
            true => (*part, unit),
            false => (*part, ""),
        };
        Head { parts: parts.iter().map(unit_of).collect(), ..self }
    }

    /// A column that has this name for programs, word for word.
    pub fn column(name: impl Into<String>) -> Head {
        let name = name.into();
        Head { column: Some(name.clone()), ..text(name) }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.cells.serialize(serializer)
    }
}

impl Table {
    /// Creates a table without rows.
    pub fn new(heads: impl IntoIterator<Item = Head>) -> Table {
        Table { heads: heads.into_iter().collect(), ..Table::default() }
    }

    /// Creates a table with a row for each value.
    pub fn of<'v, V: ?Sized + 'v>(
        columns: &[Column<V>],
        values: impl IntoIterator<Item = &'v V>,
    ) -> Table {
        let table = Table::new(columns.iter().map(|column| column.head.clone()));
        let row = |value: &'v V| columns.iter().map(|column| (column.cell)(value));
        table.with_rows(values.into_iter().map(|value| row(value).collect::<Vec<_>>()))
    }

    /// Sets the name that identifies the table to programs.
    pub fn called(self, name: &str) -> Table {
        Table { name: name.to_string(), ..self }
    }

    /// Sets the title on a page.
    pub fn titled(self, title: impl Into<String>) -> Table {
        Table { title: title.into(), ..self }
    }

    /// Sets what to know before reading it.
    pub fn noted(self, note: impl Into<String>) -> Table {
        Table { note: note.into(), ..self }
    }

    /// Sets what programs get instead of the rows.
    pub fn with_data(self, data: Table) -> Table {
        Table { data: Some(Box::new(data)), ..self }
    }

    /// Adds rows.
    pub fn with_rows<R, C>(mut self, rows: impl IntoIterator<Item = R>) -> Table
    where
        R: IntoIterator<Item = C>,
        C: Into<Cell>,
    {
        rows.into_iter().for_each(|row| self.row(row));
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.add(cells, None);
    }

    /// Adds a row whose first cell has a tone.
    pub fn row_in(&mut self, tone: Tone, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.row_with(0, tone, cells);
    }

    /// Adds a row in which one cell has a tone.
    pub fn row_with(
        &mut self,
        cell: usize,
        tone: Tone,
        cells: impl IntoIterator<Item = impl Into<Cell>>,
    ) {
        self.add(cells, Some((cell, tone)));
    }

    fn add(
        &mut self,
        cells: impl IntoIterator<Item = impl Into<Cell>>,
        tone: Option<(usize, Tone)>,
    ) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.rows.push(Row { cells, tone });
    }

    /// Removes a column.
    pub fn without(mut self, column: usize) -> Table {
        self.heads.remove(column);
        self.rows.iter_mut().for_each(|row| drop(row.cells.remove(column)));
        self
    }

    /// Leaves out the columns with these heads, the first one first, until the others fit side by
    /// side.
    pub fn within(mut self, width: usize, heads: &[&str]) -> Table {
        for name in heads {
            let wide: usize = (0..self.heads.len()).map(|at| self.least(at) + GAP).sum();
            if wide.saturating_sub(GAP) <= width {
                break;
            }
            if let Some(column) = self.heads.iter().position(|head| head.text == *name) {
                self = self.without(column);
            }
        }
        self
    }

    /// Renders lines without trailing spaces; the last one ends with a newline. If the width does
    /// not suffice, the table continues below with the other columns, behind those that name the
    /// rows.
    pub fn text(&self, Layout { width, colour }: Layout) -> String {
        let least: Vec<usize> = (0..self.heads.len()).map(|at| self.least(at) + GAP).collect();
        let names = self.names(&least, width);
        let named: usize = least[..names].iter().sum();
        let mut parts = Vec::new();
        let mut next = names;
        while next < least.len() || parts.is_empty() {
            let (begin, mut wide) = (next, named);
            // One more column at least, even if it is too wide.
            while next < least.len() && (next == begin || wide + least[next] <= width + GAP) {
                wide += least[next];
                next += 1;
            }
            let columns: Vec<usize> = (0..names).chain(begin..next).collect();
            parts.push(self.drawn(&columns, width, colour).trim_fmt() + "\n");
        }
        parts.join("\n")
    }

    /// Returns how many of the first columns name the rows: those of texts, within half the width.
    fn names(&self, least: &[usize], width: usize) -> usize {
        let texts = self.heads.iter().take_while(|head| !head.numeric).count();
        let mut names = texts.clamp(1, NAMES_MAX).min(least.len());
        while names > 1 && 2 * least[..names].iter().sum::<usize>() > width {
            names -= 1;
        }
        names
    }

    /// Minimum width of a column: no word is broken, and a number stays on one line with its unit.
    fn least(&self, column: usize) -> usize {
        let head = &self.heads[column];
        let of_cell = |cell: &Cell| match head.numeric {
            true => cell.shown.chars().count(),
            false => longest_word(&cell.shown).min(WORD_MAX),
        };
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column)).map(of_cell);
        cells.chain([longest_word(&head.text)]).max().unwrap_or(0)
    }

    fn drawn(&self, columns: &[usize], width: usize, colour: bool) -> comfy_table::Table {
        let mut inner = comfy_table::Table::new();
        inner.load_preset(NOTHING);
        inner.set_style(TableComponent::HeaderLines, '─');
        inner.set_style(TableComponent::MiddleHeaderIntersections, '─');
        inner.set_content_arrangement(ContentArrangement::Dynamic);
        inner.set_width(u16::try_from(width).unwrap_or(WIDTH));
        if colour {
            inner.enforce_styling();
        } else {
            inner.force_no_tty();
        }
        let head = |head: &Head| {
            let cell = comfy_table::Cell::new(&head.text);
            if colour { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        inner.set_header(columns.iter().map(|at| head(&self.heads[*at])));
        for row in &self.rows {
            let cells = columns.iter().filter_map(|at| Some((*at, row.cells.get(*at)?)));
            inner.add_row(cells.map(|(at, cell)| match colour {
                true => row.coloured(at, &cell.shown),
                false => comfy_table::Cell::new(&cell.shown),
            }));
        }
        for (place, column) in inner.column_iter_mut().enumerate() {
            let at = columns[place];
            // The last column needs no gap.
            let padding = u16::from(place + 1 < columns.len());
            column.set_padding((0, padding));
            if self.heads[at].numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let least = u16::try_from(self.least(at)).unwrap_or(WIDTH);
            let least = Width::Fixed(least.saturating_add(padding));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        inner
    }
}

impl Row {
    fn coloured(&self, at: usize, text: &str) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(text);
        match self.tone {
            Some((place, Tone::Good)) if place == at => cell.fg(Color::Green),
            Some((place, Tone::Bad)) if place == at => cell.fg(Color::Red),
            _ => cell,
        }
    }
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(width: usize) -> Layout {
        Layout { width, colour: false }
    }

    /// At any width no line is too long, no number or head is broken, and nothing is left out.
    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let heads =
            [text("flow"), number("lost packets"), number("RTT p95"), text("a long remark")];
        let mut table = Table::new(heads);
        table.row(["download[0]", "0.139 %", "1.73 s (1.68 s to 1.79 s)", "some words about it"]);
        for width in [40, 60, 100] {
            let lines = table.text(plain(width));
            assert!(lines.lines().all(|line| line.chars().count() <= width), "{width}\n{lines}");
            assert!(lines.contains("download[0]") && lines.contains("0.139 %"), "{lines}");
            assert!(lines.contains("1.73 s (1.68 s to 1.79 s)"), "{lines}");
            let parts = lines.matches("download[0]").count();
            assert_eq!(parts, if width == 40 { 3 } else { 1 }, "{lines}");
        }
    }

    /// A row without cells for all columns, and a table without columns.
    #[test]
    fn what_is_missing_takes_no_room() {
        let mut table = Table::new([text("a"), number("b"), number("c")]);
        table.row(["x"]);
        assert_eq!(table.text(plain(10)).lines().count(), 3);
        assert_eq!(Table::default().text(plain(10)).trim(), "");
    }

    /// No more columns than necessary are left out, in their order.
    #[test]
    fn columns_are_left_out_until_the_others_fit() {
        let heads = || [text("link"), number("first"), number("second"), number("third")];
        let table = || Table::new(heads()).with_rows([["wifi", "1", "2", "3"]]);
        let head = |width: usize, leaves: &[&str]| {
            let lines = table().within(width, leaves).text(plain(width));
            lines
                .lines()
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let whole = table().text(plain(80)).lines().next().unwrap_or_default().chars().count();
        let leaves = ["second", "none", "first"];
        assert_eq!(head(whole, &leaves), "link first second third");
        assert_eq!(head(whole - 1, &leaves), "link first third");
        assert_eq!(head(12, &leaves), "link third");
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
            let numbers = ["utilisation", "delay p50", "delay p95", "dropped", "lost"].map(number);
            let mut table = Table::new([text("link")].into_iter().chain(numbers));
            table.row(["bottleneck", "99.8 %", "19.1 ms", "20.1 ms", "3232", "0"]);
            table.row_in(Tone::Bad, ["a", "9 %", "1 ms", "2.15 ms", "0", "0"]);
            for width in 30..=120 {
                let lines = table.text(Layout { width, colour });
                for line in lines.lines() {
                    let line = plain(line);
                    assert!(line.chars().count() <= width, "{width} {line:?}");
                }
                assert!(plain(&lines).contains("utilisation"), "{width}\n{lines}");
            }
        }
    }

    #[test]
    fn numbers_are_flush_right() {
        let mut table = Table::new([text("name"), number("count")]);
        table.row(["a", "1"]);
        table.row_in(Tone::Bad, ["long name", "1000"]);
        let expected = "name       count\n─────────────────\na              1\nlong name   1000\n";
        let squeezed = |text: &str| text.replace('─', "");
        assert_eq!(squeezed(&table.text(plain(120))), squeezed(expected));
    }
}
