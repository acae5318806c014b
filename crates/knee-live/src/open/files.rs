//! Files of open connections and of the host's counters.

use super::connections::OpenConnection;
use super::host::HostChange;
use crate::LiveError;
use crate::files::{COUNTERS, FILE_BYTES, FILE_TIME, Folder, OPEN, Written, stamp};
use crate::observer::nanos;
use knee_columns::{Cells, Kind};
use knee_record::{ColumnFile, Error};
use std::path::PathBuf;
use std::time::Duration;

/// Schemas of the tables, described in docs/observe.md.
pub const OPEN_SCHEMA: &str = "knee-open/1";
/// See above.
pub const COUNTERS_SCHEMA: &str = "knee-counters/1";

/// Rows of a row group, which is kept in memory until it is written.
const GROUP_ROWS: usize = 64 * 1024;
const NUMBER: Kind = Kind::Integer { nullable: false };
const MAYBE: Kind = Kind::Integer { nullable: true };
const OPEN_COLUMNS: [(&str, Kind); 27] = [
    ("time_ns", NUMBER),
    ("interval_ns", NUMBER),
    ("connection", NUMBER),
    ("state", Kind::Text),
    ("cc", Kind::Text),
    ("group", Kind::Text),
    ("prefix", Kind::Text),
    ("local_port", NUMBER),
    ("remote_port", NUMBER),
    ("interval_sent_bytes", NUMBER),
    ("interval_retransmitted_bytes", NUMBER),
    ("interval_acked_bytes", NUMBER),
    ("interval_retransmitted_packets", NUMBER),
    ("interval_dsacks", NUMBER),
    ("sent_bytes", NUMBER),
    ("retransmitted_bytes", NUMBER),
    ("acked_bytes", NUMBER),
    ("retransmitted_packets", NUMBER),
    ("timeouts", MAYBE),
    ("srtt_ns", MAYBE),
    ("rtt_min_ns", MAYBE),
    ("window_bytes", NUMBER),
    ("mss_bytes", NUMBER),
    ("unacked_packets", NUMBER),
    ("unsent_bytes", NUMBER),
    ("pacing_rate_bps", MAYBE),
    ("delivery_rate_bps", MAYBE),
];
const COUNTER_COLUMNS: [(&str, Kind); 7] = [
    ("time_ns", NUMBER),
    ("interval_ns", NUMBER),
    ("place", Kind::Text),
    ("interface", Kind::Text),
    ("qdisc", Kind::Text),
    ("counter", Kind::Text),
    ("change", NUMBER),
];

/// A value of a row.
enum Value<'a> {
    Number(u64),
    Maybe(Option<u64>),
    Text(&'a str),
}

/// Rows of a file, column by column.
struct Table {
    file: ColumnFile,
    start: &'static str,
    cells: Vec<Cells>,
    rows: usize,
}

impl Table {
    fn create(
        folder: &Folder,
        start: &'static str,
        name: &str,
        schema: &str,
        epoch: Duration,
        columns: &[(&str, Kind)],
    ) -> Result<Table, LiveError> {
        let file = ColumnFile::create(&folder.path(start, name), schema, nanos(epoch), columns)?;
        let cells = columns.iter().map(|(_, kind)| Cells::none(*kind)).collect();
        Ok(Table { file, start, cells, rows: 0 })
    }

    fn push<'a>(&mut self, row: impl IntoIterator<Item = Value<'a>>) -> Result<(), Error> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        for (cells, value) in self.cells.iter_mut().zip(row) {
            match (cells, value) {
                (Cells::Integers(values, None), Value::Number(value)) => values.push(number(value)),
                (Cells::Integers(values, Some(present)), Value::Maybe(value)) => {
                    present.push(value.is_some().into());
                    values.extend(value.map(number));
                }
                (cells, Value::Text(text)) => cells.add_text(text),
                // No other: the columns are declared above.
                _ => {}
            }
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        if self.rows > 0 {
            self.file.write(&self.cells)?;
            self.cells.iter_mut().for_each(Cells::clear);
            self.rows = 0;
        }
        Ok(())
    }

    fn finish(mut self, folder: &mut Folder, name: &str) -> Result<(), Error> {
        self.write()?;
        let path = folder.path(self.start, name);
        self.file.finish()?;
        folder.completed(name, path);
        Ok(())
    }
}

/// The pair of files that is being written.
struct Pair {
    connections: Table,
    counters: Table,
    /// Time stamp in the names.
    name: String,
    epoch: Duration,
    /// Whether the host's counters have rows yet.
    has_counters: bool,
}

/// Files that rotate.
pub(crate) struct OpenFiles {
    folder: Folder,
    pair: Option<Pair>,
}

/// An interval: its end, since 1970 (UTC), and its length.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub unix: Duration,
    pub length: Duration,
}

impl OpenFiles {
    pub fn new(directory: PathBuf, bytes_max: u64) -> Result<OpenFiles, LiveError> {
        Ok(OpenFiles { folder: Folder::new(&directory, bytes_max)?, pair: None })
    }

    /// Whether files have begun and are not complete yet.
    pub fn is_begun(&self) -> bool {
        self.pair.is_some()
    }

    /// Adds the rows of an interval. `prefix` truncates the address of a peer.
    pub fn push(
        &mut self,
        span: Span,
        connections: &[OpenConnection],
        host: &HostChange,
        mut prefix: impl FnMut(&OpenConnection) -> std::sync::Arc<str>,
    ) -> Result<(), LiveError> {
        let pair = match &mut self.pair {
            Some(pair) => pair,
            none => {
                // The first interval began before the files.
                let epoch = span.unix.saturating_sub(span.length);
                let name = stamp(epoch);
                let table = |start, schema, columns: &[_]| {
                    Table::create(&self.folder, start, &name, schema, epoch, columns)
                };
                none.insert(Pair {
                    connections: table(OPEN, OPEN_SCHEMA, &OPEN_COLUMNS)?,
                    counters: table(COUNTERS, COUNTERS_SCHEMA, &COUNTER_COLUMNS)?,
                    name: name.clone(),
                    epoch,
                    has_counters: false,
                })
            }
        };
        let times = [span.unix.saturating_sub(pair.epoch), span.length].map(nanos);
        for one in connections.iter().filter(|one| one.is_active()) {
            pair.connections.push(row(times, one, &prefix(one)))?;
        }
        // Afterwards only those that change: a host may have many interfaces.
        let all = !pair.has_counters;
        pair.has_counters = true;
        for (place, interface, qdisc, counter, change) in counters(host) {
            if all || change > 0 {
                let [time, interval] = times.map(Value::Number);
                let texts = [place, interface, &qdisc, counter].map(Value::Text);
                let row = [time, interval].into_iter().chain(texts).chain([Value::Number(change)]);
                pair.counters.push(row)?;
            }
        }
        let is_old = span.unix.saturating_sub(pair.epoch) >= FILE_TIME;
        if is_old || pair.connections.file.bytes() >= FILE_BYTES {
            self.close()?;
        }
        Ok(())
    }

    /// Completes the current files.
    fn close(&mut self) -> Result<(), LiveError> {
        if let Some(Pair { connections, counters, name, .. }) = self.pair.take() {
            connections.finish(&mut self.folder, &name)?;
            counters.finish(&mut self.folder, &name)?;
            self.folder.forget(&name)?;
        }
        Ok(())
    }

    /// Completes all files and returns the list.
    pub fn finish(mut self) -> Result<Written, LiveError> {
        self.close()?;
        Ok(self.folder.written())
    }
}

fn row<'a>(
    times: [u64; 2],
    one: &'a OpenConnection,
    prefix: &'a str,
) -> impl IntoIterator<Item = Value<'a>> {
    use Value::{Maybe, Number, Text};
    let OpenConnection { change, info, .. } = one;
    let record = crate::row::connection_record(info);
    [
        Number(times[0]),
        Number(times[1]),
        Number(one.cookie),
        Text(info.state()),
        Text(&one.controller),
        Text(&one.group),
        Text(prefix),
        Number(one.local.port().into()),
        Number(one.remote.port().into()),
        Number(change.sent_bytes),
        Number(change.retransmitted_bytes),
        Number(change.acked_bytes),
        Number(change.retransmitted_packets),
        Number(change.dsacks),
        Number(info.sent_bytes),
        Number(info.retransmitted_bytes),
        Number(info.delivered_bytes()),
        Number(info.retransmitted_packets.into()),
        Maybe(record.timeouts),
        Maybe(record.srtt_ns),
        Maybe(record.rtt_min_ns),
        Number(record.window_bytes.unwrap_or(0)),
        Number(info.mss.into()),
        Number(info.unacked.into()),
        Number(info.unsent_bytes.into()),
        Maybe(record.pacing_rate_bps),
        Maybe(record.delivery_rate_bps),
    ]
}

/// The counters of a host: place, interface, queueing discipline, counter and change.
pub(crate) fn counters(
    host: &HostChange,
) -> impl Iterator<Item = (&'static str, &str, String, &str, u64)> {
    let stack = host.stack.iter();
    let stack = stack.map(|(name, change)| ("stack", "", String::new(), name.as_str(), *change));
    let interfaces = host.interfaces.iter().flat_map(|one| {
        let name = one.name.as_str();
        let driver = one.driver.iter();
        let driver = driver
            .map(move |(counter, change)| ("interface", name, String::new(), *counter, *change));
        let card = one.card.iter().flatten();
        let card = card.map(move |(statistic, change)| {
            ("card", name, String::new(), statistic.as_str(), *change)
        });
        let qdiscs = one.qdiscs.iter().flat_map(move |qdisc| {
            let which = format!("{} {}", qdisc.kind, qdisc.handle);
            let figures = [
                ("sent_packets", qdisc.sent_packets),
                ("drops", qdisc.drops),
                ("overlimits", qdisc.overlimits),
                ("requeues", qdisc.requeues),
                ("backlog_bytes", qdisc.backlog_bytes),
                ("backlog_packets", qdisc.backlog_packets),
            ];
            figures.map(|(counter, change)| ("qdisc", name, which.clone(), counter, change))
        });
        driver.chain(card).chain(qdiscs)
    });
    stack.chain(interfaces)
}
