//! Connections of clients until they join: how many there may be, and for how long.

use super::{Host, HostEvent, LinkKey};
use crate::keys::{PublicKey, QUIC};
use knee_units::Time;
use noq_proto::{EndpointEvent, Incoming, VarInt};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Numbers of connections that have not joined from which a client must prove its address (RFC
/// 9000, section 8.1.2), and from which the oldest makes room for a new one.
const UNJOINED_CHECKED: usize = 64;
const UNJOINED_MAX: usize = 512;
/// Number of one key's connections that may be without a bundle at a time: a client with eight links
/// that was restarted has as many while they begin.
const UNJOINED_OF_A_KEY: usize = 16;
/// Smallest datagram that begins a connection (RFC 9000, section 14.1), bytes.
const INITIAL_MIN: usize = 1200;
/// Time in which a connection must join, unless its path has no timeout. A stranger's would last as
/// long as it repeats itself, since each packet restarts the idle timer (RFC 9000, section 10.1). With
/// an RTT of 1 s, a client needs 9 s if its last flight is lost, and up to 18 s at 20 % loss.
const JOIN_TIME: Time = Time::from_secs(30);

impl Host {
    /// Accepts no more connections, because the host is about to stop.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Accepts a connection. If many are pending, the client must prove its address.
    pub(super) fn take_connection(
        &mut self,
        now: Time,
        path: usize,
        incoming: Incoming,
        mut answer: Vec<u8>,
    ) {
        let at = self.instant(now);
        let unjoined = self.links.values().filter(|link| link.member.is_none()).count();
        let is_full = unjoined >= UNJOINED_MAX;
        let oldest = if is_full { self.oldest_unjoined() } else { None };
        let endpoint = &mut self.endpoints[path];
        let response = if self.is_leaving {
            Some(endpoint.refuse(incoming, &mut answer))
        } else if unjoined >= UNJOINED_CHECKED && incoming.may_retry() {
            // Fails only if a retry is not allowed.
            endpoint.retry(incoming, &mut answer).ok()
        } else if is_full && oldest.is_none() {
            Some(endpoint.refuse(incoming, &mut answer))
        } else {
            let (factory, transport) = self.transport(path, incoming.remote_address());
            let mut config = self.servers[path].clone();
            config.transport_config(transport);
            match self.endpoints[path].accept(incoming, at, &mut answer, Some(Arc::new(config))) {
                Ok((handle, connection)) => {
                    let has_limit = self.settings.paths[path].idle.is_some();
                    let join_by = if has_limit { now.saturating_add(JOIN_TIME) } else { Time::MAX };
                    self.add(path, handle, connection, &factory, join_by);
                    if let Some(oldest) = oldest {
                        self.dismiss(now, oldest, "it made room for another one");
                    }
                    None
                }
                Err(error) => {
                    self.events.push_back(HostEvent::Lost(None, error.cause.to_string()));
                    error.response
                }
            }
        };
        self.answers.extend(response.map(|transmit| (path, transmit, answer)));
    }

    /// Closes the oldest connection of a key without a bundle if there are too many.
    pub(super) fn bound_unjoined(&mut self, now: Time, peer: PublicKey) {
        let of_key = self.links.iter().filter(|(_, link)| {
            link.peer == Some(peer) && link.deadline() < Time::MAX && !link.connection.is_closed()
        });
        let (mut count, mut oldest) = (0, None);
        for (key, link) in of_key {
            count += 1;
            if oldest.is_none_or(|(join_by, _)| link.join_by < join_by) {
                oldest = Some((link.join_by, *key));
            }
        }
        if let Some((_, oldest)) = oldest.filter(|_| count > UNJOINED_OF_A_KEY) {
            self.events.push_back(HostEvent::Hoarded(peer));
            self.dismiss(now, oldest, "its client has too many that have not joined");
        }
    }

    /// Returns the connection to drop first of those that must join, preferably one that is closed.
    fn oldest_unjoined(&self) -> Option<LinkKey> {
        let must_join = self.links.iter().filter(|(_, link)| link.deadline() < Time::MAX);
        let oldest = must_join.min_by_key(|(_, link)| (!link.connection.is_closed(), link.join_by));
        oldest.map(|(key, _)| *key)
    }

    /// Ends a connection that has not joined, and forgets it at once: for how long a closed one would
    /// be kept depends on its RTT (RFC 9000, section 10.2), which the peer can prolong.
    pub(super) fn dismiss(&mut self, now: Time, key: LinkKey, reason: &str) {
        let at = self.instant(now);
        let Some(mut link) = self.links.remove(&key) else { return };
        if !link.connection.is_closed() {
            link.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            let mut bytes = Vec::new();
            let transmit = link.connection.poll_transmit(at, NonZeroUsize::MIN, &mut bytes);
            self.answers.extend(transmit.map(|transmit| (key.0, transmit, bytes)));
            self.events.push_back(HostEvent::Lost(None, reason.to_owned()));
        }
        self.endpoints[key.0].handle_event(link.handle, EndpointEvent::drained());
    }
}

/// Returns whether a datagram asks for another version of QUIC and is too short to begin a connection.
/// Whoever forges its sender's address must not have an answer sent there that is longer (RFC 9000,
/// section 6.1).
pub(super) fn is_short_of_another_version(datagram: &[u8]) -> bool {
    let [first, a, b, c, d, ..] = *datagram else { return false };
    // The form bit of a long header (RFC 8999, section 5.1).
    let is_long = first & 0x80 != 0;
    is_long && datagram.len() < INITIAL_MIN && u32::from_be_bytes([a, b, c, d]) != QUIC
}
