//! Messages of a control channel: two bytes of length, most significant first, and JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Version of the messages.
pub const VERSION: u32 = 1;
/// Longest message, bytes.
const FRAME_MAX: usize = 1024;
/// Bytes before a message.
const LENGTH: usize = 2;
/// Interval of the sender's messages.
pub const ALIVE: Duration = Duration::from_secs(1);
/// Time without a message after which the other end is taken to be gone.
pub const SILENT: Duration = Duration::from_secs(10);

/// First bytes of a flow's connection, before the token. A TLS connection begins with 22 (RFC 8446,
/// section 5.1).
pub const GREETING: &[u8; 8] = b"knee-1\r\n";
/// First byte of a TLS connection.
pub const TLS_HANDSHAKE: u8 = 22;
/// Length of a token.
pub const TOKEN: usize = 32;

/// From the machine that sends.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A measurement is to begin.
    Begin {
        /// Version of the messages.
        version: u32,
    },
    /// The measurement goes on; sent each second.
    Alive,
    /// No flow sends any more.
    Finish,
}

/// From the machine that receives.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// Flows may begin.
    Begun {
        /// What each connection begins with, after the greeting; base64.
        token: String,
    },
    /// Nothing may begin.
    Refused {
        /// Why, for a person.
        reason: String,
    },
    /// Answer to [`Request::Alive`].
    Alive,
    /// The measurement is ended from this side.
    Over {
        /// Why, for a person.
        reason: String,
    },
    /// Answer to [`Request::Finish`]: what arrived.
    Ended {
        /// Connections.
        connections: u64,
        /// Bytes of data.
        bytes: u64,
    },
}

/// Reads a message from the beginning of `bytes`, and returns it with its length; `None` if more bytes
/// are needed.
///
/// # Errors
/// A message that is too long, or is none.
pub fn message<M: DeserializeOwned>(bytes: &[u8]) -> io::Result<Option<(M, usize)>> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > FRAME_MAX {
        let what = format!("a message of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let Some(text) = rest.get(..length) else { return Ok(None) };
    Ok(Some((serde_json::from_slice(text)?, LENGTH + length)))
}

/// A control channel.
#[derive(Debug)]
pub struct Frames<S> {
    stream: S,
    buffer: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    /// Begins a channel over a connection that is established and secured.
    pub fn new(stream: S) -> Frames<S> {
        Frames { stream, buffer: Vec::with_capacity(LENGTH + FRAME_MAX) }
    }

    /// Reads a message. May be cancelled: what has arrived of it is kept.
    ///
    /// # Errors
    /// A message that is too long, or is none; the end of the connection.
    pub async fn read<M: DeserializeOwned>(&mut self) -> io::Result<M> {
        loop {
            if let Some((message, taken)) = message(&self.buffer)? {
                self.buffer.drain(..taken);
                return Ok(message);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Writes a message, within the time after which the other end is taken to be gone. Is not
    /// cancelled in between.
    ///
    /// # Errors
    /// The connection has ended, or takes nothing for too long.
    pub async fn write<M: Serialize>(&mut self, message: &M) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend(text);
        let written = async {
            self.stream.write_all(&frame).await?;
            self.stream.flush().await
        };
        timeout(SILENT, written).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Ends this direction.
    pub async fn close(&mut self) {
        // The other end may be gone.
        let _ = timeout(ALIVE, self.stream.shutdown()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    async fn read_after(bytes: &[u8]) -> io::Result<Request> {
        let (near, mut far) = duplex(4096);
        far.write_all(bytes).await.unwrap();
        drop(far);
        Frames::new(near).read().await
    }

    #[tokio::test]
    async fn messages_arrive_in_any_pieces() {
        let (near, far) = duplex(3);
        let (mut near, mut far) = (Frames::new(near), Frames::new(far));
        let sent = [Request::Begin { version: 1 }, Request::Alive, Request::Finish];
        let write = async {
            for request in &sent {
                near.write(request).await.unwrap();
            }
        };
        let read = async {
            for request in &sent {
                assert_eq!(&far.read::<Request>().await.unwrap(), request);
            }
        };
        tokio::join!(write, read);
    }

    #[tokio::test]
    async fn malformed_messages_are_refused() {
        let kind = async |bytes: &[u8]| read_after(bytes).await.unwrap_err().kind();
        assert_eq!(kind(b"\xff\xff").await, io::ErrorKind::InvalidData);
        assert_eq!(kind(b"\x00\x05\"ali").await, io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"\x00\x06\"what\"").await, io::ErrorKind::InvalidData);
        assert_eq!(read_after(b"\x00\x07\"alive\"").await.unwrap(), Request::Alive);
    }
}
