//! Requests of a client at the start of a stream, and the answers.
//!
//! ```text
//! REQUEST   kind u8 (1 TCP, 2 UDP, 3 UDP duplicated, 4 DNS, 5 flows, 6 flows duplicated), for TCP:
//!           where to
//! where to  1, IPv4 address | 4, IPv6 address | 3, length u8, name; port u16
//! ANSWER    code u8 (0: done), length u8 of the reason, reason in UTF-8
//! DATAGRAM  where to or from, bytes: a message of the flow that has the stream's number
//! QUESTION  of DNS, after its length u16, follows the request; so does its answer that of
//!           the request
//! ```
//!
//! Addresses are written as in SOCKS5 (RFC 1928, section 5), so that a SOCKS5 datagram passes
//! unchanged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a request, with a name of 255 bytes.
pub const REQUEST_MAX: usize = 1 + 2 + 255 + 2;
/// Maximum length of an answer's reason.
const REASON_MAX: usize = 200;

/// Target of a connection; the server resolves names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An address and a port.
    Address(IpAddr, u16),
    /// A name and a port.
    Name(String, u16),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Address(IpAddr::V6(address), port) => write!(f, "[{address}]:{port}"),
            Target::Address(IpAddr::V4(address), port) => write!(f, "{address}:{port}"),
            Target::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Replaces control characters, so that what a peer says stays in its line of a log, and leaves the
/// terminal as it is.
pub fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// What was read is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// A parsed value and the bytes it took, or `None` if more bytes are needed.
pub type Partial<T> = Result<Option<(T, usize)>, Malformed>;

impl Target {
    /// Parses a target as in SOCKS5.
    ///
    /// # Errors
    /// Its type is unknown, or its name is invalid.
    pub fn read(bytes: &[u8]) -> Partial<Target> {
        let Some(kind) = bytes.first() else { return Ok(None) };
        let rest = &bytes[1..];
        let port =
            |at: usize| rest.get(at..at + 2).map(|port| u16::from_be_bytes([port[0], port[1]]));
        let target = match kind {
            1 => port(4).and_then(|port| {
                let address: [u8; 4] = rest[..4].try_into().ok()?;
                Some((Target::Address(Ipv4Addr::from(address).into(), port), 7))
            }),
            4 => port(16).and_then(|port| {
                let address: [u8; 16] = rest[..16].try_into().ok()?;
                Some((Target::Address(Ipv6Addr::from(address).into(), port), 19))
            }),
            3 => {
                let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                    return Ok(None);
                };
                let Some(port) = port(1 + length) else { return Ok(None) };
                Some((named(&rest[1..=length], port)?, 4 + length))
            }
            _ => return Err(Malformed("an address of an unknown kind")),
        };
        Ok(target)
    }

    /// Appends a target as in SOCKS5.
    pub fn write(&self, into: &mut Vec<u8>) {
        let port = match self {
            Target::Address(IpAddr::V4(address), port) => {
                into.push(1);
                into.extend(address.octets());
                port
            }
            Target::Address(IpAddr::V6(address), port) => {
                into.push(4);
                into.extend(address.octets());
                port
            }
            Target::Name(name, port) => {
                let name = &name.as_bytes()[..name.len().min(255)];
                into.extend([3, name.len() as u8]);
                into.extend(name);
                port
            }
        };
        into.extend(port.to_be_bytes());
    }

    /// Parses `name:port`, `1.2.3.4:port` or `[::1]:port`.
    ///
    /// # Errors
    /// The port or the name is missing.
    pub fn parse(text: &str) -> Result<Target, Malformed> {
        const WANTED: Malformed = Malformed(
            "write a name or address, a colon and a port, as in example.org:443 or [2001:db8::1]:443",
        );
        let (host, port) = text.rsplit_once(':').ok_or(WANTED)?;
        let port = port.parse().map_err(|_| WANTED)?;
        if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            let address: Ipv6Addr = inner.parse().map_err(|_| WANTED)?;
            return Ok(Target::Address(address.into(), port));
        }
        if host.contains(':') {
            return Err(WANTED);
        }
        named(host.as_bytes(), port)
    }
}

/// Makes a target from a name, which may be an address as text.
fn named(name: &[u8], port: u16) -> Result<Target, Malformed> {
    const WRONG: Malformed = Malformed("the host name is invalid");
    let name = std::str::from_utf8(name).map_err(|_| WRONG)?;
    if let Ok(address) = name.parse() {
        return Ok(Target::Address(address, port));
    }
    let is_name = !name.is_empty()
        && name.len() <= 255
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    if is_name { Ok(Target::Name(name.to_owned(), port)) } else { Err(WRONG) }
}

/// Purpose of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A TCP connection to this target.
    Tcp(Target),
    /// A UDP socket for as long as the stream is open; its datagrams are messages.
    Udp {
        /// Send each datagram over all links, in both directions; the first copy to arrive counts.
        duplicate: bool,
    },
    /// The answer of the server's resolver to one question (RFC 1035).
    Dns,
    /// UDP sockets for all [flows](crate::flows) of the client, for as long as the stream is open.
    Flows {
        /// Send each datagram over all links, in both directions; the first copy to arrive counts.
        duplicate: bool,
    },
}

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// Its kind is unknown.
    pub fn read(bytes: &[u8]) -> Partial<Request> {
        match bytes.first() {
            None => Ok(None),
            Some(1) => {
                let target = Target::read(&bytes[1..])?;
                Ok(target.map(|(target, taken)| (Request::Tcp(target), taken + 1)))
            }
            Some(2) => Ok(Some((Request::Udp { duplicate: false }, 1))),
            Some(3) => Ok(Some((Request::Udp { duplicate: true }, 1))),
            Some(4) => Ok(Some((Request::Dns, 1))),
            Some(5) => Ok(Some((Request::Flows { duplicate: false }, 1))),
            Some(6) => Ok(Some((Request::Flows { duplicate: true }, 1))),
            Some(_) => Err(Malformed("a request of an unknown kind")),
        }
    }

    /// Appends a request.
    pub fn write(&self, into: &mut Vec<u8>) {
        match self {
            Request::Tcp(target) => {
                into.push(1);
                target.write(into);
            }
            Request::Udp { duplicate } => into.push(2 + u8::from(*duplicate)),
            Request::Dns => into.push(4),
            Request::Flows { duplicate } => into.push(5 + u8::from(*duplicate)),
        }
    }
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server connected, or opened a socket.
    Done,
    /// The server's rules deny this target.
    Denied,
    /// The name has no address.
    NoName,
    /// The target refused the connection.
    Refused,
    /// No route leads to the target.
    Unreachable,
    /// The target did not answer in time.
    TimedOut,
    /// The client has reached one of its limits.
    TooMany,
    /// Any other failure.
    Failed,
}

const OUTCOMES: [Outcome; 8] = [
    Outcome::Done,
    Outcome::Denied,
    Outcome::NoName,
    Outcome::Refused,
    Outcome::Unreachable,
    Outcome::TimedOut,
    Outcome::TooMany,
    Outcome::Failed,
];

/// Answer of the server to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Explanation for a person.
    pub reason: String,
}

impl Answer {
    /// Makes the answer of a successful request.
    pub fn done() -> Answer {
        Answer { outcome: Outcome::Done, reason: String::new() }
    }

    /// Parses an answer.
    ///
    /// # Errors
    /// The answer is malformed.
    pub fn read(bytes: &[u8]) -> Partial<Answer> {
        let [code, length, rest @ ..] = bytes else { return Ok(None) };
        let outcome = OUTCOMES.get(usize::from(*code)).copied().unwrap_or(Outcome::Failed);
        let Some(reason) = rest.get(..usize::from(*length)) else { return Ok(None) };
        let reason = one_line(&String::from_utf8_lossy(reason));
        Ok(Some((Answer { outcome, reason }, 2 + usize::from(*length))))
    }

    /// Appends an answer; truncates a long reason.
    pub fn write(&self, into: &mut Vec<u8>) {
        let code = OUTCOMES.iter().position(|outcome| *outcome == self.outcome).unwrap_or(7);
        let reason = &self.reason.as_bytes()[..self.reason.len().min(REASON_MAX)];
        into.extend([code as u8, reason.len() as u8]);
        into.extend(reason);
    }
}
