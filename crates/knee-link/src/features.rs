//! What a plain link does without: loss, policer, outages, changing delay,
//! jitter, AQM. Kept out of the way of the links that have none of it.

use crate::config::Config;
use crate::delay::Propagation;
use crate::fifo::Entry;
use crate::link::Core;
use crate::loss::LossProcess;
use crate::policer::TokenBucket;
use crate::{DropReason, Packet};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

pub(crate) struct Features<P> {
    rng: ChaCha8Rng,
    loss: LossProcess,
    policer: Option<TokenBucket>,
    outages: Outages,
    propagation: Propagation,
    /// Packets that may overtake each other, once they have left the queue.
    overtaking: BinaryHeap<Reverse<Flying<P>>>,
    /// Packets that ever entered `overtaking`: the tie-breaker.
    flown: u64,
    dropped: VecDeque<(Time, DropReason, P)>,
}

impl<P: Packet> Features<P> {
    pub fn new(config: &Config, rng: ChaCha8Rng) -> Features<P> {
        Features {
            rng,
            loss: LossProcess::new(&config.loss),
            policer: config.policer.map(TokenBucket::new),
            outages: Outages { spans: config.down.clone(), next: 0, until: Time::ZERO },
            propagation: Propagation::new(&config.delay),
            overtaking: BinaryHeap::new(),
            flown: 0,
            dropped: VecDeque::new(),
        }
    }

    #[inline(never)]
    pub fn send(
        &mut self,
        core: &mut Core<P>,
        now: Time,
        packet: P,
    ) -> Result<(), (DropReason, P)> {
        self.settle(core, now);
        let outcome = match self.refuses(now, packet.size()) {
            Some(reason) => Err((reason, packet)),
            None => self.enqueue(core, now, packet),
        };
        if let Err((reason, _)) = outcome {
            core.counters.count(reason);
        }
        outcome
    }

    /// What stands before the queue.
    fn refuses(&mut self, now: Time, size: u32) -> Option<DropReason> {
        if now < self.outages.until {
            return Some(DropReason::Down);
        }
        if self.loss.loses(&mut self.rng) {
            return Some(DropReason::Loss);
        }
        let admitted = self.policer.as_mut().is_none_or(|bucket| bucket.takes(now, size));
        (!admitted).then_some(DropReason::Policer)
    }

    fn enqueue(&mut self, core: &mut Core<P>, now: Time, packet: P) -> Result<(), (DropReason, P)> {
        let size = packet.size();
        if !core.fifo.has_room(now, size, core.buffer) {
            return Err((DropReason::Queue, packet));
        }
        let departure = core.server.serve(now, size);
        let arrival = self.propagation.arrival(departure, &mut self.rng);
        core.fifo.push(departure, arrival, packet);
        Ok(())
    }

    pub fn next_time(&self, core: &Core<P>) -> Time {
        let moves = if self.propagation.reorders() {
            let leaves = core.fifo.front().map_or(Time::MAX, |entry| entry.departure);
            self.overtaking.peek().map_or(leaves, |top| leaves.min(top.0.arrival))
        } else {
            core.fifo.next_arrival()
        };
        let outage = self.outages.next_start();
        let hit = core.fifo.back().is_some_and(|last| last.departure > outage);
        if hit { moves.min(outage) } else { moves }
    }

    #[inline(never)]
    pub fn poll(&mut self, core: &mut Core<P>, now: Time) -> Option<P> {
        self.settle(core, now);
        if !self.propagation.reorders() {
            return core.fifo.pop_arrived(now);
        }
        if self.overtaking.peek()?.0.arrival > now {
            return None;
        }
        self.overtaking.pop().map(|top| top.0.packet)
    }

    #[inline]
    pub fn take_dropped(&mut self) -> Option<(Time, DropReason, P)> {
        self.dropped.pop_front()
    }

    /// Does what was due by `now`, in the order in which it was due.
    fn settle(&mut self, core: &mut Core<P>, now: Time) {
        while self.outages.next_start() <= now {
            self.go_down(core);
        }
        if self.propagation.reorders() {
            while let Some(Entry { arrival, packet, .. }) = core.fifo.pop_departed(now) {
                self.flown += 1;
                self.overtaking.push(Reverse(Flying { arrival, number: self.flown, packet }));
            }
        }
    }

    #[cold]
    fn go_down(&mut self, core: &mut Core<P>) {
        let start = self.outages.begin();
        for packet in core.fifo.cut(start) {
            core.counters.count(DropReason::Down);
            self.dropped.push_back((start, DropReason::Down, packet));
        }
        core.server.clear(start);
        self.propagation.restart(core.fifo.back().map_or(Time::ZERO, |entry| entry.arrival));
    }

    /// Bytes and packets that wait outside the link's FIFO.
    pub fn held(&mut self, core: &mut Core<P>, now: Time) -> (u64, u64) {
        self.settle(core, now);
        (0, 0)
    }
}

/// When the link is down.
struct Outages {
    spans: Vec<(Time, Time)>,
    next: usize,
    /// End of the last one that has begun.
    until: Time,
}

impl Outages {
    #[inline]
    fn next_start(&self) -> Time {
        self.spans.get(self.next).map_or(Time::MAX, |(from, _)| *from)
    }

    fn begin(&mut self) -> Time {
        let (from, until) = self.spans[self.next];
        self.until = until;
        self.next += 1;
        from
    }
}

/// A packet on its way, ordered by arrival.
struct Flying<P> {
    arrival: Time,
    number: u64,
    packet: P,
}

impl<P> Ord for Flying<P> {
    fn cmp(&self, other: &Flying<P>) -> Ordering {
        (self.arrival, self.number).cmp(&(other.arrival, other.number))
    }
}
impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Flying<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Flying<P>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<P> Eq for Flying<P> {}
