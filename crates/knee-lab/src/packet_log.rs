//! Reads the packet log of a run, line by line.

use crate::directory::PACKETS;
use crate::error::Error;
use knee_scenario::open_inside;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// First line of a supported packet log.
const FORMAT: &str = "# knee-packet-log/3";
/// Longest line of a packet log, bytes; an ACK of many ranges has some thousand.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Why a packet log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}, line {line}: {what}")]
pub struct PacketLogError {
    /// The file.
    pub path: PathBuf,
    /// Line number, from one.
    pub line: usize,
    /// The problem: damage, or an unsupported version.
    pub what: String,
}

/// Column indices.
pub(crate) const LINK: usize = 2;
pub(crate) const KIND: usize = 4;
pub(crate) const ID: usize = 5;
pub(crate) const NUMBER: usize = 6;
pub(crate) const BYTES: usize = 7;
pub(crate) const IN_FLIGHT: usize = 8;
pub(crate) const WINDOW: usize = 9;
pub(crate) const PACING: usize = 10;
pub(crate) const OFFSET: usize = 12;
pub(crate) const DETAIL: usize = 14;

/// A line of a packet log.
pub(crate) enum Line<'t> {
    /// A line of the head, without `# `: its fields.
    Head(std::str::Split<'t, char>),
    /// A row.
    Row(Row<'t>),
}

/// An unparsed row of the packet log.
pub(crate) struct Row<'t> {
    pub at_ns: u64,
    pub event: &'t str,
    /// The flow; `None` for what is no event of a flow.
    pub flow: Option<u32>,
    pub cells: Vec<&'t str>,
}

impl<'t> Row<'t> {
    fn of(text: &'t str) -> Option<Row<'t>> {
        let cells: Vec<&str> = text.split(',').collect();
        let (at_ns, event, flow) = (cells.first()?.parse().ok()?, *cells.get(1)?, *cells.get(3)?);
        let flow = if flow.is_empty() { None } else { Some(flow.parse().ok()?) };
        (cells.len() == DETAIL + 1).then_some(Row { at_ns, event, flow, cells })
    }

    /// The number in a cell.
    pub fn number(&self, place: usize) -> Option<u64> {
        self.cells[place].parse().ok()
    }
}

/// Whether a run wrote a packet log.
pub(crate) fn is_in(directory: &Path) -> bool {
    directory.join(PACKETS).is_file()
}

/// Passes each line of a run's packet log to `take`, which says what is missing in it, if anything.
/// Returns the number of lines.
///
/// # Errors
/// A log that cannot be read, and a [`PacketLogError`].
pub(crate) fn each_line(
    directory: &Path,
    mut take: impl FnMut(Line<'_>) -> Result<(), &'static str>,
) -> Result<usize, Error> {
    let path = directory.join(PACKETS);
    let unreadable = |source| Error::Read { path: path.clone(), source };
    let damaged =
        |line: usize, what: &str| PacketLogError { path: path.clone(), line, what: what.into() };
    let file = open_inside(directory, Path::new(PACKETS)).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut text = String::new();
    let mut number = 0;
    loop {
        number += 1;
        text.clear();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_line(&mut text).map_err(unreadable)?;
        if read as u64 == LINE_BYTES_MAX {
            return Err(damaged(number, "the line is longer than any of a log").into());
        }
        let text = text.trim_end_matches(['\n', '\r']);
        // Also of an empty file, which would say that nothing happened.
        if number == 1 && text != FORMAT {
            return Err(damaged(1, &format!("it does not begin with {FORMAT}")).into());
        }
        if read == 0 {
            return Ok(number - 1);
        }
        if text.starts_with("time_ns") {
            continue;
        }
        let line = match text.strip_prefix("# ") {
            Some(head) => Line::Head(head.split(',')),
            None => Line::Row(
                Row::of(text).ok_or_else(|| damaged(number, "it is not a row of a packet log"))?,
            ),
        };
        take(line).map_err(|what| damaged(number, what))?;
    }
}
