//! Resolves names for clients with one of the host's nameservers, as a program of the host would
//! (resolv.conf(5)).

use crate::dns::{MESSAGE_MAX, framed, message};
use crate::settings::random;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout_at};

/// The port of nameservers.
const PORT: u16 = 53;
/// Time limit of one attempt over UDP, and number of attempts.
const WAIT: Duration = Duration::from_secs(2);
const TRIES: usize = 3;
/// Flag TC in the second byte of flags.
const TRUNCATED: u8 = 2;
const IS_ANSWER: u8 = 0x80;

/// Returns the nameserver that this host's programs ask first.
pub fn own() -> SocketAddr {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok()).flatten()
    });
    SocketAddr::new(named.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), PORT)
}

/// Returns the answer to a question; asks over TCP if it is too long for UDP. `may_pass` is asked
/// before each time that the question leaves, with its bytes.
///
/// # Errors
/// The nameserver does not answer, or `may_pass` refuses.
pub async fn resolve(
    nameserver: SocketAddr,
    question: &[u8],
    may_pass: impl Fn(usize) -> bool,
) -> io::Result<Vec<u8>> {
    let [a, b, rest @ ..] = question else { return Err(io::ErrorKind::InvalidData.into()) };
    let (own, told) = ([*a, *b], rest);
    // The id of the query must not be guessable (RFC 5452, section 4).
    let number = random::<2>().map_err(|_| io::Error::other("no random bytes"))?;
    let asked = [&number[..], told].concat();
    let mut answer = by_datagram(nameserver, &asked, &may_pass).await?;
    if answer.get(2).is_some_and(|flags| flags & TRUNCATED != 0) {
        may_leave(&may_pass, &asked)?;
        answer = by_connection(nameserver, &asked).await?;
    }
    answer[..2].copy_from_slice(&own);
    Ok(answer)
}

/// Fails if a question may not leave.
fn may_leave(may_pass: &impl Fn(usize) -> bool, asked: &[u8]) -> io::Result<()> {
    if may_pass(asked.len()) { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
}

async fn by_datagram(
    nameserver: SocketAddr,
    asked: &[u8],
    may_pass: &impl Fn(usize) -> bool,
) -> io::Result<Vec<u8>> {
    let at: IpAddr = match nameserver {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((at, 0)).await?;
    socket.connect(nameserver).await?;
    let mut buffer = vec![0; MESSAGE_MAX];
    for _ in 0..TRIES {
        may_leave(may_pass, asked)?;
        socket.send(asked).await?;
        let until = Instant::now() + WAIT;
        while let Ok(received) = timeout_at(until, socket.recv(&mut buffer)).await {
            let answer = &buffer[..received?];
            if answers(answer, asked) {
                return Ok(answer.to_vec());
            }
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

async fn by_connection(nameserver: SocketAddr, asked: &[u8]) -> io::Result<Vec<u8>> {
    let whole = async {
        let mut connection = TcpStream::connect(nameserver).await?;
        connection.write_all(&framed(asked)).await?;
        let mut said = Vec::new();
        loop {
            if let Some(answer) = message(&said) {
                let is_it = answers(answer, asked);
                return is_it.then(|| answer.to_vec()).ok_or(io::ErrorKind::InvalidData.into());
            }
            if connection.read_buf(&mut said).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    };
    let within = timeout_at(Instant::now() + WAIT * TRIES as u32, whole).await;
    within.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn answers(answer: &[u8], asked: &[u8]) -> bool {
    answer.len() >= 12 && answer[..2] == asked[..2] && answer[2] & IS_ANSWER != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A question that nobody answers leaves three times, and each time counts; once nothing may pass,
    /// it leaves no more.
    #[tokio::test(start_paused = true)]
    async fn each_sending_of_a_question_counts() {
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = silent.local_addr().unwrap();
        let passed = RefCell::new(Vec::new());
        let pass = |bytes| {
            passed.borrow_mut().push(bytes);
            true
        };
        assert!(resolve(at, &[7; 40], pass).await.is_err());
        assert_eq!(*passed.borrow(), [40; TRIES]);
        let left = std::cell::Cell::new(1);
        let error = resolve(at, &[7; 40], |_| left.replace(0) > 0).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    }
}
