//! The text of a log: its head and its rows.

mod fields;
mod head;
mod row;

pub use head::{Aqm, Breaker, Buffer, Connection, Flow, Head, Link, Loss, Opened, Policer, Rate};
pub use row::{AckSend, DataAck, Event, Kind, Reason, Repeat, Row, Seen, Send, Timeout};

use std::fmt;
use std::io;

/// Why a log could not be checked.
#[derive(Debug)]
pub enum LogError {
    /// The log cannot be read.
    Io(io::Error),
    /// A line does not conform to the format.
    Malformed {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl LogError {
    pub(crate) fn at(line: u64, what: String) -> LogError {
        LogError::Malformed { line, what }
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> LogError {
        LogError::Io(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io(error) => write!(f, "the log cannot be read: {error}"),
            LogError::Malformed { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io(error) => Some(error),
            LogError::Malformed { .. } => None,
        }
    }
}
