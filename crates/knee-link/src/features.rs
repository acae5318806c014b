//! Features that most links do not use: outages, changing delay, jitter, AQM.
//! Separate, so that links without them have no overhead.

use crate::aqm::{ClassState, Discipline, EntryAqm, Found, Ledger, Verdict};
use crate::config::{Buffer, Config, Device};
use crate::delay::Propagation;
use crate::gate::Gate;
use crate::link::Core;
use crate::pause::{Asking, Pauses};
use crate::{DropReason, Packet};
use knee_units::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

pub(crate) struct Features<P> {
    gate: Gate,
    outages: Outages,
    entry_aqm: EntryAqm,
    /// Queue discipline that decides only on departure which packet leaves next.
    discipline: Option<Discipline<P>>,
    /// Queue of the device below the discipline.
    device: Option<Device>,
    /// When the discipline releases its next packet; [`Time::MAX`] if it is
    /// empty, or service never begins.
    next_dequeue: Time,
    propagation: Propagation,
    /// Packets that have left the queue and may overtake each other.
    overtaking: BinaryHeap<Reverse<Flying<P>>>,
    /// Number of packets that have entered `overtaking`, as tie-breaker.
    flown: u64,
    dropped: VecDeque<(Time, DropReason, P)>,
    /// Asks the links before it to pause.
    asking: Option<Asking>,
    /// What the links behind it asked.
    pauses: Pauses,
}

impl<P: Packet> Features<P> {
    pub fn new(config: &Config, gate: Gate) -> Features<P> {
        let entry_aqm = EntryAqm::new(&config.aqm, &config.rate, &gate.rng);
        let discipline = Discipline::new(config, &gate.rng);
        let in_packets = matches!(config.buffer, Buffer::Packets(_));
        Features {
            gate,
            outages: Outages { spans: config.down.clone(), next: 0, until: Time::ZERO },
            entry_aqm,
            discipline,
            device: config.device,
            next_dequeue: Time::MAX,
            propagation: Propagation::new(config),
            overtaking: BinaryHeap::new(),
            flown: 0,
            dropped: VecDeque::new(),
            asking: config.pause.map(|limits| Asking::new(limits, in_packets)),
            pauses: Pauses::new(config),
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
        let refused = if now < self.outages.until {
            Some(DropReason::Down)
        } else {
            self.gate.refuses(now, packet.size(), packet.sender())
        };
        let outcome = match refused {
            Some(reason) => Err((reason, packet)),
            None => self.enqueue(core, now, packet),
        };
        if let Err((reason, _)) = outcome {
            core.counters.count(reason);
        }
        outcome
    }

    fn enqueue(
        &mut self,
        core: &mut Core<P>,
        now: Time,
        mut packet: P,
    ) -> Result<(), (DropReason, P)> {
        if self.discipline.is_some() {
            return self.hold(core, now, packet);
        }
        let size = packet.size();
        let verdict = self.judge(core, now, &packet);
        if verdict == Verdict::Drop {
            return Err((DropReason::Aqm, packet));
        }
        if !core.fifo.has_room(now, size, core.buffer) {
            return Err((DropReason::Queue, packet));
        }
        if verdict == Verdict::Mark {
            packet.mark();
            core.counters.marked_packets += 1;
        }
        let departure = self.transmit(core, now, packet);
        self.entry_aqm.busy_until(departure);
        Ok(())
    }

    fn judge(&mut self, core: &mut Core<P>, now: Time, packet: &P) -> Verdict {
        if matches!(self.entry_aqm, EntryAqm::None) {
            return Verdict::Pass;
        }
        core.fifo.settle(now);
        let found = Found {
            now,
            ecn: packet.ecn(),
            waiting_bytes: core.fifo.waiting_bytes(),
            idle: core.fifo.queued_packets() == 0,
        };
        self.entry_aqm.decide(&found, |at| core.server.start(at), &mut self.gate.rng)
    }

    /// Puts a packet on the wire that was ready at `ready`, behind all others there.
    fn transmit(&mut self, core: &mut Core<P>, ready: Time, packet: P) -> Time {
        let departure = core.server.serve(ready, packet.size());
        let arrival = self.propagation.arrival(departure, &mut self.gate.rng);
        core.fifo.push(departure, arrival, packet);
        departure
    }

    /// Passes a packet to the discipline.
    fn hold(&mut self, core: &mut Core<P>, now: Time, packet: P) -> Result<(), (DropReason, P)> {
        let Some(discipline) = &mut self.discipline else {
            return Err((DropReason::Queue, packet));
        };
        core.fifo.settle(now);
        let idle = core.fifo.queued_packets() == 0 && discipline.packets() == 0;
        let buffer = if idle { Buffer::Unlimited } else { core.buffer };
        let mut ledger = Ledger { now, dropped: &mut self.dropped, counters: &mut core.counters };
        if let Err(packet) = discipline.enqueue(packet, buffer, &mut ledger) {
            return Err((DropReason::Queue, packet));
        }
        if self.next_dequeue == Time::MAX {
            self.next_dequeue = self.handover(core, now, now);
        }
        if self.next_dequeue <= now {
            self.dequeue(core);
        }
        self.note_length(now);
        Ok(())
    }

    /// Asks the links before this one to pause, or to go on, if its queue calls for it.
    fn note_length(&mut self, now: Time) {
        if let (Some(asking), Some(held)) = (&mut self.asking, &self.discipline) {
            asking.note(now, held.bytes(), held.packets());
        }
    }

    /// See [`crate::Link::pause`].
    pub fn pause(&mut self, core: &mut Core<P>, asked: Time, pause: bool) {
        self.settle(core, asked);
        let arrival = self.pauses.ask(asked, pause);
        let holds = self.discipline.as_ref().is_some_and(|held| held.packets() > 0);
        if !holds {
            return;
        }
        let again = |ready| core.server.start(ready);
        self.next_dequeue = match self.next_dequeue {
            Time::MAX => again(arrival),
            start => self.pauses.start(start, again),
        };
    }

    #[inline]
    pub fn has_request(&self) -> bool {
        self.asking.as_ref().is_some_and(Asking::has_request)
    }

    pub fn take_request(&mut self) -> Option<(Time, bool)> {
        self.asking.as_mut()?.take_request()
    }

    /// Moves the discipline's next packet to the wire.
    fn dequeue(&mut self, core: &mut Core<P>) {
        let Some(discipline) = &mut self.discipline else { return };
        let now = self.next_dequeue;
        let mut ledger = Ledger { now, dropped: &mut self.dropped, counters: &mut core.counters };
        let taken = discipline.dequeue(&mut ledger);
        let empty = discipline.packets() == 0;
        if let Some(held) = taken {
            // Ready since it entered: the wire lost no time, not even the
            // fraction of a nanosecond by which `now` is rounded.
            let ready = held.entered.max(self.pauses.resumed(now));
            self.transmit(core, ready, held.packet);
        }
        // The remaining packets entered before `now` and may share its opportunity.
        let ready = now.saturating_sub(Time::from_nanos(1));
        self.next_dequeue = if empty { Time::MAX } else { self.handover(core, now, ready) };
        self.note_length(now);
    }

    /// Returns when the discipline releases a packet that is ready at `ready`:
    /// when its transmission can begin, or the device accepts it.
    fn handover(&self, core: &mut Core<P>, now: Time, ready: Time) -> Time {
        match self.device {
            None => self.pauses.start(core.server.start(ready), |ready| core.server.start(ready)),
            Some(device) => {
                core.fifo.settle(now);
                core.fifo.device_room(now, device)
            }
        }
    }

    pub fn next_time(&self, core: &Core<P>) -> Time {
        let moves = if self.propagation.reorders() {
            let leaves = core.fifo.first_departure().unwrap_or(Time::MAX);
            self.overtaking.peek().map_or(leaves, |top| leaves.min(top.0.arrival))
        } else {
            core.fifo.next_arrival()
        };
        let moves = moves.min(self.next_dequeue);
        let outage = self.outages.next_start();
        let holds = self.discipline.as_ref().is_some_and(|held| held.packets() > 0);
        let hit = holds || core.fifo.last().is_some_and(|(departure, _)| departure > outage);
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

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Processes what was due by `now`, in order.
    pub fn settle(&mut self, core: &mut Core<P>, now: Time) {
        loop {
            let outage = self.outages.next_start();
            if self.next_dequeue <= now && self.next_dequeue < outage {
                self.dequeue(core);
            } else if outage <= now {
                self.go_down(core);
            } else {
                break;
            }
        }
        if self.propagation.reorders() {
            while let Some((arrival, packet)) = core.fifo.pop_departed(now) {
                self.flown += 1;
                self.overtaking.push(Reverse(Flying { arrival, number: self.flown, packet }));
            }
        }
    }

    #[cold]
    fn go_down(&mut self, core: &mut Core<P>) {
        let start = self.outages.begin();
        core.fifo.settle(start);
        let used = core.used_bytes(start);
        let mut ledger =
            Ledger { now: start, dropped: &mut self.dropped, counters: &mut core.counters };
        for packet in core.fifo.cut(start) {
            ledger.drop(DropReason::Down, packet);
        }
        while let Some(packet) = self.discipline.as_mut().and_then(Discipline::remove) {
            ledger.drop(DropReason::Down, packet);
        }
        self.next_dequeue = Time::MAX;
        self.note_length(start);
        core.server.clear(start);
        core.cut_bytes += used.saturating_sub(core.used_bytes(start));
        self.entry_aqm.cut_off(start);
        self.propagation.restart(core.fifo.last().map_or(Time::ZERO, |(_, arrival)| arrival));
    }

    /// Returns bytes and packets that wait outside the link's FIFO.
    pub fn held(&mut self, core: &mut Core<P>, now: Time) -> (u64, u64) {
        self.settle(core, now);
        self.discipline.as_ref().map_or((0, 0), |held| (held.bytes(), held.packets()))
    }
}

impl<P: Packet> Features<P> {
    /// Returns the state of each class; see [`crate::Link::classes`].
    pub fn classes(&mut self, core: &mut Core<P>, now: Time) -> Vec<ClassState> {
        self.settle(core, now);
        self.discipline.as_ref().map_or_else(Vec::new, |held| held.classes(now))
    }
}

/// Outages of the link.
struct Outages {
    spans: Vec<(Time, Time)>,
    next: usize,
    /// End of the last outage that has begun.
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

/// A propagating packet, ordered by arrival.
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
