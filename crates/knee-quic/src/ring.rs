//! Packets that are neither acknowledged nor lost, by packet number.
//!
//! The packets of a handshake have number spaces of their own (RFC 9000, section 12.3), and a
//! congestion controller receives numbers without their space. So a number that does not continue
//! the last one is kept aside, with its time of sending, which distinguishes two packets with the
//! same number.

use knee_transport::Sent;
use knee_units::Time;
use std::collections::VecDeque;

/// The library reports a packet no more once the packet this many numbers later was acknowledged
/// before the last ACK: it declares packets lost from three on (RFC 9002, section 6.1.1).
const REPORTED_WITHIN: u64 = 16;
/// Maximum number of packets aside: the fate of handshake packets whose keys were dropped is never
/// reported.
const ASIDE_MAX: usize = 64;

/// Packets in flight.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// Number of the first packet in `packets`.
    first: u64,
    packets: VecDeque<Option<Sent>>,
    aside: VecDeque<(u64, Sent)>,
    /// Successor of the largest number that was acknowledged, now and before the last ACK.
    acknowledged: u64,
    acknowledged_before: u64,
}

impl Ring {
    /// Adds a packet that was sent.
    pub fn insert(&mut self, number: u64, sent: Sent) {
        let next = self.first + self.packets.len() as u64;
        if self.packets.is_empty() && number >= next {
            self.first = number;
        } else if number < next {
            if self.aside.len() >= ASIDE_MAX {
                self.aside.pop_front();
            }
            self.aside.push_back((number, sent));
            return;
        } else {
            // Numbers may be skipped, to detect a peer that makes up ACKs.
            (next..number).for_each(|_| self.packets.push_back(None));
        }
        self.packets.push_back(Some(sent));
    }

    /// Removes a packet sent at that time; `None` if it is unknown, or the time is that of another
    /// packet with the same number.
    pub fn take(&mut self, number: u64, sent_at: Option<Time>) -> Option<Sent> {
        let is_it = |sent: &Sent| sent_at.is_none_or(|at| at == sent.sent_at);
        let at = number.checked_sub(self.first).map(|at| at as usize);
        if let Some(entry) = at.and_then(|at| self.packets.get_mut(at))
            && entry.as_ref().is_some_and(is_it)
        {
            let sent = entry.take();
            if sent_at.is_some() {
                self.acknowledged = self.acknowledged.max(number + 1);
            }
            self.forget_before(0);
            return sent;
        }
        let at = self.aside.iter().position(|(other, sent)| *other == number && is_it(sent))?;
        self.aside.remove(at).map(|(_, sent)| sent)
    }

    /// Notes that an ACK was processed. Forgets packets whose fate the library does not tell: probes
    /// of the MTU that were lost, and packets from before the peer's address changed.
    pub fn on_ack_end(&mut self) {
        self.forget_before(self.acknowledged_before.saturating_sub(REPORTED_WITHIN));
        self.acknowledged_before = self.acknowledged;
    }

    /// Removes the packets below `number`, and what is empty after them.
    fn forget_before(&mut self, number: u64) {
        while let Some(front) = self.packets.front()
            && (front.is_none() || self.first < number)
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Returns the packet that was sent first, without those aside.
    pub fn oldest(&self) -> Option<&Sent> {
        self.packets.front().and_then(Option::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: u64) -> Sent {
        Sent { sent_at: Time::from_nanos(at), ..Sent::default() }
    }

    #[test]
    fn numbers_of_two_spaces_are_told_apart() {
        let mut ring = Ring::default();
        let at = |ring: &mut Ring, number, at| {
            ring.take(number, Some(Time::from_nanos(at))).map(|sent| sent.sent_at.as_nanos())
        };
        // Initial 0, 1; Handshake 0; then data 0, 1, 2, and after a gap 5.
        for (number, time) in [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5), (2, 6), (5, 7)] {
            ring.insert(number, sent(time));
        }
        assert_eq!(at(&mut ring, 0, 3), Some(3));
        assert_eq!(at(&mut ring, 0, 3), None);
        assert_eq!(at(&mut ring, 0, 1), Some(1));
        assert_eq!(at(&mut ring, 1, 5), Some(5));
        assert_eq!(at(&mut ring, 2, 6), Some(6));
        assert_eq!(at(&mut ring, 3, 6), None);
        assert_eq!(ring.oldest().map(|sent| sent.sent_at.as_nanos()), Some(2));
        assert_eq!(at(&mut ring, 1, 2), Some(2));
        assert_eq!(at(&mut ring, 5, 7), Some(7));
        assert!(ring.oldest().is_none());
        ring.insert(9, sent(9));
        assert_eq!(at(&mut ring, 9, 9), Some(9));
        assert_eq!(at(&mut ring, 0, 4), Some(4));
    }
}
