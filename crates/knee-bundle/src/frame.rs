//! Format of a datagram: its number on the path in two bytes, then frames.
//!
//! ```text
//! type        frame             fields (integers of variable length, but for u8)
//! 0x01        PING
//! 0x02        ACK               path u8, delay in µs, largest, more ranges u8,
//!                               length - 1; for each further range: gap - 1, length - 1
//! 0x03        ACK_ACK           path u8, number: ranges below it are of no more use
//! 0x04        MAX_DATA          bytes of all streams, in their order of sending
//! 0x05        MAX_STREAM_DATA   stream, times that credit was given back, offset
//! 0x06        MAX_STREAMS       streams that the peer may have opened in all
//! 0x07        RESET             stream, code, final size
//! 0x08        STOP              stream, code
//! 0x09        STATUS            path u8, flags u8 (1 quiet, 2 overflows), cost u8
//! 0x0a        GOAWAY            streams of the peer that are still served
//! 0x0b        CLOSE             code, length u8, reason in UTF-8
//! 0x0c, 0x0d  MESSAGE           flow, (0x0d: number,) length, bytes
//! 0x0e        RECALL            stream, times that credit was given back before
//! 0x0f        RETURN            stream, times that credit was given back, offset kept
//! 0x10..0x17  STREAM            stream, (bit 2: offset,) (bit 0: length,) bytes;
//!                               bit 1: they are the last ones
//! ```
//!
//! A STREAM without a length extends to the end of the datagram. Whatever a sender must not send is
//! refused as [`Malformed`], without exception, because the peer is our own code.

use crate::PATHS_MAX;
use crate::varint::{Reader, VARINT_MAX, put_varint, varint_len};
use bytes::BufMut;
use knee_units::Time;

/// Maximum number of ranges of an ACK.
pub const ACK_RANGES_MAX: usize = 32;
/// Maximum length of the reason of a CLOSE, bytes.
pub const REASON_MAX: usize = 128;
/// Bytes before the first frame.
pub const HEADER: usize = 2;

/// Why a datagram is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends within a frame.
    Truncated,
    /// It has a frame of an unknown type.
    UnknownType(u8),
    /// A frame, named here, has a field with an impossible value.
    Impossible(&'static str),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Truncated => write!(f, "the datagram ends within a frame"),
            Malformed::UnknownType(number) => write!(f, "no frame has the type {number:#04x}"),
            Malformed::Impossible(frame) => write!(f, "an impossible number in {frame}"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Numbers of datagrams that arrived: spans `first..=last`, descending, with a gap between any two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AckRanges {
    spans: [(u64, u64); ACK_RANGES_MAX],
    count: usize,
}

impl AckRanges {
    /// Takes at most [`ACK_RANGES_MAX`] of these spans, each `(first, last)`, which must descend
    /// and not touch. Returns `None` if there are none.
    pub fn new(spans: impl IntoIterator<Item = (u64, u64)>) -> Option<AckRanges> {
        let mut ranges = AckRanges { spans: [(0, 0); ACK_RANGES_MAX], count: 0 };
        for span in spans.into_iter().take(ACK_RANGES_MAX) {
            debug_assert!(span.0 <= span.1);
            debug_assert!(ranges.count == 0 || span.1 + 1 < ranges.spans[ranges.count - 1].0);
            ranges.spans[ranges.count] = span;
            ranges.count += 1;
        }
        (ranges.count > 0).then_some(ranges)
    }

    /// Returns the largest number.
    pub fn largest(&self) -> u64 {
        self.spans[0].1
    }

    /// Iterates over the spans `(first, last)`, descending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.spans[..self.count].iter().copied()
    }
}

impl std::fmt::Debug for AckRanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A frame.
#[expect(clippy::large_enum_variant, reason = "it is read and done with, one at a time")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// Asks for an acknowledgement on the path on which it came.
    Ping,
    /// Acknowledges datagrams of a path.
    Ack {
        /// The path.
        path: usize,
        /// Time since the largest number arrived, in whole microseconds.
        delay: Time,
        /// Numbers that arrived.
        ranges: AckRanges,
    },
    /// States that an ACK of the path arrived that covered everything below a number.
    AckAck {
        /// The path.
        path: usize,
        /// Numbers below this need not be acknowledged any more.
        below: u64,
    },
    /// Raises the limit of bytes of all streams together.
    MaxData(u64),
    /// Raises the limit of bytes of a stream.
    MaxStreamData {
        /// The stream.
        stream: u64,
        /// How often its sender had given credit back: what was sent before that is void.
        round: u64,
        /// New limit, as an offset.
        end: u64,
    },
    /// Raises the number of streams that may be opened in all.
    MaxStreams(u64),
    /// Resets a stream: no more bytes follow, and those sent are of no use.
    Reset {
        /// The stream.
        stream: u64,
        /// Error code.
        code: u64,
        /// Bytes that were given to paths, which count for flow control.
        size: u64,
    },
    /// Asks the peer to reset a stream.
    Stop {
        /// The stream.
        stream: u64,
        /// Error code.
        code: u64,
    },
    /// States how the sender wants a path to be used.
    Status {
        /// The path.
        path: usize,
        /// Send only what is needed.
        quiet: bool,
        /// The path is used when no cheaper one works.
        cost: u8,
        /// The path is used as well when all cheaper ones are full.
        overflows: bool,
    },
    /// Accepts no more streams; the number of the peer's streams that are still served.
    GoAway(u64),
    /// Closes the bundle.
    Close {
        /// Error code.
        code: u64,
        /// Explanation for a person.
        reason: &'b str,
    },
    /// Asks for unused credit of a stream back.
    Recall {
        /// The stream.
        stream: u64,
        /// How often its sender has given credit back before.
        round: u64,
    },
    /// Gives unused credit of a stream back.
    Return {
        /// The stream.
        stream: u64,
        /// How often its sender has given credit back, this time included.
        round: u64,
        /// The limit that it keeps, as an offset.
        end: u64,
    },
    /// A message of a flow, which is not repeated.
    Message {
        /// The flow.
        flow: u64,
        /// Number of a message that is sent on several paths, among all such messages.
        number: Option<u64>,
        /// Content.
        bytes: &'b [u8],
    },
    /// A piece of a stream.
    Stream {
        /// The stream.
        stream: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Whether the stream ends with these bytes.
        fin: bool,
        /// Content.
        bytes: &'b [u8],
    },
}

mod kind {
    pub const PING: u8 = 0x01;
    pub const ACK: u8 = 0x02;
    pub const ACK_ACK: u8 = 0x03;
    pub const MAX_DATA: u8 = 0x04;
    pub const MAX_STREAM_DATA: u8 = 0x05;
    pub const MAX_STREAMS: u8 = 0x06;
    pub const RESET: u8 = 0x07;
    pub const STOP: u8 = 0x08;
    pub const STATUS: u8 = 0x09;
    pub const GOAWAY: u8 = 0x0a;
    pub const CLOSE: u8 = 0x0b;
    pub const MESSAGE: u8 = 0x0c;
    pub const NUMBERED_MESSAGE: u8 = 0x0d;
    pub const RECALL: u8 = 0x0e;
    pub const RETURN: u8 = 0x0f;
    pub const STREAM: u8 = 0x10;
    pub const STREAM_LAST: u8 = 0x17;
    /// Bits of the type of a STREAM.
    pub const HAS_LENGTH: u8 = 1;
    pub const FIN: u8 = 2;
    pub const HAS_OFFSET: u8 = 4;
}

const QUIET: u8 = 1;
const OVERFLOWS: u8 = 2;

impl<'b> Frame<'b> {
    /// Reads the next frame, or returns `None` at the end.
    ///
    /// # Errors
    /// What is wrong with it. The rest of the datagram cannot be read.
    pub fn read(reader: &mut Reader<'b>) -> Result<Option<Frame<'b>>, Malformed> {
        let Some(kind) = reader.u8() else { return Ok(None) };
        let mut fields = Fields { reader };
        let frame = match kind {
            kind::PING => Frame::Ping,
            kind::ACK => fields.ack()?,
            kind::ACK_ACK => Frame::AckAck { path: fields.path()?, below: fields.varint()? },
            kind::MAX_DATA => Frame::MaxData(fields.varint()?),
            kind::MAX_STREAM_DATA => Frame::MaxStreamData {
                stream: fields.varint()?,
                round: fields.varint()?,
                end: fields.varint()?,
            },
            kind::RECALL => Frame::Recall { stream: fields.varint()?, round: fields.varint()? },
            kind::RETURN => Frame::Return {
                stream: fields.varint()?,
                round: fields.varint()?,
                end: fields.varint()?,
            },
            kind::MAX_STREAMS => Frame::MaxStreams(fields.varint()?),
            kind::RESET => Frame::Reset {
                stream: fields.varint()?,
                code: fields.varint()?,
                size: fields.varint()?,
            },
            kind::STOP => Frame::Stop { stream: fields.varint()?, code: fields.varint()? },
            kind::STATUS => fields.status()?,
            kind::GOAWAY => Frame::GoAway(fields.varint()?),
            kind::CLOSE => fields.close()?,
            kind::MESSAGE => fields.message(false)?,
            kind::NUMBERED_MESSAGE => fields.message(true)?,
            kind::STREAM..=kind::STREAM_LAST => fields.stream(kind)?,
            unknown => return Err(Malformed::UnknownType(unknown)),
        };
        Ok(Some(frame))
    }

    /// Writes the frame; a STREAM includes its length.
    ///
    /// # Panics
    /// If a number has more than 62 bits, or a reason more bytes than
    /// [`REASON_MAX`].
    pub fn write(&self, into: &mut impl BufMut) {
        self.write_as(into, true);
    }

    /// Writes the frame as the last one of its datagram: a STREAM omits its length.
    pub fn write_last(&self, into: &mut impl BufMut) {
        self.write_as(into, false);
    }

    fn write_as(&self, into: &mut impl BufMut, with_length: bool) {
        match *self {
            Frame::Ping => into.put_u8(kind::PING),
            Frame::Ack { path, delay, ref ranges } => write_ack(into, path, delay, ranges),
            Frame::AckAck { path, below } => {
                into.put_u8(kind::ACK_ACK);
                into.put_u8(path as u8);
                put_varint(into, below);
            }
            Frame::MaxData(end) => put(into, kind::MAX_DATA, &[end]),
            Frame::MaxStreamData { stream, round, end } => {
                put(into, kind::MAX_STREAM_DATA, &[stream, round, end]);
            }
            Frame::Recall { stream, round } => put(into, kind::RECALL, &[stream, round]),
            Frame::Return { stream, round, end } => put(into, kind::RETURN, &[stream, round, end]),
            Frame::MaxStreams(count) => put(into, kind::MAX_STREAMS, &[count]),
            Frame::Reset { stream, code, size } => put(into, kind::RESET, &[stream, code, size]),
            Frame::Stop { stream, code } => put(into, kind::STOP, &[stream, code]),
            Frame::Status { path, quiet, cost, overflows } => {
                let flags = (u8::from(quiet) * QUIET) | (u8::from(overflows) * OVERFLOWS);
                into.put_slice(&[kind::STATUS, path as u8, flags, cost]);
            }
            Frame::GoAway(count) => put(into, kind::GOAWAY, &[count]),
            Frame::Close { code, reason } => {
                assert!(reason.len() <= REASON_MAX, "a reason of {} bytes", reason.len());
                put(into, kind::CLOSE, &[code]);
                into.put_u8(reason.len() as u8);
                into.put_slice(reason.as_bytes());
            }
            Frame::Message { flow, number, bytes } => {
                match number {
                    None => put(into, kind::MESSAGE, &[flow]),
                    Some(number) => put(into, kind::NUMBERED_MESSAGE, &[flow, number]),
                }
                put_varint(into, bytes.len() as u64);
                into.put_slice(bytes);
            }
            Frame::Stream { stream, offset, fin, bytes } => {
                let mut kind = kind::STREAM;
                kind |= if with_length { kind::HAS_LENGTH } else { 0 };
                kind |= if fin { kind::FIN } else { 0 };
                kind |= if offset > 0 { kind::HAS_OFFSET } else { 0 };
                put(into, kind, &[stream]);
                if offset > 0 {
                    put_varint(into, offset);
                }
                if with_length {
                    put_varint(into, bytes.len() as u64);
                }
                into.put_slice(bytes);
            }
        }
    }
}

/// Returns the bytes of a STREAM before its content, as the last frame of its datagram.
pub fn stream_overhead(stream: u64, offset: u64) -> usize {
    1 + varint_len(stream) + if offset > 0 { varint_len(offset) } else { 0 }
}

fn put(into: &mut impl BufMut, kind: u8, numbers: &[u64]) {
    into.put_u8(kind);
    numbers.iter().for_each(|number| put_varint(into, *number));
}

fn write_ack(into: &mut impl BufMut, path: usize, delay: Time, ranges: &AckRanges) {
    into.put_slice(&[kind::ACK, path as u8]);
    put_varint(into, delay.as_micros().min(VARINT_MAX));
    put_varint(into, ranges.largest());
    into.put_u8((ranges.count - 1) as u8);
    let mut before = None;
    for (first, last) in ranges.iter() {
        if let Some(before) = before {
            // At least one number lies between two ranges.
            put_varint(into, before - last - 2);
        }
        put_varint(into, last - first);
        before = Some(first);
    }
}

/// Reads the fields of a frame one after the other.
struct Fields<'r, 'b> {
    reader: &'r mut Reader<'b>,
}

impl<'b> Fields<'_, 'b> {
    fn u8(&mut self) -> Result<u8, Malformed> {
        self.reader.u8().ok_or(Malformed::Truncated)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        self.reader.varint().ok_or(Malformed::Truncated)
    }

    fn path(&mut self) -> Result<usize, Malformed> {
        let path = usize::from(self.u8()?);
        if path < PATHS_MAX { Ok(path) } else { Err(Malformed::Impossible("a path")) }
    }

    fn take(&mut self, count: u64) -> Result<&'b [u8], Malformed> {
        let count = usize::try_from(count).map_err(|_| Malformed::Truncated)?;
        self.reader.take(count).ok_or(Malformed::Truncated)
    }

    fn ack(&mut self) -> Result<Frame<'b>, Malformed> {
        const WRONG: Malformed = Malformed::Impossible("an ACK");
        let (path, delay) = (self.path()?, self.varint()?);
        // Nobody holds an acknowledgement back for an hour.
        if delay > 3_600_000_000 {
            return Err(WRONG);
        }
        let (mut last, more) = (self.varint()?, usize::from(self.u8()?));
        if more >= ACK_RANGES_MAX {
            return Err(WRONG);
        }
        let mut ranges = AckRanges { spans: [(0, 0); ACK_RANGES_MAX], count: more + 1 };
        for index in 0..=more {
            let first = last.checked_sub(self.varint()?).ok_or(WRONG)?;
            ranges.spans[index] = (first, last);
            if index < more {
                let gap = self.varint()? + 2;
                last = first.checked_sub(gap).ok_or(WRONG)?;
            }
        }
        Ok(Frame::Ack { path, delay: Time::from_micros(delay), ranges })
    }

    fn status(&mut self) -> Result<Frame<'b>, Malformed> {
        let (path, flags, cost) = (self.path()?, self.u8()?, self.u8()?);
        if flags & !(QUIET | OVERFLOWS) != 0 {
            return Err(Malformed::Impossible("a STATUS"));
        }
        let (quiet, overflows) = (flags & QUIET != 0, flags & OVERFLOWS != 0);
        Ok(Frame::Status { path, quiet, cost, overflows })
    }

    fn close(&mut self) -> Result<Frame<'b>, Malformed> {
        const WRONG: Malformed = Malformed::Impossible("a CLOSE");
        let (code, len) = (self.varint()?, self.u8()?);
        if usize::from(len) > REASON_MAX {
            return Err(WRONG);
        }
        let reason = std::str::from_utf8(self.take(len.into())?).map_err(|_| WRONG)?;
        // It stands in a line of a log.
        if reason.contains(char::is_control) {
            return Err(WRONG);
        }
        Ok(Frame::Close { code, reason })
    }

    fn message(&mut self, is_numbered: bool) -> Result<Frame<'b>, Malformed> {
        let flow = self.varint()?;
        let number = if is_numbered { Some(self.varint()?) } else { None };
        let len = self.varint()?;
        Ok(Frame::Message { flow, number, bytes: self.take(len)? })
    }

    fn stream(&mut self, kind: u8) -> Result<Frame<'b>, Malformed> {
        let stream = self.varint()?;
        let offset = if kind & kind::HAS_OFFSET != 0 { self.varint()? } else { 0 };
        let bytes = if kind & kind::HAS_LENGTH != 0 {
            let len = self.varint()?;
            self.take(len)?
        } else {
            self.reader.take_rest()
        };
        if offset + bytes.len() as u64 > VARINT_MAX {
            return Err(Malformed::Impossible("a STREAM"));
        }
        Ok(Frame::Stream { stream, offset, fin: kind & kind::FIN != 0, bytes })
    }
}

/// Recovers the whole number of a datagram from its low 16 bits: the number nearest to the
/// successor of the largest that arrived (RFC 9000, appendix A.3).
pub fn expand(low: u16, largest: Option<u64>) -> u64 {
    const WINDOW: u64 = 1 << 16;
    let expected = largest.map_or(0, |largest| largest + 1);
    let candidate = (expected & !(WINDOW - 1)) | u64::from(low);
    if candidate + WINDOW / 2 <= expected {
        candidate + WINDOW
    } else if candidate > expected + WINDOW / 2 && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    }
}
