//! Queues whose order or drops are decided when a packet leaves.

use super::codel::CodelState;
use super::fq_codel::FqCodelState;
use crate::config::{Aqm, Buffer, Codel, RateModel};
use crate::{Counters, DropReason, Packet};
use knee_units::Time;
use std::collections::VecDeque;

/// A packet that waits.
pub(crate) struct Held<P> {
    pub entered: Time,
    pub packet: P,
}

/// A first-in first-out queue that knows its bytes.
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

    pub fn pop(&mut self) -> Option<Held<P>> {
        let held = self.packets.pop_front()?;
        self.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }
}

/// Where signals of congestion are written down.
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

    /// Signals congestion by this packet: true, it was marked and stays;
    /// false, it was dropped (or there was none).
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

/// A queue with its own idea of what leaves next.
pub(crate) enum Discipline<P> {
    Codel { settings: Codel, state: CodelState, queue: Waiting<P> },
    FqCodel(FqCodelState<P>),
}

impl<P: Packet> Discipline<P> {
    /// None: departures are known on entry.
    pub fn new(aqm: &Aqm, rate: &RateModel) -> Option<Discipline<P>> {
        match aqm {
            _ if *rate == RateModel::Unlimited => None,
            Aqm::Codel(settings) => Some(Discipline::Codel {
                settings: *settings,
                state: CodelState::default(),
                queue: Waiting::default(),
            }),
            Aqm::FqCodel(settings) => Some(Discipline::FqCodel(FqCodelState::new(*settings))),
            Aqm::DropTail | Aqm::Pie(_) | Aqm::Red(_) | Aqm::Threshold(_) => None,
        }
    }

    /// Takes a packet in; given back: there is no room. FQ-CoDel makes room
    /// by dropping others.
    pub fn enqueue(&mut self, packet: P, buffer: Buffer, ledger: &mut Ledger<P>) -> Result<(), P> {
        let entered = ledger.now;
        match self {
            Discipline::Codel { queue, .. } => {
                let size = u64::from(packet.size());
                if !is_within(buffer, queue.bytes() + size, queue.packets() + 1) {
                    return Err(packet);
                }
                queue.push(Held { entered, packet });
            }
            Discipline::FqCodel(state) => state.enqueue(Held { entered, packet }, buffer, ledger),
        }
        Ok(())
    }

    /// The packet that leaves now.
    pub fn dequeue(&mut self, ledger: &mut Ledger<P>) -> Option<Held<P>> {
        match self {
            Discipline::Codel { settings, state, queue } => state.dequeue(settings, queue, ledger),
            Discipline::FqCodel(state) => state.dequeue(ledger),
        }
    }

    /// Any packet, to empty the queue.
    pub fn remove(&mut self) -> Option<P> {
        match self {
            Discipline::Codel { queue, .. } => queue.pop().map(|held| held.packet),
            Discipline::FqCodel(state) => state.remove(),
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Discipline::Codel { queue, .. } => queue.bytes(),
            Discipline::FqCodel(state) => state.bytes(),
        }
    }

    pub fn packets(&self) -> u64 {
        match self {
            Discipline::Codel { queue, .. } => queue.packets(),
            Discipline::FqCodel(state) => state.packets(),
        }
    }
}

/// Whether a queue of this length respects the limit.
pub(crate) fn is_within(buffer: Buffer, bytes: u64, packets: u64) -> bool {
    match buffer {
        Buffer::Unlimited => true,
        Buffer::Bytes(limit) => bytes <= limit,
        Buffer::Packets(limit) => packets <= limit,
    }
}
