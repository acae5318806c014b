//! Packets whose fate the library has not told, by packet number: in flight, or declared lost here.
//!
//! The packets of a handshake have number spaces of their own (RFC 9000, section 12.3), and a
//! congestion controller receives numbers without their space. So of two packets with one number the
//! earlier one is kept aside; the time of sending distinguishes them. Those aside are left to the
//! library's loss detection.

use knee_transport::Sent;
use knee_units::Time;
use std::collections::VecDeque;

/// Maximum number of packets aside: the fate of handshake packets whose keys were dropped is never
/// reported.
const ASIDE_MAX: usize = 64;

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// A probe of the MTU in flight: its loss says nothing about congestion (RFC 9000, section 14.4).
    Probe,
    /// The count of losses when it was declared lost.
    Lost(u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Sent,
    state: State,
}

/// A packet whose fate the library told.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub sent: Sent,
    /// The count of losses when it was declared lost here, if it was.
    pub lost: Option<u64>,
    /// Whether it was aside.
    pub is_aside: bool,
}

/// Packets sent.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// Number of the first packet in `packets`.
    first: u64,
    packets: VecDeque<Option<Entry>>,
    aside: VecDeque<(u64, Entry)>,
    /// No packet before this number is in flight.
    in_flight_from: u64,
    /// Bytes declared lost here of which the library has not told the fate.
    lost: u64,
}

impl Ring {
    /// Adds a packet that was sent.
    pub fn insert(&mut self, number: u64, sent: Sent, is_probe: bool) {
        let state = if is_probe { State::Probe } else { State::InFlight };
        let mut entry = Entry { sent, state };
        let next = self.first + self.packets.len() as u64;
        if self.packets.is_empty() && number >= next {
            (self.first, self.in_flight_from) = (number, number);
        } else if number < next {
            let place = number.checked_sub(self.first).map(|at| at as usize);
            let earlier = place.and_then(|at| self.packets[at].as_mut());
            if let Some(earlier) = earlier {
                std::mem::swap(earlier, &mut entry);
            }
            self.aside.push_back((number, entry));
            if self.aside.len() > ASIDE_MAX
                && let Some((_, dropped)) = self.aside.pop_front()
            {
                self.settle(&dropped);
            }
            return;
        } else {
            // Numbers may be skipped, to detect a peer that makes up ACKs.
            (next..number).for_each(|_| self.packets.push_back(None));
        }
        self.packets.push_back(Some(entry));
    }

    /// Removes a packet sent at that time; `None` if it is unknown, or the time is that of another
    /// packet with the same number.
    pub fn take(&mut self, number: u64, sent_at: Option<Time>) -> Option<Taken> {
        let is_it = |entry: &Entry| sent_at.is_none_or(|at| at == entry.sent.sent_at);
        let at = number.checked_sub(self.first).map(|at| at as usize);
        let taken = if let Some(entry) = at.and_then(|at| self.packets.get_mut(at))
            && entry.as_ref().is_some_and(is_it)
        {
            entry.take().map(|entry| (entry, false))
        } else {
            let at = self.aside.iter().position(|(other, e)| *other == number && is_it(e))?;
            self.aside.remove(at).map(|(_, entry)| (entry, true))
        };
        let (entry, is_aside) = taken?;
        self.pop_taken();
        let lost = self.settle(&entry);
        Some(Taken { sent: entry.sent, lost, is_aside })
    }

    /// Returns the count of losses when a packet that is removed was declared lost here, if it was.
    fn settle(&mut self, entry: &Entry) -> Option<u64> {
        let State::Lost(count) = entry.state else { return None };
        self.lost -= u64::from(entry.sent.len);
        Some(count)
    }

    /// Removes what is empty at the front.
    fn pop_taken(&mut self) {
        while self.packets.front().is_some_and(Option::is_none) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Returns the packet in flight that was sent first, without those aside.
    pub fn oldest(&mut self) -> Option<&Sent> {
        let from = self.in_flight_from.max(self.first);
        let at = self.packets.range((from - self.first) as usize..).position(|entry| {
            entry.is_some_and(|entry| matches!(entry.state, State::InFlight | State::Probe))
        });
        let next = self.first + self.packets.len() as u64;
        self.in_flight_from = at.map_or(next, |at| from + at as u64);
        let at = (self.in_flight_from - self.first) as usize;
        self.packets.get(at)?.as_ref().map(|entry| &entry.sent)
    }

    /// Declares the [oldest](Self::oldest) packet lost; `count` are the losses so far. Returns it,
    /// unless it was a probe of the MTU, of whose loss the library tells nothing.
    pub fn lose_oldest(&mut self, count: u64) -> Option<Sent> {
        self.oldest()?;
        let at = (self.in_flight_from - self.first) as usize;
        let place = self.packets.get_mut(at)?;
        let entry = place.as_mut()?;
        if entry.state == State::Probe {
            *place = None;
            self.pop_taken();
            return None;
        }
        entry.state = State::Lost(count);
        let sent = entry.sent;
        self.lost += u64::from(sent.len);
        Some(sent)
    }

    /// Forgets packets declared lost that were sent before `at`: handshake packets among them whose
    /// keys were dropped.
    pub fn forget_lost(&mut self, at: Time) {
        while let Some(Some(entry)) = self.packets.front().copied()
            && entry.sent.sent_at < at
            && self.settle(&entry).is_some()
        {
            self.packets[0] = None;
            self.pop_taken();
        }
    }

    /// Returns the bytes declared lost here that are still in flight for the library.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the bytes in flight, without those aside and probes of the MTU.
    pub fn in_flight(&self) -> u64 {
        let in_flight = |entry: &&Entry| entry.state == State::InFlight;
        self.packets.iter().flatten().filter(in_flight).map(|entry| u64::from(entry.sent.len)).sum()
    }

    /// Forgets all packets, because the library will not tell their fate.
    pub fn clear(&mut self) {
        *self = Ring::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: u64) -> Sent {
        Sent { sent_at: Time::from_nanos(at), len: 1000, ..Sent::default() }
    }

    fn take(ring: &mut Ring, number: u64, at: u64) -> Option<u64> {
        ring.take(number, Some(Time::from_nanos(at))).map(|taken| taken.sent.sent_at.as_nanos())
    }

    fn oldest(ring: &mut Ring) -> Option<u64> {
        ring.oldest().map(|sent| sent.sent_at.as_nanos())
    }

    #[test]
    fn numbers_of_two_spaces_are_told_apart() {
        let mut ring = Ring::default();
        // Initial 0, 1; Handshake 0; then data 0, 1, 2, and after a gap 5.
        for (number, time) in [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5), (2, 6), (5, 7)] {
            ring.insert(number, sent(time), false);
        }
        // Those of the handshake are aside.
        assert_eq!(oldest(&mut ring), Some(4));
        assert_eq!(take(&mut ring, 0, 3), Some(3));
        assert_eq!(take(&mut ring, 0, 3), None);
        assert_eq!(take(&mut ring, 0, 1), Some(1));
        assert_eq!(take(&mut ring, 1, 5), Some(5));
        assert_eq!(take(&mut ring, 2, 6), Some(6));
        assert_eq!(take(&mut ring, 3, 6), None);
        assert_eq!(take(&mut ring, 1, 2), Some(2));
        assert_eq!(oldest(&mut ring), Some(4));
        assert_eq!(take(&mut ring, 0, 4), Some(4));
        assert_eq!(take(&mut ring, 5, 7), Some(7));
        assert_eq!(oldest(&mut ring), None);
        ring.insert(9, sent(9), false);
        assert_eq!(take(&mut ring, 9, 9), Some(9));
    }

    #[test]
    fn what_is_declared_lost_waits_for_the_library() {
        let mut ring = Ring::default();
        for number in 0..6 {
            ring.insert(number, sent(number), number == 1);
        }
        // The second is a probe of the MTU.
        let lost = [7, 8, 8].map(|count| ring.lose_oldest(count).map(|s| s.sent_at.as_nanos()));
        assert_eq!((lost, ring.lost()), ([Some(0), None, Some(2)], 2000));
        assert_eq!(oldest(&mut ring), Some(3));
        assert_eq!(ring.take(2, None).and_then(|taken| taken.lost), Some(8));
        assert_eq!((take(&mut ring, 1, 1), ring.lost()), (None, 1000));
        // The library tells the fate of neither.
        ring.forget_lost(Time::from_nanos(5));
        assert_eq!((take(&mut ring, 0, 0), ring.lost()), (None, 0));
        assert_eq!(oldest(&mut ring), Some(3));
        ring.clear();
        assert_eq!(oldest(&mut ring), None);
    }
}
