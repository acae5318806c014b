//! A value over time, as a step function.

use crate::columns::{self, Columns, Gap};
use crate::error::FileError;
use crate::quantity::Quantity;
use crate::{json, ping, unpack};
use knee_units::{GZIP, Time, foreign_format};

/// Rows that are kept at most.
const ROWS_MAX: usize = 4_000_000;
/// Largest number of steps of a run.
pub const STEPS_MAX: usize = 1_000_000;
/// Rows further apart than this many usual intervals have a gap between them.
const GAP: f64 = 1.5;
/// Length of a table with a single row: whatever it is, the value never changes.
const SINGLE: u64 = 1_000_000_000;

/// Lines that gave nothing, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The reason.
    pub reason: &'static str,
    /// Number of lines.
    pub lines: usize,
    /// Number of the first of them, from one.
    pub first: usize,
}

/// A value over time: from each row on, the value of that row.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the file's format, for display.
    pub format: &'static str,
    /// What the values are.
    pub quantity: Quantity,
    /// Rows that have a time and a value.
    pub rows: usize,
    /// Rows that gave no value, by reason.
    pub passed_over: Vec<PassedOver>,
    /// Nanoseconds since the beginning of the table, ascending from zero, each with the value from
    /// then on, which differs from the one before.
    steps: Vec<(u64, f64)>,
    span_ns: u64,
    /// Value after the end of a table that is not repeated; `None` for the last one.
    after: Option<f64>,
}

/// Reads a value over time from a file of any format that has it, compressed by gzip or not.
///
/// # Errors
/// The line, what is wrong there, and what to write instead.
pub fn read_series(
    bytes: &[u8],
    quantity: Quantity,
    columns: &Columns<'_>,
) -> Result<Series, FileError> {
    let start = unpack::start(bytes);
    let packed = foreign_format(bytes).filter(|format| *format != GZIP);
    if let Some(format) = packed.or_else(|| foreign_format(&start)) {
        return Err(FileError::new(1, format!("it is {}", format.name), format.advice));
    }
    if start.contains(&0) {
        return Err(FileError::new(1, "it contains NUL bytes", "write the name of a text file"));
    }
    let typed = match start.first() {
        Some(b'{' | b'[') => Some(json::series(bytes, quantity, columns)?),
        _ if ping::is_ping(&start) => Some(ping::series(bytes, quantity, columns)?),
        _ => None,
    };
    match typed {
        None => columns::series(bytes, quantity, columns),
        Some(series) => {
            match [columns.time, columns.value, columns.rows].iter().any(Option::is_some) {
                false => Ok(series),
                true => {
                    let problem =
                        format!("a file in the format of {} has no columns", series.format);
                    Err(FileError::new(1, problem, "leave out time, value and rows"))
                }
            }
        }
    }
}

impl Series {
    /// Returns how long it lasts.
    pub fn span(&self) -> Time {
        Time::from_nanos(self.span_ns)
    }

    /// Returns its mean over time: bit/s, seconds, or a part of one.
    pub fn mean(&self) -> f64 {
        let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([self.span_ns]);
        let areas = self.steps.iter().zip(ends).map(|((at, value), end)| (end - at) as f64 * value);
        areas.sum::<f64>() / self.span_ns as f64
    }

    /// Returns the smallest and the largest value.
    pub fn range(&self) -> (f64, f64) {
        let values = || self.steps.iter().map(|(_, value)| *value);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    }

    /// Returns the steps of a run that begins at a position in the table; the first is at zero. At
    /// its end the table begins again, or its last value stays. `None` if there are more than
    /// [`STEPS_MAX`].
    pub fn steps(&self, duration: Time, offset: Time, repeats: bool) -> Option<Vec<(Time, f64)>> {
        let (duration, offset) = (duration.as_nanos(), offset.as_nanos() % self.span_ns);
        let begun = self.steps.partition_point(|(at, _)| *at <= offset);
        let mut steps = vec![(Time::ZERO, self.steps[begun.saturating_sub(1)].1)];
        let mut push = |at: u64, value: f64| {
            if steps.last().is_some_and(|(_, last)| *last != value) {
                steps.push((Time::from_nanos(at), value));
            }
            steps.len() <= STEPS_MAX
        };
        let mut next = begun;
        // Time of the run at which the table last began.
        let mut began = 0_u64.wrapping_sub(offset);
        for _ in 0..10 * STEPS_MAX {
            if next == self.steps.len() {
                let end = began.wrapping_add(self.span_ns);
                let is_constant = self.steps.len() == 1;
                if end >= duration || (repeats && is_constant) {
                    return Some(steps);
                }
                if !repeats {
                    if let Some(after) = self.after {
                        push(end, after);
                    }
                    return Some(steps);
                }
                (began, next) = (end, 0);
            }
            let (at, value) = self.steps[next];
            let at = began.wrapping_add(at);
            if at >= duration {
                return Some(steps);
            }
            if !push(at, value) {
                return None;
            }
            next += 1;
        }
        None
    }

    /// Says what was read: `comma-separated values, 300 rows over 300 s, 12.3 Mbit/s in the mean, 0
    /// bit/s to 40 Mbit/s`, with a factor on the values.
    pub fn summary(&self, scale: f64) -> String {
        let Series { format, quantity, rows, passed_over, .. } = self;
        let (least, most) = self.range();
        let shown = |value: f64| quantity.shown(value * scale);
        let span = rounded(self.span_ns);
        let mut text = format!("{format}, {rows} rows over {span}");
        text += &match least == most {
            true => format!(": {}", shown(most)),
            false => {
                format!(": {} to {}, {} in the mean", shown(least), shown(most), shown(self.mean()))
            }
        };
        for PassedOver { reason, lines, first } in passed_over {
            text += &format!("; {lines} {reason} (first: line {first})");
        }
        text
    }
}

/// Rounds nanoseconds to four digits.
fn rounded(ns: u64) -> Time {
    let mut unit = 1;
    while ns / unit >= 10_000 {
        unit *= 10;
    }
    Time::from_nanos(ns.saturating_add(unit / 2) / unit * unit)
}

/// Rows without a value.
pub(crate) const NO_VALUE: &str = "rows without a value";
/// Rows that are damaged.
pub(crate) const DAMAGED: &str = "damaged rows";
/// Rows that repeat a time.
const SAME_TIME: &str = "rows replaced by one of the same time";

/// Rows that were taken so far.
pub(crate) struct Taken {
    quantity: Quantity,
    gap: Gap,
    /// Time of the first row.
    origin: Option<i128>,
    /// Since then, each with its value.
    rows: Vec<(u64, f64)>,
    /// End of the last row, if rows say how long they measured.
    end: Option<u64>,
    count: usize,
    pub passed_over: Vec<PassedOver>,
}

impl Taken {
    pub fn new(quantity: Quantity, gap: Gap) -> Taken {
        let (rows, passed_over) = (Vec::new(), Vec::new());
        Taken { quantity, gap, origin: None, rows, end: None, count: 0, passed_over }
    }

    /// Counts a row that gave no value.
    pub fn pass_over(&mut self, reason: &'static str, line: usize) {
        match self.passed_over.iter_mut().find(|over| over.reason == reason) {
            Some(over) => over.lines += 1,
            None => self.passed_over.push(PassedOver { reason, lines: 1, first: line }),
        }
    }

    /// Returns the number of rows that gave no value for a reason, and the line of the first.
    pub fn passed_over(&self, reason: &str) -> (usize, usize) {
        let found = self.passed_over.iter().find(|over| over.reason == reason);
        found.map_or((0, 0), |over| (over.lines, over.first))
    }

    /// Returns the number of rows taken.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds the value of a row from `at` on, nanoseconds since some instant.
    pub fn add(&mut self, line: usize, at: i128, value: f64) -> Result<(), FileError> {
        let origin = *self.origin.get_or_insert(at);
        let last = self.rows.last().map_or(0, |(at, _)| *at);
        let at = since(at, origin, last, line)?;
        self.take(line, at, value)
    }

    /// Adds the value of a row that it measured from `from` until `until`.
    pub fn add_span(
        &mut self,
        line: usize,
        (from, until): (i128, i128),
        value: f64,
    ) -> Result<(), FileError> {
        let origin = *self.origin.get_or_insert(from);
        let before = self.end.unwrap_or(0);
        let until = since(until, origin, before, line)?;
        // Spans that overlap by the time that it takes to write a row belong to the earlier row.
        let from = u64::try_from(from - origin).unwrap_or(0).max(before);
        if from >= until {
            self.pass_over(DAMAGED, line);
            return Ok(());
        }
        if self.gap == Gap::Zero && from > before && self.end.is_some() {
            self.rows.push((before, 0.0));
        }
        self.end = Some(until);
        self.take(line, from, value)
    }

    fn take(&mut self, line: usize, at: u64, value: f64) -> Result<(), FileError> {
        if !self.quantity.is_possible(value) {
            self.pass_over(DAMAGED, line);
            return Ok(());
        }
        self.count += 1;
        match self.rows.last_mut() {
            Some((last, held)) if *last == at => {
                *held = value;
                self.pass_over(SAME_TIME, line);
            }
            _ => self.rows.push((at, value)),
        }
        if self.rows.len() > ROWS_MAX {
            let problem = format!("there are more than {ROWS_MAX} rows");
            return Err(FileError::new(
                line,
                problem,
                "choose fewer with rows = \"column = value\"",
            ));
        }
        Ok(())
    }

    /// Returns the series; `None` without rows.
    pub fn series(self, format: &'static str) -> Option<Series> {
        let Taken { quantity, gap, mut rows, end, count, passed_over, .. } = self;
        let last = rows.last()?.0;
        let span_ns = match end {
            Some(end) => end,
            None => {
                let usual = usual(&rows);
                if gap == Gap::Zero {
                    rows = with_gaps(&rows, usual);
                }
                last.saturating_add(usual)
            }
        };
        rows.dedup_by(|next, before| next.1 == before.1);
        let after = (gap == Gap::Zero).then_some(0.0);
        Some(Series { format, quantity, rows: count, passed_over, steps: rows, span_ns, after })
    }
}

/// Returns the nanoseconds since `origin`; fails if they are before `last`.
fn since(at: i128, origin: i128, last: u64, line: usize) -> Result<u64, FileError> {
    let at = at - origin;
    if at < i128::from(last) {
        let seconds = |ns: i128| format!("{} s", ns as f64 / 1e9);
        let problem = format!(
            "the time goes back to {} since the first row, from {}",
            seconds(at),
            seconds(i128::from(last))
        );
        let advice = "sort the rows by time, or choose those of one recording with rows = \
                      \"column = value\"";
        return Err(FileError::new(line, problem, advice));
    }
    // A hundred years.
    u64::try_from(at).ok().filter(|at| *at < 3_200_000_000_000_000_000).ok_or_else(|| {
        let problem = "the time is more than a century after the first row";
        FileError::new(line, problem, "check the unit after the name of the column")
    })
}

/// Returns the usual time between two rows: the median, of two the shorter.
fn usual(rows: &[(u64, f64)]) -> u64 {
    let mut apart: Vec<u64> = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    match apart.len() {
        0 => SINGLE,
        count => *apart.select_nth_unstable((count - 1) / 2).1,
    }
}

/// Returns rows with a zero where one is missing.
fn with_gaps(rows: &[(u64, f64)], usual: u64) -> Vec<(u64, f64)> {
    let mut all = Vec::with_capacity(rows.len());
    for (index, (at, value)) in rows.iter().enumerate() {
        all.push((*at, *value));
        let next = rows.get(index + 1).map_or(*at, |(next, _)| *next);
        if (next - at) as f64 > GAP * usual as f64 {
            all.push((at + usual, 0.0));
        }
    }
    all
}
