//! Tables: a row per time, a column for the time and one for the value.

use crate::cells::Separator;
use crate::error::{FileError, shorten};
use crate::instant::{At, DAY, calendar, decimal_ns};
use crate::quantity::{AMOUNTS, Quantity, SPANS, Units, listed, size_of};
use crate::series::{DAMAGED, NO_VALUE, Series, Taken};
use crate::unpack::{lines, next_line};
use std::collections::BTreeSet;

/// What the time between two rows means that are further apart than usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gap {
    /// The value before it stays.
    #[default]
    Hold,
    /// The value is zero.
    Zero,
}

/// The columns of a table, each by its name or its number from one, followed by its unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns<'c> {
    /// Column of the time: `t s`, `timestamp ms`; without a unit one of dates or times of day.
    pub time: Option<&'c str>,
    /// Column of the value: `Throughput Mbit/s`; `5 B / 6 ms` for an amount over the time in which
    /// it was measured, which ends at the row's time.
    pub value: Option<&'c str>,
    /// Rows that count, by the text of a column: `unit_id = 386`.
    pub rows: Option<&'c str>,
    /// What a gap means.
    pub gap: Gap,
}

/// Columns that an error lists.
const COLUMNS_SHOWN: usize = 30;
/// Texts of a column that an error lists.
const TEXTS_SHOWN: usize = 6;
/// Texts of a cell without a value.
const NO_VALUES: [&str; 9] = ["", "-", "--", "NA", "N/A", "NaN", "nan", "null", "None"];

/// A column and its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    at: usize,
    /// Size of the unit; `None` if none is written.
    unit: Option<f64>,
}

/// Where the cells are that count.
struct Plan {
    time: Place,
    value: Place,
    /// Column of the time over which the value was counted.
    over: Option<Place>,
    /// Column, and the text that it must have.
    chosen: Option<(usize, String)>,
}

/// The names of the columns, with the line on which they stand.
struct Header<'h> {
    line: usize,
    names: Vec<&'h str>,
}

impl Header<'_> {
    /// Finds a column by name, or by number from one.
    fn find(&self, name: &str) -> Option<usize> {
        // A number is never a name: the first row of a file without names has numbers, too.
        if let Ok(number) = name.parse::<usize>() {
            return number.checked_sub(1).filter(|at| *at < self.names.len());
        }
        let exact = self.names.iter().position(|known| *known == name);
        let alike = || self.names.iter().position(|known| known.eq_ignore_ascii_case(name));
        exact.or_else(alike)
    }

    fn no_column(&self, name: &str) -> FileError {
        let shown = self.names.iter().take(COLUMNS_SHOWN).map(|name| shorten(name, 30));
        let mut shown = shown.collect::<Vec<_>>().join(", ");
        if self.names.len() > COLUMNS_SHOWN {
            shown += ", …";
        }
        let problem = format!("there is no column \"{}\"", shorten(name, 40));
        let advice = format!("write one of {shown}, or a number from 1 to {}", self.names.len());
        FileError::new(self.line, problem, advice)
    }

    /// Finds a column with its unit: `Throughput Mbit/s`.
    fn place(&self, written: &str, units: Units) -> Result<Place, FileError> {
        let written = written.trim();
        let last = written.rsplit_once(char::is_whitespace);
        let unit = last.and_then(|(name, unit)| Some((name.trim(), size_of(units, unit)?)));
        if let Some((name, unit)) = unit
            && let Some(at) = self.find(name)
        {
            return Ok(Place { at, unit: Some(unit) });
        }
        if let Some(at) = self.find(written) {
            // A column may be named with its unit.
            return Ok(Place { at, unit: unit.map(|(_, unit)| unit) });
        }
        match (unit, last) {
            (Some((name, _)), _) => Err(self.no_column(name)),
            (None, Some((name, unit))) if self.find(name.trim()).is_some() => {
                let problem = format!("\"{}\" is no unit here", shorten(unit, 20));
                Err(FileError::new(self.line, problem, format!("write one of {}", listed(units))))
            }
            _ => Err(self.no_column(written)),
        }
    }

    fn plan(&self, quantity: Quantity, columns: &Columns<'_>) -> Result<Plan, FileError> {
        let names = self.names.iter().take(COLUMNS_SHOWN).map(|name| shorten(name, 30));
        let names = names.collect::<Vec<_>>().join(", ");
        let missing = |key: &str, example: &str| {
            let problem = format!("it is a table with the columns {names}");
            FileError::new(self.line, problem, format!("write {key} = \"{example}\""))
        };
        let example = match quantity {
            Quantity::Rate => "column Mbit/s",
            Quantity::Delay => "column ms",
            Quantity::Loss => "column %",
        };
        let time = columns.time.ok_or_else(|| missing("time", "column s"))?;
        let value = columns.value.ok_or_else(|| missing("value", example))?;
        let (value, over) = match value.split_once(" / ") {
            Some((amount, over)) if quantity == Quantity::Rate => {
                (self.place(amount, AMOUNTS)?, Some(self.place(over, SPANS)?))
            }
            _ => (self.place(value, quantity.units())?, None),
        };
        let without = |place: &Place| place.unit.is_none();
        if [Some(value), over].iter().flatten().any(without) {
            let problem = format!("the unit of {} is missing", quantity.name());
            let advice = format!("write value = \"{example}\", with one of {}", {
                listed(quantity.units())
            });
            return Err(FileError::new(self.line, problem, advice));
        }
        let chosen = match columns.rows {
            None => None,
            Some(rows) => {
                let Some((name, text)) = rows.split_once('=') else {
                    let problem = format!("\"{}\" chooses no rows", shorten(rows, 40));
                    let advice = "write rows = \"column = value\"";
                    return Err(FileError::new(self.line, problem, advice));
                };
                let at = self.find(name.trim()).ok_or_else(|| self.no_column(name.trim()))?;
                Some((at, text.trim().trim_matches('"').to_string()))
            }
        };
        Ok(Plan { time: self.place(time, SPANS)?, value, over, chosen })
    }
}

/// Why a row gives no value.
enum Miss {
    NoValue,
    Damaged(&'static str, String),
    NotChosen(String),
}

impl Plan {
    /// Returns time, value and the time over which it was counted, in nanoseconds.
    fn read(&self, separator: Separator, line: &str) -> Result<(At, f64, Option<i128>), Miss> {
        let mut cells: [&str; 4] = [""; 4];
        let chosen = self.chosen.as_ref().map(|(at, _)| *at);
        let places =
            [Some(self.time.at), Some(self.value.at), self.over.map(|over| over.at), chosen];
        for (number, cell) in separator.cells(line).enumerate() {
            for (place, kept) in places.iter().zip(&mut cells) {
                if *place == Some(number) {
                    *kept = cell;
                }
            }
            if places.iter().flatten().all(|place| *place <= number) {
                break;
            }
        }
        let [time, value, over, text] = cells;
        if let Some((_, wanted)) = &self.chosen
            && text != wanted
        {
            return Err(Miss::NotChosen(shorten(text, 30)));
        }
        let is_none = |cell: &str| NO_VALUES.contains(&cell);
        if is_none(value) || is_none(time) || (self.over.is_some() && is_none(over)) {
            return Err(Miss::NoValue);
        }
        let at = match self.time.unit {
            Some(unit) => decimal_ns(time, (unit * 1e9) as i128).map(At::Instant),
            None => calendar(time),
        };
        let kind = if self.time.unit.is_some() { "a number" } else { "a date with its time" };
        let at = at.ok_or_else(|| Miss::Damaged(kind, shorten(time, 30)))?;
        let number = |cell: &str, place: &Place| {
            let value = cell.parse::<f64>().ok().filter(|value| value.is_finite());
            let value = value.ok_or_else(|| Miss::Damaged("a number", shorten(cell, 30)))?;
            Ok(value * place.unit.unwrap_or(1.0))
        };
        let value = number(value, &self.value)?;
        let Some(place) = &self.over else { return Ok((at, value, None)) };
        let seconds = number(over, place)?;
        if seconds <= 0.0 || seconds > 1e9 {
            return Err(Miss::Damaged("a time above zero", shorten(over, 30)));
        }
        Ok((at, value / seconds, Some((seconds * 1e9) as i128)))
    }
}

/// Reads a value over time from the rows of a table.
pub(crate) fn series(
    bytes: &[u8],
    quantity: Quantity,
    columns: &Columns<'_>,
) -> Result<Series, FileError> {
    let mut lines = lines(bytes)?;
    let (mut first, mut comment) = (String::new(), (0, String::new()));
    loop {
        if !next_line(&mut lines, &mut first)? {
            return Err(FileError::new(1, "it is empty", "write the name of a table with rows"));
        }
        match first.trim_start().strip_prefix('#') {
            Some(text) => comment = (lines.number(), text.to_string()),
            None if first.trim().is_empty() => {}
            None => break,
        }
    }
    let separator = Separator::of(&first);
    let of_first = Header { line: lines.number(), names: separator.cells(&first).collect() };
    let (plan, mut is_row) = plan(&of_first, &comment, quantity, columns, (separator, &first))?;
    let mut reading = Reading::new(quantity, columns, plan);
    let mut line = first.clone();
    loop {
        if is_row {
            reading.take(separator, &line, lines.number())?;
        }
        if !next_line(&mut lines, &mut line)? {
            break;
        }
        let text = line.trim();
        is_row = !text.is_empty() && !text.starts_with('#');
    }
    reading.finish(separator, columns)
}

/// Finds the columns: in the first line, or in the comment before it. Returns also whether the first
/// line is a row.
fn plan(
    of_first: &Header<'_>,
    (line, comment): &(usize, String),
    quantity: Quantity,
    columns: &Columns<'_>,
    (separator, first): (Separator, &str),
) -> Result<(Plan, bool), FileError> {
    let names: Vec<&str> = Separator::of(comment).cells(comment).collect();
    let above = Header { line: *line, names };
    let found = of_first.plan(quantity, columns);
    let is_row = |plan: &Plan| {
        let plan = Plan { chosen: None, ..*plan };
        !matches!(plan.read(separator, first), Err(Miss::Damaged(..)))
    };
    match found {
        Ok(plan) => {
            let is_row = is_row(&plan);
            Ok((plan, is_row))
        }
        Err(error) if above.names.len() == of_first.names.len() => {
            above.plan(quantity, columns).map(|plan| (plan, true)).map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

/// The rows read so far.
struct Reading {
    plan: Plan,
    taken: Taken,
    /// Time of day of the last row, and the midnight before it.
    of_day: (i128, i128),
    /// What is wrong with the first damaged row.
    damage: Option<(&'static str, String)>,
    /// Rows that were not chosen, and what some of them have instead.
    others: (usize, BTreeSet<String>),
}

impl Reading {
    fn new(quantity: Quantity, columns: &Columns<'_>, plan: Plan) -> Reading {
        let taken = Taken::new(quantity, columns.gap);
        Reading { plan, taken, of_day: (0, 0), damage: None, others: (0, BTreeSet::new()) }
    }

    fn take(&mut self, separator: Separator, line: &str, number: usize) -> Result<(), FileError> {
        match self.plan.read(separator, line) {
            Ok((at, value, over)) => {
                let at = match at {
                    At::Instant(at) => at,
                    At::OfDay(at) => self.since_first_midnight(at),
                };
                match over {
                    None => self.taken.add(number, at, value),
                    Some(over) => self.taken.add_span(number, (at - over, at), value),
                }
            }
            Err(Miss::NoValue) => {
                self.taken.pass_over(NO_VALUE, number);
                Ok(())
            }
            Err(Miss::Damaged(kind, text)) => {
                self.damage.get_or_insert((kind, text));
                self.taken.pass_over(DAMAGED, number);
                Ok(())
            }
            Err(Miss::NotChosen(text)) => {
                self.others.0 += 1;
                if self.others.1.len() < TEXTS_SHOWN {
                    self.others.1.insert(text);
                }
                Ok(())
            }
        }
    }

    /// A time of day that goes back by half a day is that of the next day.
    fn since_first_midnight(&mut self, of_day: i128) -> i128 {
        let (last, midnight) = &mut self.of_day;
        if *last - of_day > DAY / 2 {
            *midnight += DAY;
        }
        *last = of_day;
        *midnight + of_day
    }

    fn finish(self, separator: Separator, columns: &Columns<'_>) -> Result<Series, FileError> {
        let (damaged, first) = self.taken.passed_over(DAMAGED);
        if damaged > self.taken.len() {
            let (problem, advice) = match &self.damage {
                Some((kind, text)) => (format!("\"{text}\" is not {kind}"), advice(kind, text)),
                None => (
                    "the value is impossible".to_string(),
                    "check the unit after the name of the column",
                ),
            };
            let rows = format!("{problem} (damaged are {damaged} rows)");
            return Err(FileError::new(first, rows, advice));
        }
        let (without, first) = self.taken.passed_over(NO_VALUE);
        let (others, texts) = &self.others;
        let (others, texts) = (*others, texts.iter().cloned().collect::<Vec<_>>().join(", "));
        self.taken.series(separator.name()).ok_or_else(|| match (others, columns.rows) {
            (1.., Some(rows)) => {
                let problem = format!("no row has {}", shorten(rows, 60));
                FileError::new(1, problem, format!("that column has {texts}"))
            }
            _ if without > 0 => {
                let problem = format!("none of {without} rows has a value");
                FileError::new(first, problem, "write the name of another column")
            }
            _ => FileError::new(1, "no row follows the names of the columns", "add rows"),
        })
    }
}

/// What to write instead of a damaged cell.
fn advice(kind: &str, text: &str) -> &'static str {
    match kind {
        "a number" if text.contains(',') => "write decimal points",
        "a number" if calendar(text).is_some() => {
            "leave out the unit after the name of a column of dates"
        }
        "a number" => "write the name of a column of numbers",
        "a date with its time" if text.parse::<f64>().is_ok() => {
            "write the unit after the name of the column, such as time = \"t s\""
        }
        "a date with its time" => "write dates as 2026-03-12T10:00:01Z, or numbers with a unit",
        _ => "correct the file",
    }
}
