//! The round-trip time that a QUIC connection shows by its spin bit (RFC 9000, section 17.4).

use super::Delays;
use knee_units::Time;

/// Bits of the first byte (RFC 9000, sections 17.2 and 17.3).
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// QUIC versions 1 and 2 (RFC 9369): what a packet with a long header must have for a flow to count as
/// QUIC.
const VERSIONS: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
/// One in this many periods may be shorter than the links allow; with more, the bit does not spin: an
/// endpoint that does not take part sends what it likes.
const IMPOSSIBLE_SHARE: u64 = 8;

/// The spin bit of the packets of one direction, as they enter the links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spin {
    is_quic: bool,
    last: Option<bool>,
    edge: Option<Time>,
    periods: Delays,
}

impl Spin {
    /// Takes the first bytes of a datagram's payload.
    pub fn take(&mut self, payload: &[u8], at: Time) {
        let Some(first) = payload.first() else { return };
        if first & LONG != 0 {
            self.is_quic |= payload.get(1..5).is_some_and(|of| VERSIONS.iter().any(|it| it == of));
            return;
        }
        if !self.is_quic || first & FIXED == 0 {
            return;
        }
        let spin = first & SPIN != 0;
        let before = self.last.replace(spin);
        if before.is_none_or(|before| before == spin) {
            return;
        }
        if let Some(edge) = self.edge.replace(at) {
            self.periods.record(at.saturating_sub(edge));
        }
    }

    /// Returns the median time between two edges, which is the round-trip time with all waiting of
    /// the hosts, up to 3 % too large; `None` if the bit does not spin. `least` is what the links
    /// take there and back.
    pub fn rtt(&self, least: Time) -> Option<Time> {
        let impossible = self.periods.below(least);
        let spins = impossible * IMPOSSIBLE_SHARE <= self.periods.packets();
        self.periods.at(0.5).filter(|_| spins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const LEAST: Time = Time::from_millis(40);

    /// A server and a client send a packet each millisecond over 20 and 30 ms. The server repeats the
    /// bit of the last packet that came, the client inverts it, as RFC 9000 says.
    fn between(spins: impl Fn(u64, bool) -> bool) -> Spin {
        let mut seen = Spin::default();
        seen.take(&[0xc0, 0, 0, 0, 1], Time::ZERO);
        let (mut to_client, mut to_server) = (VecDeque::<(u64, bool)>::new(), VecDeque::new());
        let (mut of_client, mut of_server) = (false, false);
        for now in 0..2000 {
            if to_client.front().is_some_and(|(at, _)| *at == now) {
                of_client = !to_client.pop_front().unwrap().1;
            }
            if to_server.front().is_some_and(|(at, _)| *at == now) {
                of_server = to_server.pop_front().unwrap().1;
            }
            let bit = spins(now, of_server);
            seen.take(&[0x40 | if bit { 0x20 } else { 0 }], Time::from_millis(now));
            to_client.push_back((now + 20, bit));
            to_server.push_back((now + 30, of_client));
        }
        seen
    }

    #[test]
    fn the_time_between_two_edges_is_the_round_trip_time() {
        let rtt = between(|_, reflected| reflected).rtt(LEAST).unwrap();
        assert!((50.0..=51.6).contains(&(rtt.as_secs_f64() * 1e3)), "{rtt}");
    }

    /// One of sixteen connections must not spin; its bit is fixed, or drawn for each packet.
    #[test]
    fn a_bit_that_does_not_spin_tells_nothing() {
        assert_eq!(between(|_, _| false).rtt(LEAST), None);
        let drawn = |now: u64, _| (now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) & 1 == 1;
        assert_eq!(between(drawn).rtt(LEAST), None);
    }

    /// Other protocols over UDP have the same bit for other things.
    #[test]
    fn only_quic_has_a_spin_bit() {
        let mut seen = Spin::default();
        for number in 0..100_u64 {
            seen.take(&[if number % 2 == 0 { 0x40 } else { 0x60 }], Time::from_millis(50 * number));
        }
        assert_eq!(seen.rtt(LEAST), None);
    }
}
