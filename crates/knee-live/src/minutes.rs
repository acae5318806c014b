//! Table of aggregates: one row for each minute and kind of connections.

use crate::cells::{Cell, Cells, Kind};
use knee_columns::{Cells as Column, Kind as Type, each};
use knee_record::{Error, ObservedPoint, read_columns, size_classes, write_columns_durably};
use knee_units::statistics::Sketch;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Schema of the table, described in docs/observe.md.
pub const MINUTES_SCHEMA: &str = "knee-minutes/1";

/// Seconds of a minute.
pub(crate) const MINUTE_S: u64 = 60;
const MINUTE_NS: u64 = MINUTE_S * 1_000_000_000;

/// Connections that ended within a minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minute {
    /// Start, nanoseconds since 1970 (UTC).
    pub unix_ns: u64,
    /// Part of it that was observed; 0: all of it, in files that earlier versions wrote.
    pub observed_ns: u64,
    pub cells: Cells,
    /// Reports dropped by the kernel in this minute, of all kinds.
    pub lost: u64,
}

impl Minute {
    /// Sums over all kinds.
    pub fn point(&self) -> ObservedPoint {
        let cells = self.cells.0.values();
        let sum = |get: fn(&Cell) -> u64| cells.clone().map(get).sum();
        ObservedPoint {
            unix_s: self.unix_ns / 1_000_000_000,
            minutes: 1,
            observed_ns: if self.observed_ns == 0 { MINUTE_NS } else { self.observed_ns },
            connections: sum(|cell| cell.connections),
            acked_bytes: sum(|cell| cell.acked_bytes),
            sent_bytes: sum(|cell| cell.sent_bytes),
            retransmitted_bytes: sum(|cell| cell.retransmitted_bytes),
            lost_reports: self.lost,
        }
    }
}

type Row<'a> = (&'a Minute, &'a Kind, &'a Cell);

/// Writes minutes as the Parquet file `path`. A minute without connections has a row without a
/// kind, which records its lost reports.
pub(crate) fn write(path: &Path, minutes: &[Minute]) -> Result<(), Error> {
    let nothing = (
        Kind { group: "".into(), class: None, controller: "".into(), arm: "".into() },
        Cell::default(),
    );
    let rows: Vec<Row<'_>> = minutes
        .iter()
        .flat_map(|minute| {
            let quiet = minute.cells.0.is_empty().then_some((minute, &nothing.0, &nothing.1));
            minute.cells.0.iter().map(move |(kind, cell)| (minute, kind, cell)).chain(quiet)
        })
        .collect();
    let integers = |name: &str, get: fn(&Row<'_>) -> u64| {
        let values = rows.iter().map(|row| i64::try_from(get(row)).unwrap_or(i64::MAX)).collect();
        (name.to_string(), Type::Integer { nullable: false }, Column::Integers(values, None))
    };
    let texts = |name: &str, get: &dyn Fn(&Row<'_>) -> String| {
        let values: Vec<String> = rows.iter().map(get).collect();
        let column = Column::texts(values.iter().map(String::as_str));
        (name.to_string(), Type::Text, column)
    };
    let classes = size_classes();
    let class = |row: &Row<'_>| row.1.class.map_or("", |class| classes[class].name).to_string();
    let sketch = |name: &str, get: fn(&Cell) -> &Sketch| texts(name, &|row| get(row.2).text());
    let columns = [
        integers("minute_unix_ns", |row| row.0.unix_ns),
        texts("group", &|row| row.1.group.to_string()),
        texts("class", &class),
        texts("cc", &|row| row.1.controller.to_string()),
        texts("arm", &|row| row.1.arm.to_string()),
        integers("observed_ns", |row| row.0.observed_ns),
        integers("connections", |row| row.2.connections),
        integers("unfinished", |row| row.2.unfinished.unwrap_or(0)),
        integers("lost_reports", |row| row.0.lost),
        integers("acked_bytes", |row| row.2.acked_bytes),
        integers("sent_bytes", |row| row.2.sent_bytes),
        integers("retransmitted_bytes", |row| row.2.retransmitted_bytes),
        integers("timeouts", |row| row.2.timeouts),
        integers("busy_ns", |row| row.2.busy_ns),
        integers("receive_limited_ns", |row| row.2.receive_limited_ns),
        integers("send_buffer_limited_ns", |row| row.2.send_buffer_limited_ns),
        sketch("throughput_bps_sketch", |cell| &cell.throughput_bps),
        sketch("busy_us_sketch", |cell| &cell.busy_us),
        sketch("rtt_min_us_sketch", |cell| &cell.rtt_min_us),
    ];
    write_columns_durably(path, MINUTES_SCHEMA, &columns)
}

/// Columns to read, in this order: numbers, then texts.
const NUMBERS: [&str; 12] = [
    "minute_unix_ns",
    "observed_ns",
    "unfinished",
    "connections",
    "lost_reports",
    "acked_bytes",
    "sent_bytes",
    "retransmitted_bytes",
    "timeouts",
    "busy_ns",
    "receive_limited_ns",
    "send_buffer_limited_ns",
];
/// Columns that earlier versions did not write.
const ADDED: [&str; 2] = ["observed_ns", "unfinished"];
const TEXTS: [&str; 7] =
    ["group", "class", "cc", "arm", "throughput_bps_sketch", "busy_us_sketch", "rtt_min_us_sketch"];

/// Reads a file of [`write`] and passes on each minute.
///
/// # Errors
/// [`Error::Schema`], or [`Error::Malformed`] for impossible values.
pub(crate) fn read(path: &Path, mut take: impl FnMut(Minute)) -> Result<(), Error> {
    let number = Type::Integer { nullable: false };
    let numbers = NUMBERS.iter().map(|name| (*name, number));
    let columns: Vec<(&str, Type)> =
        numbers.chain(TEXTS.iter().map(|name| (*name, Type::Text))).collect();
    let mut names = Names::default();
    let (mut minute, mut wrong) = (None::<Minute>, None);
    read_columns(path, MINUTES_SCHEMA, &columns, &ADDED, |rows, cells| {
        for row in Rows::of(cells, rows) {
            match row.and_then(|row| row.read(&mut names)) {
                Ok((next, kind, cell)) => {
                    if minute.as_ref().is_none_or(|minute| minute.unix_ns != next.unix_ns) {
                        minute.replace(next).into_iter().for_each(&mut take);
                    }
                    // A row without connections records the losses of a minute.
                    if let Some(minute) = minute.as_mut().filter(|_| cell.connections > 0) {
                        minute.cells.0.entry(kind).or_default().merge(&cell);
                    }
                }
                Err(reason) => wrong = wrong.take().or(Some(reason)),
            }
        }
    })?;
    if let Some(reason) = wrong {
        return Err(Error::Malformed { path: path.to_path_buf(), reason });
    }
    minute.into_iter().for_each(take);
    Ok(())
}

/// Interned texts.
#[derive(Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.0.insert(text.clone());
        text
    }
}

/// The cells of a row.
struct Read<'c> {
    numbers: [u64; NUMBERS.len()],
    texts: [&'c str; TEXTS.len()],
}

/// Iterates over rows by advancing an iterator over each column.
struct Rows<'c> {
    numbers: Vec<Box<dyn Iterator<Item = Option<&'c i64>> + 'c>>,
    texts: Vec<Box<dyn Iterator<Item = Option<&'c [u8]>> + 'c>>,
    left: usize,
}

impl<'c> Rows<'c> {
    fn of(cells: &'c [Column], left: usize) -> Rows<'c> {
        let mut rows = Rows { numbers: Vec::new(), texts: Vec::new(), left };
        for column in cells {
            match column {
                Column::Integers(values, present) => {
                    rows.numbers.push(Box::new(each(values, present)));
                }
                Column::Texts(values, present) => {
                    rows.texts.push(Box::new(values.each(present)));
                }
                // Other types were rejected.
                Column::Floats(..) | Column::Flags(..) => {}
            }
        }
        rows
    }
}

impl<'c> Iterator for Rows<'c> {
    type Item = Result<Read<'c>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut read = Read { numbers: [0; NUMBERS.len()], texts: [""; TEXTS.len()] };
        let mut wrong = None;
        for (at, column) in self.numbers.iter_mut().enumerate() {
            match column.next().flatten().map(|number| u64::try_from(*number)) {
                Some(Ok(number)) => read.numbers[at] = number,
                _ => wrong = Some(format!("column {} lacks a number", NUMBERS[at])),
            }
        }
        for (at, column) in self.texts.iter_mut().enumerate() {
            match str::from_utf8(column.next().flatten().unwrap_or_default()) {
                Ok(text) => read.texts[at] = text,
                Err(_) => wrong = Some(format!("column {} is not UTF-8", TEXTS[at])),
            }
        }
        Some(wrong.map_or(Ok(read), Err))
    }
}

impl Read<'_> {
    /// Returns the minute without its cells, a kind and its cell.
    fn read(self, names: &mut Names) -> Result<(Minute, Kind, Cell), String> {
        let [unix_ns, observed_ns, unfinished, connections, lost, acked_bytes, rest @ ..] =
            self.numbers;
        let [sent_bytes, retransmitted_bytes, timeouts, busy_ns, rest @ ..] = rest;
        let [receive_limited_ns, send_buffer_limited_ns] = rest;
        let [group, class, controller, arm, throughput_bps, busy_us, rtt_min_us] = self.texts;
        let classes = size_classes();
        let class = match class {
            "" => None,
            name => match classes.iter().position(|class| class.name == name) {
                None => return Err(format!("{name:?} is not a size class")),
                found => found,
            },
        };
        let sketch = |text: &str| Sketch::parse(text).ok_or(format!("{text:?} is not a sketch"));
        let cell = Cell {
            connections,
            // Earlier versions wrote neither.
            unfinished: (observed_ns > 0).then_some(unfinished),
            acked_bytes,
            sent_bytes,
            retransmitted_bytes,
            timeouts,
            busy_ns,
            receive_limited_ns,
            send_buffer_limited_ns,
            throughput_bps: sketch(throughput_bps)?,
            busy_us: sketch(busy_us)?,
            rtt_min_us: sketch(rtt_min_us)?,
        };
        let (group, controller, arm) = (names.get(group), names.get(controller), names.get(arm));
        let kind = Kind { group, class, controller, arm };
        Ok((Minute { unix_ns, observed_ns, lost, ..Minute::default() }, kind, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Ended;

    fn minute(unix_ns: u64, lost: u64, ended: &[(&str, &str, Ended)]) -> Minute {
        let mut minute = Minute { unix_ns, observed_ns: MINUTE_NS, lost, ..Minute::default() };
        for (group, controller, ended) in ended {
            let arm = if *controller == "bbr" { "treated" } else { "" };
            minute.cells.add((*group).into(), (*controller).into(), arm.into(), ended);
        }
        minute
    }

    /// Written minutes read back unchanged: quiet minutes, groups, silent connections.
    #[test]
    fn minutes_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("minutes-1.parquet");
        let silent = Ended { is_unfinished: Some(false), ..Ended::default() };
        let large = Ended { acked_bytes: 5_000_000, busy_us: 80_000, ..silent };
        let small = Ended {
            acked_bytes: 12_345,
            sent_bytes: 13_805,
            retransmitted_bytes: 1460,
            timeouts: 1,
            busy_us: 21_000,
            rtt_min_us: Some(20_125.0),
            is_unfinished: Some(true),
            ..Ended::default()
        };
        let minutes = vec![
            minute(60_000_000_000, 0, &[("a", "bbr", large), ("a", "", small), ("", "", silent)]),
            Minute { observed_ns: 25_000_000_000, ..minute(120_000_000_000, 3, &[]) },
            minute(180_000_000_000, 1, &[("a", "bbr", large), ("a", "bbr", large)]),
        ];
        write(&path, &minutes).unwrap();
        let mut again = Vec::new();
        read(&path, |minute| again.push(minute)).unwrap();
        let parts = |minutes: &[Minute]| {
            let part = |m: &Minute| (m.unix_ns, m.observed_ns, m.lost, m.cells.clone());
            minutes.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(parts(&again), parts(&minutes));
    }

    /// Files without the columns, which read as zeros, do not say that every connection finished;
    /// nor do they together with others.
    #[test]
    fn earlier_versions_did_not_count_unfinished_connections() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("minutes-1.parquet");
        let ended = Ended { is_unfinished: Some(true), ..Ended::default() };
        let old = Minute { observed_ns: 0, ..minute(60_000_000_000, 0, &[("a", "bbr", ended)]) };
        let new = minute(120_000_000_000, 0, &[("a", "bbr", ended)]);
        write(&path, &[old, new]).unwrap();
        let (mut all, mut each) = (Cell::default(), Vec::new());
        read(&path, |minute| {
            for (_, cell) in minute.cells.0.iter() {
                each.push(cell.unfinished_ratio());
                all.merge(cell);
            }
        })
        .unwrap();
        assert_eq!(each, [None, Some(1.0)]);
        assert_eq!((all.connections, all.unfinished_ratio()), (2, None));
    }
}
