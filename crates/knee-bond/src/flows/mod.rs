//! UDP and pings of a client's host and of its house: each sender there (an address and a port, or the
//! identifier of a ping) has a flow, which is one socket at the server, whatever the destinations
//! (endpoint-independent mapping, RFC 4787, section 4.1) and whoever answers (endpoint-independent
//! filtering, section 5), so that the peers of a game find each other.
//!
//! All flows of a client share one stream, and last at most as long as it does. Their datagrams are
//! messages of the bundle with flow numbers that the client chooses, from [`FIRST`] on:
//!
//! ```text
//! MESSAGE   0, DATAGRAM | 1, number u32, index u8, last index u8, part of a DATAGRAM
//! DATAGRAM  protocol u8 (17 UDP, 1 echo), type of service or traffic class u8, where to or from as
//!           in a request (the port of an echo is its sequence number), bytes
//! ```
//!
//! A datagram that is larger than the links carry is cut into parts, which are put together at the
//! other end, as IP does with fragments: if one is lost, all are. Their number is too long to come
//! again while parts of an earlier datagram wait, which is what IPv4's 16 bits allow (RFC 4963).

mod client;
mod server;

pub(crate) use client::run;
pub(crate) use server::serve;

use crate::request::Target;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Lowest number of a flow; those of streams are lower.
pub const FIRST: u64 = 1 << 60;
/// Idle time after which a flow ends if both directions have spoken (RFC 4787, section 4.3).
pub const IDLE: Duration = Duration::from_secs(300);
/// The same if only one has, or if all its destinations are nameservers.
pub const IDLE_UNANSWERED: Duration = Duration::from_secs(30);
/// Port of nameservers.
const DNS: u16 = 53;
/// Kinds of messages.
const WHOLE: u8 = 0;
const PART: u8 = 1;
/// Bytes of a message before a part.
const PART_HEADER: usize = 7;
/// Largest datagram: protocol, type of service, an IPv6 address with its kind and port, the payload.
const DATAGRAM_MAX: usize = 2 + 19 + 65_535;
/// Smallest part that an end makes, bytes: every path carries it (`knee_bundle::DATAGRAM_MIN`).
const PART_MIN: usize = 500;
/// Maximum number of datagrams that wait for parts; beyond it the oldest is lost.
const INCOMPLETE_MAX: usize = 64;

/// Protocol of a datagram, by its number (IANA, "Assigned Internet Protocol Numbers").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Echo requests and their replies, of ICMP and ICMPv6.
    Echo = 1,
    /// UDP.
    Udp = 17,
}

/// A datagram of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its protocol.
    pub protocol: Protocol,
    /// Type of service or traffic class: DSCP and ECN.
    pub tos: u8,
    /// Destination, or sender if it comes from the server. The port of an echo is its sequence number.
    pub peer: SocketAddr,
    /// Payload.
    pub bytes: Bytes,
}

impl Datagram {
    /// Parses a datagram; `None` if it is malformed.
    pub fn read(from: &Bytes) -> Option<Datagram> {
        let [protocol, tos, rest @ ..] = from.as_ref() else { return None };
        let protocol = match protocol {
            1 => Protocol::Echo,
            17 => Protocol::Udp,
            _ => return None,
        };
        match Target::read(rest).ok()?? {
            (Target::Address(host, port), taken) => {
                let (peer, bytes) = (SocketAddr::new(host, port), from.slice(2 + taken..));
                Some(Datagram { protocol, tos: *tos, peer, bytes })
            }
            (Target::Name(..), _) => None,
        }
    }

    /// Makes its messages: one, or parts with this number if it is larger than `most` bytes. A part
    /// has at least [`PART_MIN`].
    pub fn messages(&self, number: u32, most: usize) -> Vec<Bytes> {
        let Datagram { protocol, tos, peer, bytes } = self;
        let mut whole = Vec::with_capacity(22 + bytes.len());
        whole.extend([WHOLE, *protocol as u8, *tos]);
        Target::Address(peer.ip(), peer.port()).write(&mut whole);
        whole.extend_from_slice(bytes);
        if whole.len() <= most {
            return vec![whole.into()];
        }
        let room = most.max(PART_MIN) - PART_HEADER;
        let parts = whole[1..].chunks(room);
        let last = parts.len() - 1;
        let part = |(index, part): (usize, &[u8])| {
            let header = [&[PART], &number.to_be_bytes()[..], &[index as u8, last as u8]].concat();
            Bytes::from([&header, part].concat())
        };
        parts.enumerate().map(part).collect()
    }
}

/// A datagram of which parts are missing.
#[derive(Debug)]
struct Incomplete {
    /// Tells which began first.
    begun: u64,
    parts: Vec<Option<Bytes>>,
}

/// Puts parts of datagrams together.
#[derive(Debug, Default)]
pub struct Assembly {
    /// By flow and number.
    incomplete: BTreeMap<(u64, u32), Incomplete>,
    /// Datagrams that began so far.
    begun: u64,
}

impl Assembly {
    /// Returns the datagram of a message, or `None` if parts are missing or it is malformed.
    pub fn take(&mut self, flow: u64, message: &Bytes) -> Option<Datagram> {
        match *message.as_ref() {
            [WHOLE, ..] => Datagram::read(&message.slice(1..)),
            [PART, a, b, c, d, index, last, ..] if index <= last => {
                let number = u32::from_be_bytes([a, b, c, d]);
                let part = message.slice(PART_HEADER..);
                let whole = self.add((flow, number), index.into(), last.into(), part)?;
                Datagram::read(&whole.into())
            }
            _ => None,
        }
    }

    fn add(&mut self, key: (u64, u32), index: usize, last: usize, part: Bytes) -> Option<Vec<u8>> {
        if !self.incomplete.contains_key(&key) && self.incomplete.len() >= INCOMPLETE_MAX {
            let oldest = self.incomplete.iter().min_by_key(|(_, datagram)| datagram.begun);
            let oldest = oldest.map(|(key, _)| *key)?;
            self.incomplete.remove(&oldest);
        }
        self.begun += 1;
        let begin = || Incomplete { begun: self.begun, parts: vec![None; last + 1] };
        let parts = &mut self.incomplete.entry(key).or_insert_with(begin).parts;
        // An end that breaks the format.
        if parts.len() != last + 1 {
            *parts = vec![None; last + 1];
        }
        parts[index] = Some(part);
        let held: usize = parts.iter().flatten().map(Bytes::len).sum();
        if held > DATAGRAM_MAX {
            self.incomplete.remove(&key);
            return None;
        }
        if parts.iter().any(Option::is_none) {
            return None;
        }
        let datagram = self.incomplete.remove(&key)?;
        Some(datagram.parts.into_iter().flatten().flatten().collect())
    }
}

/// What a flow has done, which says how long it lasts.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    sent: bool,
    answered: bool,
    only_dns: bool,
}

impl Default for Use {
    fn default() -> Use {
        Use { sent: false, answered: false, only_dns: true }
    }
}

impl Use {
    /// Notes a datagram to this destination.
    pub fn on_sent(&mut self, to: SocketAddr) {
        self.sent = true;
        self.only_dns &= to.port() == DNS;
    }

    /// Notes a datagram that came back.
    pub fn on_answered(&mut self) {
        self.answered = true;
    }

    /// Returns the idle time after which the flow ends.
    pub fn idle(&self) -> Duration {
        if self.sent && self.answered && !self.only_dns { IDLE } else { IDLE_UNANSWERED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PEER: &str = "192.0.2.1:443";

    fn datagram(tos: u8, bytes: &[u8]) -> Datagram {
        let bytes = Bytes::copy_from_slice(bytes);
        Datagram { protocol: Protocol::Udp, tos, peer: PEER.parse().unwrap(), bytes }
    }

    /// Byte by byte, from the format above.
    #[test]
    fn a_datagram_byte_for_byte() {
        let made = datagram(0xb8, b"hi").messages(0, 1200);
        assert_eq!(made, [&b"\x00\x11\xb8\x01\xc0\x00\x02\x01\x01\xbbhi"[..]]);
        let made = datagram(0, &[7; 600]).messages(0x0102_0304, 507);
        assert_eq!(made.iter().map(Bytes::len).collect::<Vec<_>>(), [507, 116]);
        assert_eq!(made[0][..10], [1, 1, 2, 3, 4, 0, 1, 17, 0, 1]);
        assert_eq!(made[1][..8], [1, 1, 2, 3, 4, 1, 1, 7]);
    }

    #[test]
    fn flows_last_as_long_as_they_are_used() {
        let [web, dns] = [PEER.parse().unwrap(), "192.0.2.1:53".parse().unwrap()];
        for (to, answered, idle) in
            [(web, false, IDLE_UNANSWERED), (web, true, IDLE), (dns, true, IDLE_UNANSWERED)]
        {
            let mut used = Use::default();
            used.on_sent(to);
            if answered {
                used.on_answered();
            }
            assert_eq!(used.idle(), idle);
        }
    }

    /// However many datagrams lose parts, what is kept for them stays small.
    #[test]
    fn lost_parts_hold_little_memory() {
        let mut assembly = Assembly::default();
        for number in 0..10_000 {
            let parts = datagram(0, &[1; 3000]).messages(number, 1000);
            assert_eq!(assembly.take(FIRST, &parts[0]), None);
            assert!(assembly.incomplete.len() <= INCOMPLETE_MAX);
        }
    }

    proptest! {
        /// Parts in any order, with those of other flows in between, give the datagram.
        #[test]
        fn parts_in_any_order_are_put_together(
            payload in prop::collection::vec(any::<u8>(), 0..20_000),
            most in PART_MIN..1400_usize,
            order in any::<prop::sample::Index>(),
            tos: u8,
        ) {
            let peer = "[2001:db8::1]:443".parse().unwrap();
            let protocol = if tos % 2 == 0 { Protocol::Udp } else { Protocol::Echo };
            let whole = Datagram { protocol, tos, peer, bytes: payload.into() };
            let mut parts = whole.messages(9, most);
            prop_assert!(parts.iter().all(|part| part.len() <= most));
            let turn = order.index(parts.len());
            parts.rotate_left(turn);
            let last = parts.pop().unwrap();
            let mut assembly = Assembly::default();
            for part in &parts {
                prop_assert_eq!(assembly.take(FIRST, part), None);
                prop_assert_eq!(assembly.take(FIRST + 1, part), None);
            }
            prop_assert_eq!(assembly.take(FIRST, &last), Some(whole));
        }

        /// No message does harm.
        #[test]
        fn any_message(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Assembly::default().take(FIRST, &bytes.into());
        }
    }
}
