//! Converts a flow's packet log to qlog. Implements `knee export qlog`.
//!
//! The format is that of draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-01 (`qlog_version` 0.3), which qvis opens. TCP events are
//! expressed in QUIC terms: each transmission has its own packet number, an acknowledgement lists
//! the transmissions that had arrived, and a single stream carries the data. RTTs are those of the
//! newest transmission that an acknowledgement is the first to cover.

mod connection;

use crate::error::Error;
use crate::packet_log::{self, Line};
use connection::Connection;
use knee_record::read_summary;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    if !packet_log::is_in(directory) {
        return Err(QlogError::NoPacketLog(directory.display().to_string()).into());
    }
    let connections = connections(directory, index)?;
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
fn connections(directory: &Path, index: usize) -> Result<BTreeMap<u32, Connection>, Error> {
    let mut connections: BTreeMap<u32, Connection> = BTreeMap::new();
    let of = format!("of={index}");
    packet_log::each_line(directory, |line| {
        match line {
            Line::Head(mut fields) => {
                if fields.next() != Some("flow") {
                    return Ok(());
                }
                let number = fields.next().and_then(|number| number.parse().ok());
                let number = number.ok_or("a flow has no number")?;
                if fields.any(|field| field == of) {
                    connections.insert(number, Connection::default());
                }
            }
            Line::Row(row) => {
                let connection = row.flow.and_then(|flow| connections.get_mut(&flow));
                if let Some(connection) = connection {
                    connection.take(&row).ok_or("a number is missing")?;
                }
            }
        }
        Ok(())
    })?;
    Ok(connections)
}
