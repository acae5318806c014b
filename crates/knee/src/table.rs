//! Tables for people: columns a little apart, a line under the heads, within
//! the width of the terminal.

use crate::screen;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, TableComponent};
use knee_units::printable;
use std::borrow::Cow;
use std::io::{IsTerminal, stdout};

/// Columns where there is no terminal.
const WIDTH: u16 = 120;

/// A table that grows row by row.
#[derive(Debug)]
pub struct Table {
    inner: comfy_table::Table,
    colour: bool,
}

/// Good, bad, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As it should be.
    Good,
    /// Worth a look.
    Bad,
    /// Neither.
    Neutral,
}

impl Table {
    /// A table with heads. Those of figures, which are set flush right, begin
    /// with `>`.
    pub fn new(heads: &[&str]) -> Table {
        let colour = screen::colour(&stdout());
        let mut inner = comfy_table::Table::new();
        inner.load_preset(NOTHING);
        inner.set_style(TableComponent::HeaderLines, '─');
        inner.set_style(TableComponent::MiddleHeaderIntersections, '─');
        inner.set_content_arrangement(ContentArrangement::Dynamic);
        if !stdout().is_terminal() {
            inner.force_no_tty().set_width(WIDTH);
        }
        let head = |head: &&str| {
            let cell = Cell::new(head.trim_start_matches('>'));
            if colour { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        inner.set_header(heads.iter().map(head));
        for (column, head) in inner.column_iter_mut().zip(heads) {
            column.set_padding((0, 1));
            if head.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Table { inner, colour }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.inner.add_row(cells.into_iter().map(|cell| Cell::new(shown(&cell.into()))));
    }

    /// Adds a row whose first cell has a mood.
    pub fn row_in(&mut self, mood: Mood, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut cells: Vec<Cell> = cells.into_iter().map(|c| Cell::new(shown(&c.into()))).collect();
        let colour = match mood {
            Mood::Good => Some(Color::Green),
            Mood::Bad => Some(Color::Red),
            Mood::Neutral => None,
        };
        if let (Some(colour), true, Some(first)) = (colour, self.colour, cells.first_mut()) {
            *first = first.clone().fg(colour);
        }
        self.inner.add_row(cells);
    }

    /// The table as lines without spaces at their ends, the last one with a
    /// newline.
    pub fn text(&self) -> String {
        self.inner.trim_fmt() + "\n"
    }
}

/// A name may hold what would change the table.
fn shown(cell: &str) -> Cow<'_, str> {
    printable(cell, |c| c == '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

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
