//! The packets inside a link whose departure is known, in order.

use crate::{Buffer, Packet};
use knee_units::Time;
use std::collections::VecDeque;

/// A packet between entry and delivery.
pub(crate) struct Entry<P> {
    /// When its last byte leaves the queue.
    pub departure: Time,
    /// When it reaches the far end.
    pub arrival: Time,
    pub packet: P,
}

/// Packets in the order of their departure: those that have left the queue
/// and propagate, then the one in transmission, then those that wait. Where
/// the boundary lies is found out only when somebody asks: each packet is
/// passed once.
pub(crate) struct Fifo<P> {
    entries: VecDeque<Entry<P>>,
    /// When the first arrives; [`Time::MAX`]: there is none.
    next_arrival: Time,
    /// So many entries at the front are known to have left the queue.
    departed: usize,
    /// Bytes of the other entries.
    queued_bytes: u64,
    departed_bytes: u64,
}

impl<P: Packet> Fifo<P> {
    pub fn new() -> Fifo<P> {
        Fifo {
            entries: VecDeque::new(),
            next_arrival: Time::MAX,
            departed: 0,
            queued_bytes: 0,
            departed_bytes: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, departure: Time, arrival: Time, packet: P) {
        self.queued_bytes += u64::from(packet.size());
        if self.entries.is_empty() {
            self.next_arrival = arrival;
        }
        self.entries.push_back(Entry { departure, arrival, packet });
    }

    /// When the oldest packet arrives; [`Time::MAX`]: nothing is inside.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.next_arrival
    }

    #[inline]
    pub fn pop_arrived(&mut self, now: Time) -> Option<P> {
        if self.next_arrival > now {
            return None;
        }
        self.pop().map(|entry| entry.packet)
    }

    /// The next packet that has left the queue by `now`, wherever it is.
    pub fn pop_departed(&mut self, now: Time) -> Option<Entry<P>> {
        if self.entries.front()?.departure > now {
            return None;
        }
        self.pop()
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry<P>> {
        let entry = self.entries.pop_front()?;
        self.next_arrival = self.entries.front().map_or(Time::MAX, |entry| entry.arrival);
        if self.departed > 0 {
            self.departed -= 1;
        } else {
            self.count_departed(entry.packet.size());
        }
        Some(entry)
    }

    #[inline]
    fn count_departed(&mut self, size: u32) {
        self.queued_bytes -= u64::from(size);
        self.departed_bytes += u64::from(size);
    }

    /// Finds out what has left the queue by `now`.
    pub fn settle(&mut self, now: Time) {
        while let Some(entry) = self.entries.get(self.departed) {
            if entry.departure > now {
                break;
            }
            let size = entry.packet.size();
            self.count_departed(size);
            self.departed += 1;
        }
    }

    /// Whether a packet that enters now finds room: see [`Buffer`].
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

    /// Bytes in the queue, the packet in transmission included; as of the
    /// last [`settle`](Self::settle).
    pub fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Packets in the queue, the one in transmission included; as of the
    /// last [`settle`](Self::settle).
    #[inline]
    pub fn queued_packets(&self) -> usize {
        self.entries.len() - self.departed
    }

    /// Bytes in the queue, the packet in transmission not counted; as of the
    /// last [`settle`](Self::settle).
    pub fn waiting_bytes(&self) -> u64 {
        let head = self.entries.get(self.departed);
        self.queued_bytes - head.map_or(0, |entry| u64::from(entry.packet.size()))
    }

    /// Bytes that have left the queue; as of the last
    /// [`settle`](Self::settle).
    pub fn departed_bytes(&self) -> u64 {
        self.departed_bytes
    }

    pub fn front(&self) -> Option<&Entry<P>> {
        self.entries.front()
    }

    pub fn back(&self) -> Option<&Entry<P>> {
        self.entries.back()
    }

    /// Takes out the packets that would leave after `at`, oldest first.
    pub fn cut(&mut self, at: Time) -> impl Iterator<Item = P> + '_ {
        self.settle(at);
        self.queued_bytes = 0;
        if self.departed == 0 {
            self.next_arrival = Time::MAX;
        }
        self.entries.drain(self.departed..).map(|entry| entry.packet)
    }
}
