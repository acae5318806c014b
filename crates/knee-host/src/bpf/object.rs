//! Parts of loaded objects, and values that programs and their users exchange.

use super::BpfError;
use crate::system::socket_option;
use libbpf_rs::{Map, MapCore, Object, ProgramMut};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// `SO_NETNS_COOKIE` (linux/socket.h).
const NAMESPACE_COOKIE: i32 = 71;
const WHAT: &str = "use the BPF programs";

/// Returns a map of an object.
pub fn map<'a>(object: &'a Object, name: &'static str) -> Result<Map<'a>, BpfError> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or(BpfError::Refused(WHAT, format!("there is no map {name}"), "rebuild Knee"))
}

/// Returns a program of an object.
pub fn program<'a>(object: &'a Object, name: &'static str) -> Result<ProgramMut<'a>, BpfError> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or(BpfError::Refused(WHAT, format!("there is no program {name}"), "rebuild Knee"))
}

/// Splits a value of 64-bit integers.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
}

/// Returns the cookie of the calling thread's network namespace.
pub fn namespace_cookie() -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut bytes = [0; 8];
    socket_option(&socket, NAMESPACE_COOKIE, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
