//! Packets inside a link whose departure is known, in order.

use crate::config::Device;
use crate::{Buffer, Packet};
use knee_units::Time;

/// A packet between entry and delivery, or an empty place in the ring.
struct Place<P> {
    /// When its last byte leaves the queue.
    departure: Time,
    /// When it reaches the far end.
    arrival: Time,
    packet: Option<P>,
}

/// Packets in the order of their departure: those that have left the queue and
/// propagate, then the one in transmission, then those that wait. The boundary
/// between them is determined only on request: each packet is visited once.
///
/// A ring whose size is a power of two; entry numbers increase forever, and
/// their value modulo the size is their place.
pub(crate) struct Fifo<P> {
    ring: Box<[Place<P>]>,
    /// Number of the oldest entry.
    first: usize,
    /// Number of the next entry.
    next: usize,
    /// When the first arrives; [`Time::MAX`] if empty.
    next_arrival: Time,
    /// Entries before this one are known to have left the queue.
    queued: usize,
    /// Bytes of the other entries.
    queued_bytes: u64,
    departed_bytes: u64,
}

/// Initial number of places in a ring; it doubles when full.
const RING_MIN: usize = 16;

impl<P: Packet> Fifo<P> {
    pub fn new() -> Fifo<P> {
        Fifo {
            ring: Box::default(),
            first: 0,
            next: 0,
            next_arrival: Time::MAX,
            queued: 0,
            queued_bytes: 0,
            departed_bytes: 0,
        }
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        number & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    pub fn push(&mut self, departure: Time, arrival: Time, packet: P) {
        self.queued_bytes += u64::from(packet.size());
        let len = self.next - self.first;
        if len == self.ring.len() {
            self.grow();
        }
        if len == 0 {
            self.next_arrival = arrival;
        }
        let place = self.place(self.next);
        self.next += 1;
        self.ring[place] = Place { departure, arrival, packet: Some(packet) };
    }

    /// Appends packets of `size` bytes, each with its departure and arrival.
    #[inline(always)]
    pub fn push_run(
        &mut self,
        size: u32,
        count: u32,
        mut entry: impl FnMut(u32) -> (Time, Time, P),
    ) {
        let (begin, end) = (self.next, self.next + count as usize);
        while end - self.first > self.ring.len() {
            self.grow();
        }
        self.queued_bytes += u64::from(size) * u64::from(count);
        self.next = end;
        let mask = self.ring.len().wrapping_sub(1);
        let ring = &mut self.ring[..];
        for place in 0..count {
            let (departure, arrival, packet) = entry(place);
            let packet = Some(packet);
            ring[(begin + place as usize) & mask] = Place { departure, arrival, packet };
        }
        if begin == self.first && count > 0 {
            self.next_arrival = ring[begin & mask].arrival;
        }
    }

    /// Returns how many of `count` packets of `size` bytes entering now are
    /// certain to find room.
    #[inline(always)]
    pub fn certain_room(&self, size: u32, buffer: Buffer, count: u32) -> u32 {
        let (most, each) = match buffer {
            Buffer::Unlimited => return count,
            Buffer::Bytes(limit) => (limit.saturating_sub(self.queued_bytes), u64::from(size)),
            Buffer::Packets(limit) => (limit.saturating_sub(self.queued_packets() as u64), 1),
        };
        if u64::from(count) * each <= most { count } else { (most / each.max(1)) as u32 }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(RING_MIN);
        let empty = || Place { departure: Time::ZERO, arrival: Time::ZERO, packet: None };
        let mut ring: Box<[Place<P>]> = std::iter::repeat_with(empty).take(size).collect();
        for number in self.first..self.next {
            let place = self.place(number);
            std::mem::swap(&mut ring[number & (size - 1)], &mut self.ring[place]);
        }
        self.ring = ring;
    }

    /// Returns when the oldest packet arrives; [`Time::MAX`] if empty.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.next_arrival
    }

    #[inline]
    pub fn pop_arrived(&mut self, now: Time) -> Option<P> {
        // An empty link has an arrival time of never, which `now` may equal.
        if self.next_arrival > now || self.first == self.next {
            return None;
        }
        self.take_first()
    }

    /// Returns the oldest packet, if it has arrived by `now`.
    #[inline(always)]
    pub fn first_arrived(&self, now: Time) -> Option<&P> {
        // An empty link has an arrival time of never, which `now` may equal.
        if self.next_arrival > now || self.first == self.next {
            return None;
        }
        self.ring[self.place(self.first)].packet.as_ref()
    }

    /// Returns the packet `behind` places after the oldest, unread.
    #[inline]
    pub fn upcoming(&self, behind: usize) -> &Option<P> {
        let number = self.first + behind;
        if number < self.next { &self.ring[self.place(number)].packet } else { &None }
    }

    /// Removes the next packet that has left the queue by `now`, arrived or
    /// not, and returns it with its arrival time.
    pub fn pop_departed(&mut self, now: Time) -> Option<(Time, P)> {
        let &Place { departure, arrival, .. } = self.front()?;
        if departure > now {
            return None;
        }
        self.take_first().map(|packet| (arrival, packet))
    }

    /// Removes the oldest entry, which must exist. The packet is moved as it is
    /// in the ring, including as an empty place, so that it is copied once.
    #[inline]
    fn take_first(&mut self) -> Option<P> {
        let place = self.place(self.first);
        let packet = &mut self.ring[place].packet;
        if self.queued == self.first {
            let size = packet.as_ref().map_or(0, P::size);
            self.queued += 1;
            self.queued_bytes -= u64::from(size);
            self.departed_bytes += u64::from(size);
        }
        let packet = packet.take();
        self.first += 1;
        self.next_arrival = self.front().map_or(Time::MAX, |place| place.arrival);
        packet
    }

    /// Skips the oldest entry, which has arrived and needs no dropping; returns
    /// when the next one arrives.
    #[inline(always)]
    pub fn skip_first(&mut self) -> Time {
        if self.queued == self.first {
            let place = &self.ring[self.place(self.first)];
            let size = place.packet.as_ref().map_or(0, P::size);
            self.queued += 1;
            self.count_departed(size);
        }
        self.first += 1;
        self.next_arrival = self.front().map_or(Time::MAX, |place| place.arrival);
        self.next_arrival
    }

    #[inline]
    fn count_departed(&mut self, size: u32) {
        self.queued_bytes -= u64::from(size);
        self.departed_bytes += u64::from(size);
    }

    /// Determines which packets have left the queue by `now`.
    pub fn settle(&mut self, now: Time) {
        while self.queued != self.next {
            let place = &self.ring[self.place(self.queued)];
            if place.departure > now {
                break;
            }
            let size = place.packet.as_ref().map_or(0, P::size);
            self.count_departed(size);
            self.queued += 1;
        }
    }

    /// Whether a packet entering now finds room: see [`Buffer`].
    #[inline]
    pub fn has_room(&mut self, now: Time, size: u32, buffer: Buffer) -> bool {
        // Before settling, the counters can only be too large.
        let certain = match buffer {
            Buffer::Unlimited => true,
            Buffer::Bytes(limit) => self.queued_bytes + u64::from(size) <= limit,
            Buffer::Packets(limit) => (self.queued_packets() as u64) < limit,
        };
        certain || self.has_room_now(now, size, buffer)
    }

    #[inline(never)]
    fn has_room_now(&mut self, now: Time, size: u32, buffer: Buffer) -> bool {
        self.settle(now);
        if self.queued_packets() == 0 {
            return true;
        }
        match buffer {
            Buffer::Unlimited => true,
            Buffer::Bytes(limit) => self.waiting_bytes() + u64::from(size) <= limit,
            Buffer::Packets(limit) => self.queued_packets() as u64 <= limit,
        }
    }

    /// Returns the bytes in the queue, including the packet in transmission; as
    /// of the last [`settle`](Self::settle).
    pub fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Returns the packets in the queue, including the one in transmission; as
    /// of the last [`settle`](Self::settle).
    #[inline]
    pub fn queued_packets(&self) -> usize {
        self.next - self.queued
    }

    /// Returns the bytes in the queue, excluding the packet in transmission; as
    /// of the last [`settle`](Self::settle).
    pub fn waiting_bytes(&self) -> u64 {
        if self.queued == self.next {
            return self.queued_bytes;
        }
        let head = &self.ring[self.place(self.queued)].packet;
        self.queued_bytes - head.as_ref().map_or(0, |packet| u64::from(packet.size()))
    }

    /// Returns the bytes that have left the queue; as of the last [`settle`](Self::settle).
    pub fn departed_bytes(&self) -> u64 {
        self.departed_bytes
    }

    /// Returns when a device below an AQM has room for another packet, as of
    /// the last [`settle`](Self::settle): it holds what has not departed.
    pub fn device_room(&self, now: Time, device: Device) -> Time {
        let (mut bytes, mut packets) = (self.queued_bytes, self.queued_packets() as u64);
        let mut at = now;
        for number in self.queued..self.next {
            let full = match device {
                Device::Bytes(limit) => bytes >= limit,
                Device::Packets(limit) => packets >= limit,
            };
            if !full {
                break;
            }
            let place = &self.ring[self.place(number)];
            at = place.departure;
            bytes -= place.packet.as_ref().map_or(0, |packet| u64::from(packet.size()));
            packets -= 1;
        }
        at
    }

    /// Returns when the oldest packet departs, if there is one.
    pub fn first_departure(&self) -> Option<Time> {
        self.front().map(|place| place.departure)
    }

    /// Returns when the newest packet departs and arrives, if there is one.
    pub fn last(&self) -> Option<(Time, Time)> {
        let last = (self.next != self.first).then(|| self.place(self.next - 1))?;
        Some((self.ring[last].departure, self.ring[last].arrival))
    }

    #[inline]
    fn front(&self) -> Option<&Place<P>> {
        if self.first == self.next {
            return None;
        }
        self.ring.get(self.place(self.first))
    }

    /// Removes the packets that would leave after `at`, oldest first.
    pub fn cut(&mut self, at: Time) -> impl Iterator<Item = P> + '_ {
        self.settle(at);
        self.queued_bytes = 0;
        if self.queued == self.first {
            self.next_arrival = Time::MAX;
        }
        let cut = self.queued..std::mem::replace(&mut self.next, self.queued);
        let mask = self.ring.len().wrapping_sub(1);
        cut.filter_map(move |number| self.ring[number & mask].packet.take())
    }
}
