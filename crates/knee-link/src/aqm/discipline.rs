//! Queues whose order or drops are decided when a packet leaves.

use super::Settings;
use crate::config::{Buffer, RateModel};
use crate::{Counters, DropReason, Packet};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// A waiting packet.
pub(crate) struct Held<P> {
    pub entered: Time,
    pub packet: P,
}

/// A first-in first-out queue with a byte count.
pub(crate) struct Waiting<P> {
    packets: VecDeque<Held<P>>,
    bytes: u64,
}

impl<P> Default for Waiting<P> {
    fn default() -> Waiting<P> {
        Waiting { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Waiting<P> {
    pub fn push(&mut self, held: Held<P>) {
        self.bytes += u64::from(held.packet.size());
        self.packets.push_back(held);
    }

    /// Appends a packet, or returns it if there is no room.
    pub fn accept(&mut self, held: Held<P>, buffer: Buffer) -> Result<(), P> {
        let bytes = self.bytes + u64::from(held.packet.size());
        if !is_within(buffer, bytes, self.packets() + 1) {
            return Err(held.packet);
        }
        self.push(held);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<Held<P>> {
        let held = self.packets.pop_front()?;
        self.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    /// Returns the packet that leaves next.
    pub fn front(&self) -> Option<&Held<P>> {
        self.packets.front()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how long the oldest packet has waited.
    pub fn age(&self, now: Time) -> Time {
        self.front().map_or(Time::ZERO, |held| now.saturating_sub(held.entered))
    }

    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }
}

/// Records congestion signals.
pub(crate) struct Ledger<'a, P> {
    pub now: Time,
    pub dropped: &'a mut VecDeque<(Time, DropReason, P)>,
    pub counters: &'a mut Counters,
}

impl<P: Packet> Ledger<'_, P> {
    pub fn drop(&mut self, reason: DropReason, packet: P) {
        self.counters.count(reason);
        self.dropped.push_back((self.now, reason, packet));
    }

    /// Signals congestion for this packet. Returns true if it was marked and
    /// stays, false if it was dropped (or there was none).
    pub fn signal(&mut self, head: &mut Option<Held<P>>, ecn: bool) -> bool {
        if let Some(held) = head
            && ecn
            && held.packet.ecn().is_capable()
        {
            held.packet.mark();
            self.counters.marked_packets += 1;
            return true;
        }
        if let Some(held) = head.take() {
            self.drop(DropReason::Aqm, held.packet);
        }
        false
    }
}

/// A queue that decides which packet leaves next.
pub(crate) trait Queue<P: Packet>: Sized {
    type Settings: Settings;

    /// Creates a queue; `own_stream` returns a random stream that nothing else uses.
    fn new(
        settings: &Self::Settings,
        rate: &RateModel,
        own_stream: impl FnOnce() -> ChaCha8Rng,
    ) -> Self;

    /// Accepts a packet, or returns it if there is no room. FQ-CoDel makes room
    /// by dropping others.
    fn enqueue(
        &mut self,
        held: Held<P>,
        buffer: Buffer,
        ledger: &mut Ledger<'_, P>,
    ) -> Result<(), P>;

    /// Returns the packet that leaves now.
    fn dequeue(&mut self, ledger: &mut Ledger<'_, P>) -> Option<Held<P>>;

    /// Returns any packet, to empty the queue.
    fn remove(&mut self) -> Option<P>;

    fn bytes(&self) -> u64;

    fn packets(&self) -> u64;

    /// Returns the state of each class of traffic; empty if there is only one class.
    fn classes(&self, _now: Time) -> Vec<ClassState> {
        Vec::new()
    }
}

/// Names of the classes of all queues that have several.
pub const CLASS_NAMES: [&str; 2] = ["low-latency", "classic"];

/// Contents of one class of a queue with several classes, and the outcome of
/// its packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassState {
    /// Name of the class, one of [`CLASS_NAMES`].
    pub name: &'static str,
    /// IP bytes waiting, the packet in transmission not counted.
    pub bytes: u64,
    /// Packets waiting.
    pub packets: u64,
    /// How long its oldest packet has waited; zero if empty.
    pub delay: Time,
    /// IP bytes that left the queue.
    pub departed_bytes: u64,
    /// Packets that the AQM dropped; a packet that finds no room has no class yet.
    pub dropped_packets: u64,
    /// Packets that the AQM marked.
    pub marked_packets: u64,
}

/// Whether a queue of this length is within the limit.
pub(crate) fn is_within(buffer: Buffer, bytes: u64, packets: u64) -> bool {
    match buffer {
        Buffer::Unlimited => true,
        Buffer::Bytes(limit) => bytes <= limit,
        Buffer::Packets(limit) => packets <= limit,
    }
}
