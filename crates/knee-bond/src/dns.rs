//! DNS for the transparent mode: each question (RFC 1035) goes to the server unchanged, on a stream
//! of its own, and the server's resolver answers it. This end parses only what a listener must: how
//! long an answer may be (RFC 6891), and where the question ends if the answer is longer.

use crate::client::ClientHandle;
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
/// Length of a header.
const HEADER: usize = 12;
/// Maximum answer over UDP without an OPT record (RFC 1035, section 4.2.1).
const PLAIN: usize = 512;
/// Maximum number of concurrent questions over UDP; more are dropped, and asked again.
const QUESTIONS: usize = 128;
/// Time limit of a question; whoever asked has repeated it by then.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is closed (RFC 7766, section 6.2.3).
const IDLE: Duration = Duration::from_secs(30);
/// Type of the record that states the sender's capabilities (RFC 6891, section 6.1.2).
const OPT: u16 = 41;

/// Answers questions over UDP.
pub async fn serve_datagrams(socket: UdpSocket, handle: Rc<ClientHandle>) {
    let socket = Rc::new(socket);
    let open = Rc::new(Cell::new(0));
    let mut buffer = vec![0; MESSAGE_MAX];
    loop {
        let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
        if count < HEADER || open.get() >= QUESTIONS {
            continue;
        }
        let (handle, socket, open) = (handle.clone(), socket.clone(), open.clone());
        let question = buffer[..count].to_vec();
        open.set(open.get() + 1);
        spawn_local(async move {
            let answer = answer(&handle, &question).await;
            let answer = fitting(&question, answer);
            let _ = socket.send_to(&answer, from).await;
            open.set(open.get() - 1);
        });
    }
}

/// Answers questions over TCP, in the order in which they came on a connection.
pub async fn serve_connections(listener: TcpListener, handle: Rc<ClientHandle>) {
    while let Some(connection) = next(&listener).await {
        let handle = handle.clone();
        spawn_local(async move {
            let _ = converse(connection, &handle).await;
        });
    }
}

async fn converse(mut connection: TcpStream, handle: &ClientHandle) -> std::io::Result<()> {
    loop {
        let Ok(length) = timeout(IDLE, connection.read_u16()).await else { return Ok(()) };
        let mut question = vec![0; length?.into()];
        connection.read_exact(&mut question).await?;
        if question.len() < HEADER {
            return Ok(());
        }
        connection.write_all(&framed(&answer(handle, &question).await)).await?;
    }
}

/// Returns the server's answer, or SERVFAIL if there is none.
async fn answer(handle: &ClientHandle, question: &[u8]) -> Vec<u8> {
    let asked = timeout(TIMEOUT, ask_server(handle, question)).await;
    asked.ok().flatten().filter(|answer| answer.len() >= HEADER).unwrap_or_else(|| failed(question))
}

async fn ask_server(handle: &ClientHandle, question: &[u8]) -> Option<Vec<u8>> {
    let stream = ask(handle, &Request::Dns, &framed(question)).await.ok()?;
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

/// Returns a message with its length in front, as over TCP.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// Returns the message after its length, or `None` if bytes are missing.
pub fn message(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..u16::from_be_bytes(*length).into())
}

/// Returns an answer that fits what the question allows over UDP. A longer one is truncated to its
/// question, so that it is asked again over TCP.
pub fn fitting(question: &[u8], answer: Vec<u8>) -> Vec<u8> {
    let room = room(question);
    if answer.len() <= room {
        return answer;
    }
    let end = questions_end(&answer).filter(|end| *end <= room);
    let mut cut = answer[..end.unwrap_or(HEADER)].to_vec();
    // TC bit. Nothing follows the question, which may be missing as well.
    cut[2] |= 2;
    cut[6..HEADER].fill(0);
    if end.is_none() {
        cut[4..6].fill(0);
    }
    cut
}

/// Returns the largest answer, in bytes, that the question allows over UDP.
fn room(question: &[u8]) -> usize {
    let advertised = || {
        let record = question.get(questions_end(question)?..)?;
        let (head, _) = record.split_first_chunk::<5>()?;
        let is_opt = head[0] == 0 && u16::from_be_bytes([head[1], head[2]]) == OPT;
        is_opt.then(|| usize::from(u16::from_be_bytes([head[3], head[4]])))
    };
    advertised().unwrap_or(PLAIN).max(PLAIN)
}

/// Returns the end of the question section, or `None` if the message is malformed.
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

/// Returns the answer SERVFAIL to a question.
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
