//! Names of the transparent mode: questions (RFC 1035) go to the server as they are, one
//! stream each, and its resolver answers them. Nothing in them is read but what a listener
//! must: how long an answer may be (RFC 6891), and where the question ends if it is longer.

use crate::client::Way;
use crate::proxy::{ask, next};
use crate::request::Request;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::spawn_local;
use tokio::time::timeout;

/// Longest message over TCP (RFC 1035, section 4.2.2).
pub const MESSAGE_MAX: usize = u16::MAX as usize;
/// A header.
const HEADER: usize = 12;
/// Longest answer over UDP, where the question says nothing of it.
const PLAIN: usize = 512;
/// Questions over UDP at once; more are dropped, and asked again.
const QUESTIONS: usize = 128;
/// Whoever asks has asked again after so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection on which nothing is asked is closed (RFC 7766, section 6.2.3).
const IDLE: Duration = Duration::from_secs(30);
/// The kind of a record that says what the sender can do (RFC 6891, section 6.1.2).
const OPT: u16 = 41;

/// Answers questions over UDP.
pub async fn serve_datagrams(socket: UdpSocket, way: Rc<Way>) {
    let socket = Rc::new(socket);
    let open = Rc::new(Cell::new(0));
    let mut buffer = vec![0; MESSAGE_MAX];
    loop {
        let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
        if count < HEADER || open.get() >= QUESTIONS {
            continue;
        }
        let (way, socket, open) = (way.clone(), socket.clone(), open.clone());
        let question = buffer[..count].to_vec();
        open.set(open.get() + 1);
        spawn_local(async move {
            let answer = answer(&way, &question).await;
            let answer = fitting(&question, answer);
            let _ = socket.send_to(&answer, from).await;
            open.set(open.get() - 1);
        });
    }
}

/// Answers questions over TCP, those of a connection in their order.
pub async fn serve_connections(listener: TcpListener, way: Rc<Way>) {
    while let Some(connection) = next(&listener).await {
        let way = way.clone();
        spawn_local(async move {
            let _ = converse(connection, &way).await;
        });
    }
}

async fn converse(mut connection: TcpStream, way: &Way) -> std::io::Result<()> {
    loop {
        let Ok(length) = timeout(IDLE, connection.read_u16()).await else { return Ok(()) };
        let mut question = vec![0; length?.into()];
        connection.read_exact(&mut question).await?;
        if question.len() < HEADER {
            return Ok(());
        }
        connection.write_all(&framed(&answer(way, &question).await)).await?;
    }
}

/// The server's answer, or that there is none.
async fn answer(way: &Way, question: &[u8]) -> Vec<u8> {
    let asked = timeout(PATIENCE, ask_server(way, question)).await;
    asked.ok().flatten().filter(|answer| answer.len() >= HEADER).unwrap_or_else(|| failed(question))
}

async fn ask_server(way: &Way, question: &[u8]) -> Option<Vec<u8>> {
    let stream = ask(way, &Request::Dns, &framed(question)).await.ok()?;
    stream.finish();
    let mut said = Vec::new();
    while let Some(bytes) = stream.read(MESSAGE_MAX + 2 - said.len()).await.ok()? {
        said.extend_from_slice(&bytes);
        if let Some(whole) = message(&said) {
            return Some(whole.to_vec());
        }
    }
    None
}

/// A message after its length, as over TCP.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// The message after its length; none: more has to come.
pub fn message(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..u16::from_be_bytes(*length).into())
}

/// An answer as long as the question allows over UDP; a longer one is cut to its question,
/// so that it is asked over TCP.
pub fn fitting(question: &[u8], answer: Vec<u8>) -> Vec<u8> {
    let room = room(question);
    if answer.len() <= room {
        return answer;
    }
    let end = questions_end(&answer).filter(|end| *end <= room);
    let mut cut = answer[..end.unwrap_or(HEADER)].to_vec();
    // Truncated; nothing follows the question, which may be gone as well.
    cut[2] |= 2;
    cut[6..HEADER].fill(0);
    if end.is_none() {
        cut[4..6].fill(0);
    }
    cut
}

/// Bytes of an answer that whoever asks takes over UDP.
fn room(question: &[u8]) -> usize {
    let told = || {
        let record = question.get(questions_end(question)?..)?;
        let (head, _) = record.split_first_chunk::<5>()?;
        let is_opt = head[0] == 0 && u16::from_be_bytes([head[1], head[2]]) == OPT;
        is_opt.then(|| usize::from(u16::from_be_bytes([head[3], head[4]])))
    };
    told().unwrap_or(PLAIN).max(PLAIN)
}

/// Where the questions of a message end; none: it is none.
fn questions_end(message: &[u8]) -> Option<usize> {
    let count = u16::from_be_bytes([*message.get(4)?, *message.get(5)?]);
    let mut at = HEADER;
    for _ in 0..count {
        loop {
            let length = usize::from(*message.get(at)?);
            match length {
                0 => break at += 1,
                1..64 => at += 1 + length,
                // A pointer ends a name.
                192.. => break at += 2,
                _ => return None,
            }
        }
        at += 4;
    }
    (at <= message.len()).then_some(at)
}

/// That a question could not be answered (SERVFAIL).
fn failed(question: &[u8]) -> Vec<u8> {
    let end = questions_end(question).unwrap_or(HEADER);
    let mut answer = question[..end].to_vec();
    answer[2] |= 0x80;
    answer[3] = 2;
    answer[6..HEADER].fill(0);
    if end == HEADER {
        answer[4..6].fill(0);
    }
    answer
}
