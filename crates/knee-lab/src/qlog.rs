//! Converts a flow's packet log to qlog. Implements `knee export qlog`.
//!
//! The format is that of draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-01 (`qlog_version` 0.3), which qvis opens. TCP events are
//! expressed in QUIC terms: each transmission has its own packet number, an acknowledgement lists
//! the transmissions that had arrived, and a single stream carries the data. RTTs are those of the
//! newest transmission that an acknowledgement is the first to cover.

mod connection;

use crate::directory::PACKETS;
use crate::error::Error;
use connection::Connection;
use knee_record::read_summary;
use knee_scenario::open_inside;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// First line of a supported packet log.
const FORMAT: &str = "# knee-packet-log/3";
/// Longest line of a packet log, bytes; an ACK of many ranges has some thousand.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Why a qlog cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum QlogError {
    /// The run wrote no packet log.
    #[error("{0} contains no packet log")]
    NoPacketLog(String),
    /// The run has no such flow.
    #[error("there is no flow {flow} in this run")]
    NoFlow {
        /// The requested name.
        flow: String,
        /// The flows of the run.
        known: Vec<String>,
    },
    /// The packet log does not identify the flow's packets.
    #[error("the packet log does not identify the packets of flow {0}")]
    NotNamed(String),
    /// The packet log is damaged or has an unsupported version.
    #[error("{path}, line {line}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line number, from one.
        line: usize,
        /// The problem.
        what: String,
    },
}

/// Writes the qlog of a flow such as `bbr[1]`, with a trace for each of its connections and
/// subflows. Returns the number of traces.
///
/// # Errors
/// A [`QlogError`], or a file that cannot be read or written.
pub fn write_qlog(directory: &Path, flow: &str, out: &mut dyn Write) -> Result<usize, Error> {
    let summary = read_summary(directory)?;
    let names = summary.flows.iter().map(|flow| format!("{}[{}]", flow.name, flow.index));
    let known: Vec<String> = names.collect();
    let wanted = |name: &String| name == flow || *name == format!("{flow}[0]");
    let Some(index) = known.iter().position(wanted) else {
        return Err(QlogError::NoFlow { flow: flow.to_string(), known }.into());
    };
    let path = directory.join(PACKETS);
    if !path.is_file() {
        return Err(QlogError::NoPacketLog(directory.display().to_string()).into());
    }
    let unreadable = |source| Error::Read { path: path.clone(), source };
    let file = open_inside(directory, Path::new(PACKETS)).map_err(unreadable)?;
    let connections = connections(&path, file, index)?;
    if connections.is_empty() {
        return Err(QlogError::NotNamed(known[index].clone()).into());
    }
    let title = serde_json::json!(format!("{}, {}", summary.name, known[index]));
    let failed = |source| Error::Write { path: PathBuf::from("the qlog"), source };
    let write = |out: &mut dyn Write| -> std::io::Result<()> {
        write!(out, r#"{{"qlog_version":"0.3","qlog_format":"JSON","title":{title},"traces":["#)?;
        for (at, (number, connection)) in connections.iter().enumerate() {
            out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            connection.write(out, *number)?;
        }
        out.write_all(b"\n]}\n")
    };
    write(out).map_err(failed)?;
    Ok(connections.len())
}

/// Reads a flow's connections and subflows from the log, by number.
fn connections(path: &Path, file: File, index: usize) -> Result<BTreeMap<u32, Connection>, Error> {
    let unreadable = |source| Error::Read { path: path.to_path_buf(), source };
    let damaged = |line: usize, what: &str| QlogError::Damaged {
        path: path.to_path_buf(),
        line,
        what: what.to_string(),
    };
    let mut connections: BTreeMap<u32, Connection> = BTreeMap::new();
    let of = format!("of={index}");
    let mut reader = BufReader::with_capacity(1 << 20, file);
    for line in 0.. {
        let mut text = String::new();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_line(&mut text).map_err(unreadable)?;
        if read as u64 == LINE_BYTES_MAX {
            return Err(damaged(line + 1, "the line is longer than any of a log").into());
        }
        if read == 0 {
            break;
        }
        let text = text.trim_end_matches(['\n', '\r']);
        if line == 0 && text != FORMAT {
            return Err(damaged(1, &format!("it does not begin with {FORMAT}")).into());
        }
        if let Some(head) = text.strip_prefix("# flow,") {
            let mut fields = head.split(',');
            let number = fields.next().and_then(|number| number.parse().ok());
            let number = number.ok_or_else(|| damaged(line + 1, "a flow has no number"))?;
            if fields.any(|field| field == of) {
                connections.insert(number, Connection::default());
            }
            continue;
        }
        if text.starts_with('#') || text.starts_with("time_ns") {
            continue;
        }
        let row =
            Row::of(text).ok_or_else(|| damaged(line + 1, "it is not a row of a packet log"))?;
        if let Some(connection) = connections.get_mut(&row.flow) {
            let taken = connection.take(&row);
            taken.ok_or_else(|| damaged(line + 1, "a number is missing"))?;
        }
    }
    Ok(connections)
}

/// An unparsed row of the packet log.
struct Row<'t> {
    at_ns: u64,
    event: &'t str,
    flow: u32,
    cells: Vec<&'t str>,
}

/// Column indices.
const ID: usize = 5;
const NUMBER: usize = 6;
const BYTES: usize = 7;
const IN_FLIGHT: usize = 8;
const WINDOW: usize = 9;
const PACING: usize = 10;
const OFFSET: usize = 12;
const DETAIL: usize = 14;

impl<'t> Row<'t> {
    fn of(text: &'t str) -> Option<Row<'t>> {
        let cells: Vec<&str> = text.split(',').collect();
        let (at_ns, event, flow) = (cells.first()?.parse().ok()?, *cells.get(1)?, cells.get(3)?);
        (cells.len() == DETAIL + 1).then_some(Row { at_ns, event, flow: flow.parse().ok()?, cells })
    }

    fn number(&self, place: usize) -> Option<u64> {
        self.cells[place].parse().ok()
    }
}
