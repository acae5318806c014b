//! SOCKS5, server side (RFC 1928), with user and password (RFC 1929): parsing and formatting. Not
//! supported: BIND, fragmented datagrams, GSSAPI.

use crate::request::{Malformed, Outcome, Partial, Target};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Protocol version, the first byte of every message.
pub const VERSION: u8 = 5;
/// Method "no authentication required".
pub const NO_AUTHENTICATION: u8 = 0;
/// Method "user name and password".
pub const PASSWORD: u8 = 2;
/// Method "no acceptable methods".
pub const NO_METHOD: u8 = 0xff;

/// Parses the methods that a client offers.
pub fn greeting(bytes: &[u8]) -> Partial<Vec<u8>> {
    let [version, count, rest @ ..] = bytes else { return Ok(None) };
    if *version != VERSION {
        return Err(Malformed("not SOCKS of version 5"));
    }
    let count = usize::from(*count);
    Ok(rest.get(..count).map(|methods| (methods.to_vec(), 2 + count)))
}

/// Parses user name and password.
pub fn credentials(bytes: &[u8]) -> Partial<(Vec<u8>, Vec<u8>)> {
    let [version, rest @ ..] = bytes else { return Ok(None) };
    if *version != 1 {
        return Err(Malformed("user and password of an unknown version"));
    }
    let Some((user, rest)) = counted(rest) else { return Ok(None) };
    let Some((password, _)) = counted(rest) else { return Ok(None) };
    let taken = 3 + user.len() + password.len();
    Ok(Some(((user.to_vec(), password.to_vec()), taken)))
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// A command of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// CONNECT to this target.
    Connect(Target),
    /// UDP ASSOCIATE, with the address from which datagrams will come, as far as it is known.
    Associate(Target),
    /// A command that this server does not support.
    Other,
}

/// Parses a command.
pub fn command(bytes: &[u8]) -> Partial<Command> {
    let [version, command, _, address @ ..] = bytes else { return Ok(None) };
    if *version != VERSION {
        return Err(Malformed("not SOCKS of version 5"));
    }
    let Some((target, taken)) = Target::read(address)? else { return Ok(None) };
    let command = match command {
        1 => Command::Connect(target),
        3 => Command::Associate(target),
        _ => Command::Other,
    };
    Ok(Some((command, 3 + taken)))
}

/// Returns the reply code of an outcome (RFC 1928, section 6).
pub fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Failed | Outcome::TooMany => 1,
        Outcome::Denied => 2,
        Outcome::Unreachable => 3,
        Outcome::NoName => 4,
        Outcome::Refused => 5,
        Outcome::TimedOut => 6,
    }
}

/// Reply code "command not supported".
pub const UNKNOWN_COMMAND: u8 = 7;

/// Formats a reply; `bound` is the address that accepts datagrams.
pub fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let bound = bound.unwrap_or(nowhere);
    let mut bytes = vec![VERSION, code, 0];
    Target::Address(bound.ip(), bound.port()).write(&mut bytes);
    bytes
}

/// Header of a datagram before its target: two reserved bytes and the fragment number.
pub const BEFORE_TARGET: [u8; 3] = [0, 0, 0];

/// Strips the header of a datagram before its target, or returns `None` if it is a fragment or
/// malformed.
pub fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    let inner = bytes.strip_prefix(&BEFORE_TARGET)?;
    Target::read(inner).ok().flatten().map(|_| inner)
}
