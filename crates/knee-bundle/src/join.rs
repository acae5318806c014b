//! How a link becomes a path of a bundle: the first message on the control stream of its
//! connection, and the answer. Nothing else is read before.
//!
//! ```text
//! JOIN     version u8, bundle id of 16 bytes, path u8, cost u8, flags u8 (1 quiet,
//!          2 resumes, 4 overflows), length u8 of the label, label in UTF-8
//! JOINED   0, path u8, linger in seconds, streams, window, window of a stream
//! REFUSED  1, code u8, length u8 of the reason, reason in UTF-8
//! ```
//!
//! A length byte precedes each message. The peer is identified by its key, which the connection
//! below has checked.

use crate::PATHS_MAX;
use crate::frame::{Malformed, REASON_MAX};
use crate::varint::{Reader, VARINT_MAX, put_varint};
use bytes::BufMut;
use knee_units::Time;

/// Version of the protocol that this crate speaks.
pub const VERSION: u8 = 2;
/// Longest label of a path, bytes.
pub const LABEL_MAX: usize = 32;

/// Request of a client to add its link to a bundle as a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Version of the protocol.
    pub version: u8,
    /// Id of the bundle, random, chosen by the client.
    pub bundle: [u8; 16],
    /// Number of the path, chosen by the client. Replaces an older connection with the same number.
    pub path: usize,
    /// The path is used when no cheaper one works.
    pub cost: u8,
    /// Send only what is needed.
    pub quiet: bool,
    /// The path is used as well when all cheaper ones are full.
    pub overflows: bool,
    /// The client has used the bundle: a server that does not know it has lost it.
    pub resumes: bool,
    /// The client's name for the link.
    pub label: String,
}

/// Answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The link is a path of the bundle.
    Joined {
        /// Number of the path.
        path: usize,
        /// How long the bundle is kept without a path, in whole seconds.
        linger: Time,
        /// Streams that the client may have open.
        streams: u64,
        /// Bytes of all streams, sent and not yet read.
        window: u64,
        /// Bytes of one stream, sent and not yet read.
        stream_window: u64,
    },
    /// The link is refused.
    Refused {
        /// Error code.
        code: u8,
        /// Explanation for a person.
        reason: String,
    },
}

impl Join {
    /// Writes the message, after its length.
    ///
    /// # Panics
    /// If the label has more than [`LABEL_MAX`] bytes, or the number of the path is too large.
    pub fn write(&self, into: &mut impl BufMut) {
        assert!(self.label.len() <= LABEL_MAX, "a label of {} bytes", self.label.len());
        assert!(self.path < PATHS_MAX, "a path of the number {}", self.path);
        into.put_u8((21 + self.label.len()) as u8);
        into.put_u8(self.version);
        into.put_slice(&self.bundle);
        let flags =
            u8::from(self.quiet) | u8::from(self.resumes) << 1 | u8::from(self.overflows) << 2;
        into.put_slice(&[self.path as u8, self.cost, flags, self.label.len() as u8]);
        into.put_slice(self.label.as_bytes());
    }

    /// Reads a message after its length, or returns `None` if bytes are missing.
    ///
    /// # Errors
    /// The message is not a JOIN. A JOIN of another version is accepted; what follows its version
    /// is not read.
    pub fn read(bytes: &[u8]) -> Result<Option<Join>, Malformed> {
        const WRONG: Malformed = Malformed::Impossible("a JOIN");
        let Some(mut message) = whole(bytes) else { return Ok(None) };
        let version = message.u8().ok_or(Malformed::Truncated)?;
        let mut join = Join {
            version,
            bundle: [0; 16],
            path: 0,
            cost: 0,
            quiet: false,
            overflows: false,
            resumes: false,
            label: String::new(),
        };
        if version != VERSION {
            return Ok(Some(join));
        }
        join.bundle.copy_from_slice(message.take(16).ok_or(Malformed::Truncated)?);
        join.path = message.u8().ok_or(Malformed::Truncated)?.into();
        join.cost = message.u8().ok_or(Malformed::Truncated)?;
        let flags = message.u8().ok_or(Malformed::Truncated)?;
        (join.quiet, join.resumes) = (flags & 1 != 0, flags & 2 != 0);
        join.overflows = flags & 4 != 0;
        join.label = text(&mut message, LABEL_MAX, WRONG)?;
        if flags > 7 || join.path >= PATHS_MAX || !message.is_empty() {
            return Err(WRONG);
        }
        Ok(Some(join))
    }
}

impl Answer {
    /// Writes the message, after its length.
    ///
    /// # Panics
    /// If the reason has more than [`REASON_MAX`] bytes, or a number has more than 62 bits.
    pub fn write(&self, into: &mut impl BufMut) {
        let mut message = Vec::with_capacity(64);
        match self {
            Answer::Joined { path, linger, streams, window, stream_window } => {
                message.put_slice(&[0, *path as u8]);
                let seconds = linger.as_micros() / 1_000_000;
                for number in [seconds, *streams, *window, *stream_window] {
                    put_varint(&mut message, number);
                }
            }
            Answer::Refused { code, reason } => {
                assert!(reason.len() <= REASON_MAX, "a reason of {} bytes", reason.len());
                message.put_slice(&[1, *code, reason.len() as u8]);
                message.put_slice(reason.as_bytes());
            }
        }
        into.put_u8(message.len() as u8);
        into.put_slice(&message);
    }

    /// Reads a message after its length, or returns `None` if bytes are missing.
    ///
    /// # Errors
    /// The message is not an answer.
    pub fn read(bytes: &[u8]) -> Result<Option<Answer>, Malformed> {
        const WRONG: Malformed = Malformed::Impossible("an answer to JOIN");
        let Some(mut message) = whole(bytes) else { return Ok(None) };
        let answer = match message.u8().ok_or(Malformed::Truncated)? {
            0 => {
                let path = usize::from(message.u8().ok_or(Malformed::Truncated)?);
                let mut number = || message.varint().ok_or(Malformed::Truncated);
                let [linger, streams, window, stream_window] =
                    [number()?, number()?, number()?, number()?];
                // A day is longer than any bundle lingers.
                if path >= PATHS_MAX || linger > 86_400 || window.max(stream_window) > VARINT_MAX {
                    return Err(WRONG);
                }
                let linger = Time::from_secs(linger);
                Answer::Joined { path, linger, streams, window, stream_window }
            }
            1 => {
                let code = message.u8().ok_or(Malformed::Truncated)?;
                Answer::Refused { code, reason: text(&mut message, REASON_MAX, WRONG)? }
            }
            _ => return Err(WRONG),
        };
        if message.is_empty() { Ok(Some(answer)) } else { Err(WRONG) }
    }
}

fn whole(bytes: &[u8]) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    let len = reader.u8()?;
    reader.take(len.into()).map(Reader::new)
}

/// Reads a text after its length.
fn text(reader: &mut Reader<'_>, most: usize, wrong: Malformed) -> Result<String, Malformed> {
    let len = usize::from(reader.u8().ok_or(Malformed::Truncated)?);
    let bytes = reader.take(len).ok_or(Malformed::Truncated)?;
    let text = std::str::from_utf8(bytes).map_err(|_| wrong)?;
    // It stands in a line of a log.
    if len <= most && !text.contains(char::is_control) { Ok(text.to_owned()) } else { Err(wrong) }
}
