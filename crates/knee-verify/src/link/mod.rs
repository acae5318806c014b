//! Checks a link against a model of it: gate, queue, rate, delay.
//!
//! The model serves packets one after the other as soon as the rate allows. So it knows when each
//! must leave, neither earlier nor later, and what waits when another enters. If the link itself
//! chooses the order of service (FQ-CoDel), the order is inferred from the packets that leave;
//! until one does, the model stands still.

mod aqm;
mod books;
mod breaker;
mod gate;
mod judge;
mod lateness;
mod leave;
mod pause;
mod service;

pub use books::Finding;
pub use leave::Ecn;

use crate::parse::{self, Reason};
use crate::report::LinkCount;
use aqm::Watch;
use books::{Offer, Offers, Owner};
use breaker::Breaker;
use gate::Gate;
use lateness::Lateness;
use pause::{Asking, Pauses};
use service::Service;
use std::collections::VecDeque;

/// A packet that is offered to a link.
pub use books::Offered;

/// State of a link.
pub struct Link {
    head: parse::Link,
    service: Service,
    breaker: Option<Breaker>,
    gate: Gate,
    watch: Watch,
    asking: Option<Asking>,
    pauses: Pauses,
    entered: u64,
    left: u64,
    dropped: u64,
    offers: Offers,
    /// First packet not yet judged by the model.
    next: u64,
    /// No packet before this one waits.
    head_name: u64,
    waiting_bytes: u64,
    waiting_packets: u64,
    /// If the link chooses: packets that left, in order, and are not yet served.
    order: VecDeque<u64>,
    /// Packets dropped after entry and not yet checked.
    late_drops: VecDeque<u64>,
    /// Work done when the last served packet departs.
    done: u128,
    /// Work done when all waiting packets have departed, if that is known at entry.
    promised: u128,
    /// The last served packet and its departure.
    transmitting: Option<(u64, u64)>,
    /// Packets that the device below the AQM took, with their departures, in order. Departed ones
    /// are forgotten when room is computed.
    device: VecDeque<(u64, u64)>,
    /// Departure of the last served packet.
    idle_since: u64,
    /// Until then the link idled although packets waited, which was reported.
    not_before: u64,
    /// Outages that have begun.
    outages: usize,
    /// If packets may overtake: earliest arrival of any packet served from now on.
    earliest: u64,
    last_leave: u64,
    /// If packets may overtake.
    lateness: Lateness,
    /// Of a link that cannot be modelled: work that left beyond its rate, the work that the range
    /// of the delay allows, and bytes of the largest packet.
    excess: u128,
    range: u128,
    largest: u64,
    /// If the link chooses: the packet of each flow that left last.
    last_left: std::collections::BTreeMap<(Owner, bool), u64>,
}

impl Link {
    pub fn new(head: parse::Link) -> Link {
        Link {
            service: Service::new(&head.rate),
            breaker: head.breaker.map(Breaker::new),
            gate: Gate::new(&head),
            watch: if matches!(head.rate, parse::Rate::Unlimited) {
                Watch::DropTail
            } else {
                Watch::new(&head.aqm)
            },
            asking: head.pause.map(|limits| Asking::new(limits, head.buffer)),
            pauses: Pauses::default(),
            head,
            entered: 0,
            left: 0,
            dropped: 0,
            offers: Offers::default(),
            next: 0,
            head_name: 0,
            waiting_bytes: 0,
            waiting_packets: 0,
            order: VecDeque::new(),
            late_drops: VecDeque::new(),
            done: 0,
            promised: 0,
            transmitting: None,
            device: VecDeque::new(),
            idle_since: 0,
            not_before: 0,
            outages: 0,
            earliest: 0,
            last_leave: 0,
            lateness: Lateness::default(),
            excess: 0,
            range: 0,
            largest: 0,
            last_left: std::collections::BTreeMap::new(),
        }
    }

    pub fn count(self) -> LinkCount {
        LinkCount {
            name: self.head.name,
            entered: self.entered,
            left: self.left,
            dropped: self.dropped,
            inside: self.entered - self.left - self.dropped,
        }
    }

    /// Adds a packet, and returns its name at this link.
    pub fn enter(&mut self, offered: Offered, findings: &mut Vec<Finding>) -> u64 {
        self.entered += 1;
        let time = offered.time;
        let mut offer = Offer::new(offered);
        if let (Watch::FqCodel { .. }, Some(tunnel)) = (&self.watch, offered.tunnel) {
            offer.owner = Owner::Tunnel(tunnel, offered.owner.1);
        }
        offer.is_shut_out = self.breaker.as_mut().is_some_and(|breaker| breaker.offers(time));
        let name = self.offers.push(offer);
        self.settle(time, None, findings);
        name
    }

    /// Processes the drop of a packet that is inside.
    pub fn drop(
        &mut self,
        (line, time): (u64, u64),
        name: u64,
        reason: Reason,
        findings: &mut Vec<Finding>,
    ) {
        self.dropped += 1;
        if let Some(breaker) = &mut self.breaker {
            breaker.misses(time);
        }
        let opaque = self.is_opaque();
        let offer = self.offers.get_mut(name);
        offer.dropped = Some(books::Drop { line, time, reason });
        let at_entry = time == offer.time;
        if opaque && !at_entry {
            return offer.go();
        }
        match reason {
            Reason::Down if at_entry => {}
            Reason::Down if !self.gate.goes_down_at(time) => {
                findings.push(Finding::drop("dropped although the link did not go down"));
            }
            Reason::Down => {}
            Reason::Loss | Reason::Policer | Reason::Breaker if at_entry => {}
            Reason::Queue if at_entry && !self.chooses() => {}
            Reason::Aqm if at_entry && !self.watch.decides_late() => {}
            _ => self.late_drops.push_back(name),
        }
    }

    /// Ends the check of the link: everything that should have left must have.
    pub fn finish(&mut self, time: u64, findings: &mut Vec<Finding>) {
        self.settle(time.saturating_add(1), None, findings);
        self.check_stuck(time, findings);
        self.finish_asking(findings);
    }

    /// Returns whether a packet waits until its transmission begins, whatever was promised at entry.
    fn holds(&self) -> bool {
        self.watch.decides_late() || self.head.holds()
    }

    /// Returns whether the link itself chooses the next packet.
    fn chooses(&self) -> bool {
        matches!(self.watch, Watch::FqCodel { .. } | Watch::DualPi2 { .. })
    }

    /// Returns whether the order of service cannot be inferred from the packets that leave.
    fn is_opaque(&self) -> bool {
        self.chooses() && self.head.reorder
    }

    /// Judges all packets that entered before `time`, and those up to `through`.
    fn settle(&mut self, time: u64, through: Option<u64>, findings: &mut Vec<Finding>) {
        while self.next < self.offers.end() {
            let entered = self.offers.get(self.next).time;
            if entered >= time && through.is_none_or(|name| self.next > name) {
                break;
            }
            if self.advance(entered, None, findings) {
                self.judge(self.next, findings);
                self.next += 1;
            } else if !self.cut_off(time, findings) {
                break;
            }
        }
        self.offers.forget(self.next);
    }

    /// Serves what can be served by `time`, or until `name` is served. Returns false if it is not
    /// known yet which packet comes next.
    fn advance(&mut self, time: u64, name: Option<u64>, findings: &mut Vec<Finding>) -> bool {
        loop {
            if name.is_some_and(|name| !self.offers.get(name).waits()) {
                return true;
            }
            let outage = self.gate.outage(self.outages);
            let begin = self.next_begin().unwrap_or(u64::MAX);
            self.check_late_drops(begin.min(time).min(outage), findings);
            // A packet whose service begins when an outage begins still departs, as at a trace's
            // opportunity, unless the queue decides late.
            let goes = begin < outage || (begin == outage && !self.holds());
            if goes && begin <= time && begin < u64::MAX {
                if !self.serve(begin, findings) {
                    return false;
                }
            } else if outage <= time && outage < u64::MAX {
                self.go_down(outage, findings);
            } else {
                return true;
            }
        }
    }

    /// Handles a link whose next packet is unknown. If it went down before `time` and nothing that
    /// entered before that leaves, it will never be known.
    fn cut_off(&mut self, time: u64, findings: &mut Vec<Finding>) -> bool {
        let outage = self.gate.outage(self.outages);
        if outage >= time || self.offers.any_stays(outage) {
            return false;
        }
        while self.next < self.offers.end() && self.offers.get(self.next).time < outage {
            if self.pass_gate(self.next, findings) {
                self.wait(self.next);
            } else {
                self.offers.get_mut(self.next).go();
            }
            self.next += 1;
        }
        for name in self.offers.first()..self.next {
            let offer = self.offers.get(name);
            if offer.waits() && offer.dropped.is_some_and(|drop| drop.time < outage) {
                self.stop_waiting(name);
            }
        }
        self.go_down(outage, findings);
        true
    }

    /// Returns when the service of the next packet begins, or `None` for never.
    fn next_begin(&mut self) -> Option<u64> {
        if self.waiting_packets == 0 {
            return None;
        }
        self.head_name = self.head_name.max(self.offers.first());
        while !self.offers.get(self.head_name).waits() {
            self.head_name += 1;
        }
        self.begins(self.offers.get(self.head_name).time)
    }

    /// Returns when the service of a packet begins that entered at this time and comes next, or
    /// `None` for never.
    fn begins(&mut self, entered: u64) -> Option<u64> {
        if self.head.device.is_some() {
            return self.device_room().map(|room| room.max(entered));
        }
        if self.holds() {
            let mut begin = self.service.begins(entered, self.done);
            while let Some(until) = begin.and_then(|begin| self.pauses.end(begin)) {
                begin = (until < u64::MAX).then(|| self.service.begins(until, self.done)).flatten();
            }
            return begin.map(|begin| begin.max(self.not_before));
        }
        Some(entered.max(self.service.when(self.done)?))
    }
}
