//! The server's side of SOCKS5 (RFC 1928) with user and password (RFC 1929), as far as
//! bytes go. Left out: BIND, fragments of datagrams, GSSAPI.

use crate::request::{Malformed, Outcome, Partial, Target};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Its version, the first byte of all that is said.
pub const VERSION: u8 = 5;
/// Methods of authentication.
pub const NO_AUTHENTICATION: u8 = 0;
/// User and password.
pub const PASSWORD: u8 = 2;
/// None of those that were offered.
pub const NO_METHOD: u8 = 0xff;

/// The methods that a client offers.
pub fn greeting(bytes: &[u8]) -> Partial<Vec<u8>> {
    let [version, count, rest @ ..] = bytes else { return Ok(None) };
    if *version != VERSION {
        return Err(Malformed("not SOCKS of version 5"));
    }
    let count = usize::from(*count);
    Ok(rest.get(..count).map(|methods| (methods.to_vec(), 2 + count)))
}

/// User and password.
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

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A connection to there.
    Connect(Target),
    /// Datagrams to anywhere; from where they will come, as far as it is known.
    Associate(Target),
    /// What this server does not do.
    Other,
}

/// Reads what a client wants.
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

/// The code of a reply (RFC 1928, section 6).
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

/// The code of a command that is not known.
pub const UNKNOWN_COMMAND: u8 = 7;

/// A reply; `bound`: where datagrams are taken.
pub fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let bound = bound.unwrap_or(nowhere);
    let mut bytes = vec![VERSION, code, 0];
    Target::Address(bound.ip(), bound.port()).write(&mut bytes);
    bytes
}

/// What stands before the target in a datagram: two bytes, and the number of a fragment.
pub const BEFORE_TARGET: [u8; 3] = [0, 0, 0];

/// A datagram of a client without what stands before its target; none: it is a fragment,
/// or none.
pub fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    let inner = bytes.strip_prefix(&BEFORE_TARGET)?;
    Target::read(inner).ok().flatten().map(|_| inner)
}
